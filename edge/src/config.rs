//! The settings: defaults ← `--config FILE` ← `QUIVER_EDGE_…` ← flags.

use std::path::PathBuf;
use std::time::Duration;

use quiver_ainq::Ristretto255;
use quiver_delivery::attributes::FetchTiming;
use quiver_group::edge::EdgeTiming;
use quiver_group::{Edge, EdgeConfig};
use quiver_machine::{Primary, Snapshot};
use quiver_net::Multiaddr;
use quiver_service::config::Layers;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::drone::addresses::parse_dialled_addresses;
use quiver_service::drone::feature::{Features, Memberships, ServiceParts, settings};
use quiver_service::drone::{DroneProgram, DroneService, DroneSettings, Error, Result};
use quiver_service::state_file::Records;
use serde::{Deserialize, Serialize};

/// All settings.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Settings of every drone's program.
    pub(crate) drone: DroneSettings,
    /// Settings of an edge.
    pub(crate) edge: EdgeSettings,
    /// Settings of this build's features.
    pub(crate) features: ServiceParts,
}

/// The settings of an edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EdgeSettings {
    /// Addresses of the group's leaders.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) leader: Vec<String>,
    /// Directory to take a token from.
    pub(crate) token_dir: Option<PathBuf>,
    /// The group to join.
    pub(crate) group: Option<String>,
    /// Maximum duration of enrolment.
    #[serde(with = "quiver_service::duration")]
    pub(crate) enrol_timeout: Duration,
    /// Time to wait for an answer before the first retry.
    #[serde(with = "quiver_service::duration")]
    pub(crate) retry: Duration,
    /// The longest wait between retries.
    #[serde(with = "quiver_service::duration")]
    pub(crate) retry_max: Duration,
    /// Time to wait for admission.
    #[serde(with = "quiver_service::duration")]
    pub(crate) admission_timeout: Duration,
    /// Time for which the former key still receives after a re-key that removed nobody.
    #[serde(with = "quiver_service::duration")]
    pub(crate) overlap: Duration,
}

impl Default for EdgeSettings {
    fn default() -> Self {
        let timing = EdgeTiming::default();
        Self {
            leader: Vec::new(),
            token_dir: None,
            group: None,
            enrol_timeout: Duration::from_secs(60),
            retry: timing.retry,
            retry_max: timing.retry_max,
            admission_timeout: timing.admission,
            overlap: timing.overlap,
        }
    }
}

impl Config {
    /// Takes the settings out of their layers.
    pub(crate) fn read(mut layers: Layers) -> Result<Self> {
        let drone = DroneSettings::read(&mut layers, Self::NAME)?;
        let features = settings(Self::FEATURES, &mut layers)?;
        let config = Self { drone, edge: layers.part(EdgeSettings::default())?, features };
        layers.end()?;
        let unnamed = config.memberships().map(|memberships| memberships.setting());
        config.features.iter().try_for_each(|feature| feature.check_settings(unnamed))?;
        Ok(config)
    }

    /// The memberships that a feature makes in place of those under the drone's name, if its settings want them.
    pub(crate) fn memberships(&self) -> Option<&dyn Memberships> {
        self.features.iter().find_map(|feature| feature.memberships())
    }

    /// The times of the edge.
    pub(crate) fn timing(&self) -> EdgeTiming {
        EdgeTiming {
            retry: self.edge.retry,
            retry_max: self.edge.retry_max,
            admission: self.edge.admission_timeout,
            overlap: self.edge.overlap,
            ..EdgeTiming::default()
        }
    }

    /// Configuration of the machine, which neither enrols nor joins.
    pub(crate) fn machine(&self, service: &DroneService<'_, Self>) -> EdgeConfig<Ristretto255> {
        EdgeConfig {
            deployment: service.deployment.clone(),
            group: None,
            token: None,
            kgcs: service.kgcs.clone(),
            timing: self.timing(),
        }
    }

    /// Refuses what is no address, of a leader or a KGC. That there are any is demanded where they are
    /// needed.
    pub(crate) fn check_addresses(&self, file: &DeploymentFile) -> Result<()> {
        parse_dialled_addresses("leader", &self.edge.leader)?;
        self.drone.kgc_addresses(file)?;
        Ok(())
    }

    /// Addresses of leaders.
    pub(crate) fn leader_addresses(&self) -> Result<Vec<Multiaddr>> {
        if self.edge.leader.is_empty() {
            return Err(Error::config("no address of a leader: give --leader HOST:PORT or a multiaddress"));
        }
        Ok(parse_dialled_addresses("leader", &self.edge.leader)?)
    }
}

impl DroneProgram for Config {
    const FEATURES: Features = crate::features::FEATURES;
    const NAME: &'static str = "edge";
    const SERVE: &'static str = "run";

    fn settings(&self) -> &DroneSettings {
        &self.drone
    }

    fn fetch_timing(&self) -> FetchTiming {
        FetchTiming { retry: self.edge.retry, retry_max: self.edge.retry_max }
    }

    fn fetch_time(&self) -> Duration {
        self.edge.enrol_timeout
    }

    fn restore(
        &self,
        service: &DroneService<'_, Self>,
        records: Records,
    ) -> Result<impl Primary<Suite = Ristretto255>> {
        Ok(Edge::new(self.machine(service), newest(records).as_ref())?.with_kem(service.file.kem))
    }
}

/// The machine's state: each record is all of it, so only the newest counts.
pub(crate) fn newest(mut records: Records) -> Option<Snapshot> {
    records.pop().map(|mut record| Snapshot::new(std::mem::take(&mut *record)))
}
