//! The settings that an edge and a leader both have.

use std::ops::Deref;
use std::path::PathBuf;

use quiver_net::Multiaddr;
use serde::{Deserialize, Serialize};

use super::addresses::parse_dialled_addresses;
use crate::Result;
use crate::config::{Layers, ServiceSettings};
use crate::deployment_file::DeploymentFile;

/// Settings of every drone's program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroneSettings {
    /// Settings of every service, a part of their own.
    #[serde(skip)]
    pub service: ServiceSettings,
    /// The public deployment file; after the first start the copy in the data directory.
    pub deployment: Option<PathBuf>,
    /// Addresses of KGCs, in place of those in the deployment file.
    #[serde(deserialize_with = "crate::config::list")]
    pub kgc: Vec<String>,
    /// The token to enrol with.
    pub token: Option<PathBuf>,
    /// True to fetch attribute keys at the start.
    pub attributes: bool,
    /// True if a revocation list past its next update stops joins by name: at an edge its own, at a leader
    /// everybody's.
    pub refuse_stale_revocations: bool,
}

impl DroneSettings {
    /// Takes those of this program out of their layers.
    ///
    /// # Errors
    /// Those of [`Layers::part`].
    pub fn read(layers: &mut Layers, program: &str) -> Result<Self> {
        let service = layers.part(ServiceSettings::of(program))?;
        Ok(Self { service, ..layers.part(Self::default())? })
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
        parse_dialled_addresses(
            "kgc",
            &if self.kgc.is_empty() { file.kgc_addresses() } else { self.kgc.clone() },
        )
    }
}

impl Deref for DroneSettings {
    type Target = ServiceSettings;

    /// Dereferences to the settings of every service, so that the data directory is written alike in all
    /// programs.
    fn deref(&self) -> &ServiceSettings {
        &self.service
    }
}
