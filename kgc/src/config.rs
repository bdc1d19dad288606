//! The settings: defaults ← `--config FILE` ← `QUIVER_KGC_…` ← flags.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use quiver_delivery::release::DEFAULT_RATE;
use quiver_service::config::Layers;
use quiver_service::logging::LogFormat;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::quorum;

/// Prefix of the environment variables: `QUIVER_KGC_DATA_DIR`, `QUIVER_KGC_LISTEN`, …
pub(crate) const VARIABLES: &str = "QUIVER_KGC_";

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Config {
    /// Data directory.
    pub(crate) data_dir: PathBuf,
    /// Addresses to listen on, as multiaddresses.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) listen: Vec<String>,
    /// Format of log lines.
    pub(crate) log_format: LogFormat,
    /// Collector of what a running service does about each request.
    pub(crate) otlp: Option<String>,
    /// Address of metrics and health.
    pub(crate) metrics: Option<SocketAddr>,
    /// Directory into which the first KGC of a quorum puts the public deployment file, besides the one in its
    /// own.
    pub(crate) publish: Option<PathBuf>,
    /// Time between two looks for revocations made on the command line.
    #[serde(with = "quiver_service::duration")]
    pub(crate) poll: Duration,
    /// For how long a revocation list counts as fresh.
    #[serde(with = "quiver_service::duration")]
    pub(crate) revocation_validity: Duration,
    /// Time until a drone gets its next key of one attribute authority.
    #[serde(with = "quiver_service::duration")]
    pub(crate) attribute_interval: Duration,
    /// Number of key shares of encryption to conditions that a drone gets at once.
    pub(crate) release_burst: u32,
    /// After which time it gets one more.
    #[serde(with = "quiver_service::duration")]
    pub(crate) release_interval: Duration,
    /// Settings of a KGC in a quorum.
    pub(crate) quorum: QuorumSettings,
}

/// Settings of a quorum's KGC that are not in the init file, which is the same at all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct QuorumSettings {
    /// Present addresses of other KGCs, by their ids, in place of those in the init file.
    pub(crate) addresses: BTreeMap<String, Vec<String>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: "kgc-data".into(),
            listen: vec!["/ip4/127.0.0.1/tcp/7000".into()],
            log_format: LogFormat::Text,
            otlp: None,
            metrics: None,
            publish: None,
            poll: Duration::from_secs(1),
            revocation_validity: Duration::from_secs(7 * 24 * 3600),
            attribute_interval: Duration::from_secs(5),
            release_burst: DEFAULT_RATE.burst,
            release_interval: DEFAULT_RATE.refill,
            quorum: QuorumSettings::default(),
        }
    }
}

impl Config {
    /// Takes the settings out of their layers.
    pub(crate) fn read(mut layers: Layers) -> Result<Self> {
        let config = layers.part(Self::default())?;
        layers.end()?;
        Ok(config)
    }

    /// The public file that `kgc init` wrote.
    pub(crate) fn deployment_path(&self) -> PathBuf {
        self.data_dir.join("deployment.toml")
    }

    /// The same, which must be there.
    pub(crate) fn existing_deployment(&self) -> Result<PathBuf> {
        let path = self.deployment_path();
        match path.exists() {
            true => Ok(path),
            false if quorum::file::path_in(&self.data_dir).exists() => Err(Error::NoKeyYet),
            false => Err(Error::NotInitialised(self.data_dir.clone())),
        }
    }
}
