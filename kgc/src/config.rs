//! The settings: defaults ← `--config FILE` ← `QUIVER_KGC_…` ← flags.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use quiver_ainq::{Deployment, Ristretto255};
use quiver_delivery::kgc::DEFAULT_RATE;
use quiver_service::config::{Layers, ServiceSettings};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::private_file;
use serde::{Deserialize, Serialize};

use crate::cli::HELP;
use crate::error::{Error, Result};
use crate::membership;

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Config {
    /// Settings of every service, a part of their own.
    #[serde(skip)]
    pub(crate) service: ServiceSettings,
    /// Addresses to listen on, as multiaddresses.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) listen: Vec<String>,
    /// Directory into which the first KGC of a quorum puts the public deployment file, besides the one in its
    /// own.
    pub(crate) publish: Option<PathBuf>,
    /// Time between two looks for revocations made on the command line.
    #[serde(with = "quiver_service::duration")]
    pub(crate) poll: Duration,
    /// Time for which a revocation list counts as fresh.
    #[serde(with = "quiver_service::duration")]
    pub(crate) revocation_validity: Duration,
    /// Time until a drone gets its next key of one attribute authority.
    #[serde(with = "quiver_service::duration")]
    pub(crate) attribute_interval: Duration,
    /// Number of key shares of encryption to conditions that a drone gets at once.
    #[serde(deserialize_with = "quiver_service::config::whole::<_, 1, { u32::MAX }>")]
    pub(crate) release_burst: u32,
    /// Time after which it gets one more.
    #[serde(with = "quiver_service::duration")]
    pub(crate) release_interval: Duration,
    /// Settings of a KGC in a quorum.
    pub(crate) quorum: QuorumSettings,
}

/// Settings that are for a KGC of a quorum alone.
const QUORUM_SETTINGS: [&str; 2] = ["publish", "quorum"];

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
            service: ServiceSettings::of(HELP.name),
            listen: vec!["/ip4/127.0.0.1/tcp/7000".into()],
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

impl Deref for Config {
    type Target = ServiceSettings;

    /// Dereferences to the settings of every service, so that the data directory is written alike in all
    /// programs.
    fn deref(&self) -> &ServiceSettings {
        &self.service
    }
}

impl Config {
    /// Takes the settings out of their layers.
    pub(crate) fn read(mut layers: Layers) -> Result<Self> {
        let service = layers.part(ServiceSettings::of(HELP.name))?;
        let config = Self { service, ..layers.part(Self::default())? };
        for key in QUORUM_SETTINGS {
            layers.place_of(key).map_or(Ok(()), |place| membership::refuse_if_absent(&place))?;
        }
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
        let quorum = membership::path_in(&self.data_dir);
        match private_file::exists(&path)? {
            true => Ok(path),
            false if private_file::exists(&quorum)? => {
                membership::refuse_if_absent(&quorum.display())?;
                Err(Error::NoKeyYet)
            }
            false => Err(Error::NotInitialised(self.data_dir.clone())),
        }
    }

    /// The deployment that this file describes.
    ///
    /// # Errors
    /// Errors of [`existing_deployment`](Self::existing_deployment), and of a file that cannot be read.
    pub(crate) fn deployment(&self) -> Result<Deployment<Ristretto255>> {
        Ok(DeploymentFile::read(&self.existing_deployment()?)?.pin()?)
    }
}
