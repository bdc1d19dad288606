//! The settings that an edge and a leader both have.

use std::net::SocketAddr;
use std::path::PathBuf;

use quiver_net::Multiaddr;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::config::parse_addresses;
use crate::deployment_file::DeploymentFile;
use crate::logging::LogFormat;

/// Settings of every drone's program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroneSettings {
    /// Directory of the state file, the control socket and the copy of the deployment file.
    pub data_dir: PathBuf,
    /// Format of log lines.
    pub log_format: LogFormat,
    /// Collector of what a running service does about each request.
    pub otlp: Option<String>,
    /// Where to serve metrics and health.
    pub metrics: Option<SocketAddr>,
    /// The public deployment file; after the first start the copy in the data directory.
    pub deployment: Option<PathBuf>,
    /// Addresses of KGCs, in place of those in the deployment file.
    #[serde(deserialize_with = "crate::config::list")]
    pub kgc: Vec<String>,
    /// The token to enrol with.
    pub token: Option<PathBuf>,
    /// Whether to fetch attribute keys at the start.
    pub attributes: bool,
    /// Whether a revocation list past its next update stops joins by name: at an edge its own, at a leader
    /// everybody's.
    pub refuse_stale_revocations: bool,
}

impl DroneSettings {
    /// The defaults of this program.
    #[must_use]
    pub fn of(program: &str) -> Self {
        Self {
            data_dir: format!("{program}-data").into(),
            log_format: LogFormat::Text,
            otlp: None,
            metrics: None,
            deployment: None,
            kgc: Vec::new(),
            token: None,
            attributes: false,
            refuse_stale_revocations: false,
        }
    }

    /// The deployment file: the one given, or the copy made at the first start.
    ///
    /// # Errors
    /// Those of [`DeploymentFile::given_or_kept`].
    pub fn read_deployment(&self) -> Result<DeploymentFile> {
        DeploymentFile::given_or_kept(self.deployment.as_deref(), &self.data_dir)
    }

    /// Addresses of KGCs: those given, or those in the deployment file.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming one that is none.
    pub fn kgc_addresses(&self, file: &DeploymentFile) -> Result<Vec<Multiaddr>> {
        parse_addresses("kgc", &if self.kgc.is_empty() { file.kgc_addresses() } else { self.kgc.clone() })
    }
}
