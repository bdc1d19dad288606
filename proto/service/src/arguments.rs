//! Flags that several subcommands of the services have.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::logging::LogFormat;
use crate::secrets::ProtectionArgs;

/// Flags of every subcommand of every service.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct CommonArgs {
    /// Directory of this service's files; created for its owner alone
    #[arg(short, long, value_name = "DIR", global = true)]
    pub data_dir: Option<PathBuf>,

    /// Configuration file (TOML); its keys are the long flags with `_` for `-`
    #[arg(short, long, value_name = "FILE", global = true)]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// How log lines on standard error look; RUST_LOG says what is logged
    #[arg(long, value_name = "FORMAT", global = true)]
    pub log_format: Option<LogFormat>,

    /// Collector to which a running service sends what it does about each request, by OTLP over plain HTTP,
    /// such as http://127.0.0.1:4318; for Jaeger, Tempo and the like
    #[arg(long, value_name = "URL", global = true)]
    pub otlp: Option<String>,

    /// What opens the state file.
    #[command(flatten)]
    #[serde(skip)]
    pub protection: ProtectionArgs,
}

/// The flag of subcommands that serve metrics and health, or ask for them.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct MetricsArgs {
    /// Where to serve /metrics, /healthz and /readyz over HTTP, such as 127.0.0.1:9464; port 0 lets the
    /// system choose. Without it nothing is served. There is no authentication: whoever reaches it sees names
    /// and numbers of drones, never a secret
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
}

/// The flag of subcommands that ask the KGCs.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KgcArgs {
    /// Address of a KGC, in place of those in the deployment file; may be repeated. A running service uses
    /// its own
    #[arg(long, value_name = "MULTIADDR", global = true)]
    pub kgc: Vec<String>,
}

/// `health`: for container engines and scripts.
#[derive(Args, Clone, Debug, Default)]
pub struct HealthArgs {
    /// Where the running service serves its health.
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// Ask only whether it is alive, not whether it does its work
    #[arg(long)]
    pub live: bool,
}
