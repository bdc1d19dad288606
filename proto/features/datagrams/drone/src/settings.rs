//! Settings of MAVLink programs beside a drone and of grants, and the bridge of a service.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quiver_ainq::{Deployment, Ristretto255};
use quiver_bridge::{
    Bridge, BridgeInputs, BridgeReport, BridgeSettings, EpochKeySender, FlightLogSettings, Given,
    GroupServices, bridge_channels,
};
use quiver_mavlink::SystemIds;
use quiver_service::clock;
use quiver_service::drone::{Error, Result};
use quiver_service::private_file::{self, PublicFile};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use crate::error::failed;
use crate::status::STATUS;

/// The longest file in mavlink-router's format, in bytes.
const LONGEST_FILE: u64 = 256 * 1024;
/// The longest file with a key for MAVLink signing: 64 digits, and white space.
const LONGEST_KEY: u64 = 256;
/// Pause between two reports of the security state to programs, unless set.
const STATE_EVERY: Duration = Duration::from_secs(5);

/// Settings of MAVLink programs beside a drone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MavlinkSettings {
    /// Endpoints.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) mavlink: Vec<String>,
    /// Carriers.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) carrier: Vec<String>,
    /// A file in mavlink-router's format.
    pub(crate) mavlink_config: Option<PathBuf>,
    /// Directory of logs of flights.
    pub(crate) mavlink_log: Option<PathBuf>,
    /// Megabytes of all of these logs.
    #[serde(default, deserialize_with = "quiver_service::config::optional_whole::<_, 1, 1_000_000>")]
    pub(crate) mavlink_log_limit: Option<u32>,
    /// Pause between two reports of the security state to programs; zero for never.
    #[serde(with = "quiver_service::duration")]
    pub(crate) mavlink_state: Duration,
}

impl Default for MavlinkSettings {
    fn default() -> Self {
        Self {
            mavlink: Vec::new(),
            carrier: Vec::new(),
            mavlink_config: None,
            mavlink_log: None,
            mavlink_log_limit: None,
            mavlink_state: STATE_EVERY,
        }
    }
}

/// A bridge that is open, and waits for its group.
#[derive(Debug)]
pub(crate) struct OpenBridge {
    /// The bridge until it works, and what it learns of its group.
    waiting: Mutex<Option<WaitingBridge>>,
    /// Tells it of the group.
    pub(crate) epoch_keys: Arc<EpochKeySender<Ristretto255>>,
    /// Report of the bridge's state.
    pub(crate) report: BridgeReport,
}

type WaitingBridge = (Bridge<Ristretto255>, BridgeInputs<Ristretto255>);

/// Settings of a leader that grants system ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SystemIdSettings {
    /// MAVLink system ids, each `NAME=ID`.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) system_id: Vec<String>,
}

impl SystemIdSettings {
    /// Reads the grants.
    ///
    /// # Errors
    /// [`Error::Config`](quiver_service::Error::Config) naming the text that is none.
    pub(crate) fn read(&self) -> Result<SystemIds> {
        let mut table = SystemIds::new();
        for text in &self.system_id {
            let wrong = |what: &str| Error::config(format!("`system_id`: {text}: {what}"));
            let (name, id) = text.split_once('=').ok_or_else(|| wrong("write NAME=ID, such as edge-1=1"))?;
            let id = SystemIds::parse_id(id).map_err(|error| wrong(&error.to_string()))?;
            if table.of_name(name).is_some() {
                return Err(wrong("this name has a system id already"));
            }
            table.grant(name, id).map_err(|error| wrong(&error.to_string()))?;
        }
        Ok(table)
    }
}

impl MavlinkSettings {
    /// Returns true if there is to be a bridge.
    pub(crate) fn is_given(&self) -> bool {
        !self.mavlink.is_empty() || !self.carrier.is_empty() || self.mavlink_config.is_some()
    }

    /// Reads them, and the files that they name; `None` if nothing is given.
    ///
    /// # Errors
    /// The bridge's, with what to write instead; those of the files.
    pub(crate) fn read(&self) -> Result<Option<BridgeSettings>> {
        let file = self.mavlink_config.as_deref().map(read_text).transpose()?;
        let text = file.as_ref().map(|(path, content)| (path.as_str(), content.text().unwrap_or_default()));
        let given = Given { endpoints: &self.mavlink, carriers: &self.carrier, file: text };
        let read_key =
            |path: &str| private_file::read(Path::new(path), LONGEST_KEY).map_err(|error| error.to_string());
        let settings = BridgeSettings::read(given, read_key).map_err(|error| match &file {
            Some((path, content)) if content.is_private() && error.to_string().contains(path.as_str()) => {
                Error::config(format!("{path}: {}", content.explain(error)))
            }
            _ => failed(error),
        })?;
        if settings.is_none() && self.mavlink_log.is_some() {
            return Err(Error::config(
                "`mavlink_log`: there is nothing to log: give --mavlink and --carrier as well",
            ));
        }
        if let Some(directory) = &self.mavlink_log {
            private_file::refuse_if_no_directory(directory)?;
        }
        Ok(settings.map(|settings| self.with_outputs(settings)))
    }

    /// Adds what is told and logged.
    fn with_outputs(&self, mut settings: BridgeSettings) -> BridgeSettings {
        if let Some(directory) = &self.mavlink_log {
            let limit = self
                .mavlink_log_limit
                .map_or(FlightLogSettings::LIMIT, |megabytes| u64::from(megabytes) << 20);
            settings = settings.with_flight_log(FlightLogSettings::new(directory.clone(), limit));
        }
        if self.mavlink_state.is_zero() { settings } else { settings.with_state_every(self.mavlink_state) }
    }

    /// Finds out whether every port that is listened at can be had, before a token is used.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub(crate) async fn check_ports(&self) -> Result<()> {
        match self.read()? {
            Some(settings) => settings.check_ports().await.map_err(failed),
            None => Ok(()),
        }
    }

    /// Opens endpoints and carriers; `None` if nothing is given.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); the bridge's if a port is taken.
    pub(crate) async fn open(&self, deployment: &Deployment<Ristretto255>) -> Result<Option<OpenBridge>> {
        let Some(settings) = self.read()? else { return Ok(None) };
        let report = BridgeReport::default();
        let bridge = Bridge::open(settings, deployment.clone(), since_1970, report.clone()).await;
        let (epoch_keys, inputs) = bridge_channels();
        let waiting = Mutex::new(Some((bridge.map_err(failed)?, inputs)));
        Ok(Some(OpenBridge { waiting, epoch_keys: Arc::new(epoch_keys), report }))
    }
}

impl OpenBridge {
    /// Lets it work until `tasks` are dropped or the senders of its inputs are gone. It works once.
    pub(crate) fn start(&self, tasks: &mut JoinSet<()>, group: impl GroupServices<Ristretto255>) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((bridge, inputs)) = waiting {
            tasks.spawn(bridge.run(inputs, group));
        }
    }

    /// Adds its status to that of its drone.
    ///
    /// # Errors
    /// In words, if it cannot be written as JSON.
    pub(crate) fn report(&self, status: &mut Map<String, Value>) -> std::result::Result<(), String> {
        let own = serde_json::to_value(self.report.status()).map_err(|error| error.to_string())?;
        status.insert(STATUS.into(), own);
        Ok(())
    }
}

fn read_text(path: &Path) -> Result<(String, PublicFile)> {
    let shown = path.display().to_string();
    let content = private_file::read_public(path, LONGEST_FILE, "a file in mavlink-router's format")?;
    if content.text().is_none() {
        return Err(Error::config(format!("{shown}: not a text")));
    }
    Ok((shown, content))
}

/// The time, for MAVLink's own signatures; `None` while the clock says that this version does not exist yet.
fn since_1970() -> Option<Duration> {
    clock::set_now().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_without_anything_to_log_is_refused() {
        let settings = MavlinkSettings { mavlink_log: Some("logs".into()), ..MavlinkSettings::default() };
        let error = settings.read().unwrap_err().to_string();
        assert!(error.contains("mavlink_log") && error.contains("--carrier"), "{error}");
    }

    #[test]
    fn grants_are_read_and_mistakes_say_what_to_write() {
        let read = |texts: &[&str]| {
            SystemIdSettings { system_id: texts.iter().map(ToString::to_string).collect() }.read()
        };
        let table = read(&["edge-1=1", "gcs=255", "edge-2=70000", "edge-3=4294967295"]).unwrap();
        assert_eq!((table.holder(255), table.holder(70_000)), (Some("gcs"), Some("edge-2")));
        assert_eq!(table.holder(u32::MAX), Some("edge-3"));
        for (texts, part) in [
            (&["edge-1"][..], "write NAME=ID"),
            (&["edge-1=x"], "from 1 to 255"),
            (&["edge-1=0"], "from 1 to 255"),
            (&["edge-1=4294967296"], "4294967296 is not a system id"),
            (&["edge-1=-1"], "from 1 to 255"),
            (&["edge 1=1"], "not a member's name"),
            (&["a=1", "a=2"], "already"),
            (&["a=1", "b=1"], "granted to `a`"),
        ] {
            let error = read(texts).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("system_id"), "{error}");
        }
    }
}
