//! The flags that all services have.

use std::path::PathBuf;

use clap::Args;

use crate::logging::LogFormat;
use crate::secrets::ProtectionArgs;

/// Flags of every subcommand of every service.
#[derive(Args, Clone, Debug, Default)]
pub struct CommonArgs {
    /// Directory of this service's files; created for its owner alone
    #[arg(short, long, value_name = "DIR", global = true)]
    pub data_dir: Option<PathBuf>,

    /// Configuration file (TOML); its keys are the long flags with `_` for `-`
    #[arg(short, long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,

    /// How log lines on standard error look; RUST_LOG says what is logged
    #[arg(long, value_name = "FORMAT", global = true)]
    pub log_format: Option<LogFormat>,

    /// What opens the state file.
    #[command(flatten)]
    pub protection: ProtectionArgs,
}
