//! MAVLink programs beside a drone, joined to its group's datagrams: settings, and the bridge of a service.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use quiver_ainq::{Deployment, Ristretto255};
use quiver_bridge::{
    Bridge, BridgeReport, BridgeSettings, Feed, FlightLogSettings, Given, GroupServices, Inputs, feed,
};
use serde::{Deserialize, Serialize, Serializer};
use tokio::task::JoinSet;

use super::request::Answered;
use super::{Error, Result};
use crate::private_file::PublicFile;
use crate::{clock, duration, private_file};

/// The longest file in mavlink-router's format, in bytes.
const LONGEST_FILE: u64 = 256 * 1024;
/// The longest file with a key for MAVLink signing: 64 digits, and white space.
const LONGEST_KEY: u64 = 256;
/// Pause between two reports of the security state to programs, unless set.
const STATE_EVERY: Duration = Duration::from_secs(5);

/// Flags of a service with MAVLink programs beside it.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct MavlinkArgs {
    /// Where a MAVLink program (autopilot, ground station) is connected. `udpin:HOST:PORT` listens,
    /// udpout:HOST:PORT sends, tcp:HOST:PORT, tcpin:HOST:PORT, serial:/dev/ttyACM0:57600; may be repeated.
    /// Its frames go to the group as encrypted datagrams; without a valid group key nothing passes
    #[arg(long, value_name = "ENDPOINT", help_heading = "MAVLink")]
    pub mavlink: Vec<String>,
    /// Carrier of these datagrams, such as star:HOST:PORT. `star:HOST:PORT` (the leader's relay),
    /// relay:HOST:PORT (is that relay), udp:LISTEN+PEER+PEER, multicast:GROUP:PORT, broadcast:ADDRESS:PORT,
    /// serial:/dev/ttyUSB0:57600 (a radio modem), tunnel:/dev/ttyUSB0:57600 (one that takes MAVLink alone);
    /// may be repeated
    #[arg(long, value_name = "CARRIER", help_heading = "MAVLink")]
    pub carrier: Vec<String>,
    /// Endpoints, filters and carriers in mavlink-router's format, with carriers under [QuiverEndpoint NAME]
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "MAVLink")]
    pub mavlink_config: Option<PathBuf>,
    /// Write logs of flights into this directory, which is this service's alone: what passes as tlogs, and what is
    /// dropped, with the reason, as JSON lines. They are plain MAVLink, for their owner alone (mode 600)
    #[arg(long, value_name = "DIR", hide_short_help = true, help_heading = "MAVLink")]
    pub mavlink_log: Option<PathBuf>,
    /// Megabytes of all logs in that directory; the oldest make room for new ones [default: 256]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..=1_000_000), hide_short_help = true, help_heading = "MAVLink")]
    pub mavlink_log_limit: Option<u32>,
    /// How often programs at this end are told the security state as NAMED_VALUE_INT messages; 0s for never
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = state_interval, hide_short_help = true, help_heading = "MAVLink")]
    #[serde(serialize_with = "write_interval")]
    pub mavlink_state: Option<Duration>,
}

fn write_interval<S: Serializer>(
    every: &Option<Duration>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    match every {
        Some(every) => duration::serialize(every, serializer),
        None => serializer.serialize_none(),
    }
}

/// Reads how often the state is told: it takes little of a serial line, and not more often than is of use.
fn state_interval(text: &str) -> std::result::Result<Duration, String> {
    let every = duration::parse(text)?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(3600);
    if every.is_zero() || allowed.contains(&every) {
        Ok(every)
    } else {
        Err("from 1s to 1h, or 0s for never".into())
    }
}

/// Settings of the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MavlinkSettings {
    /// Endpoints.
    #[serde(deserialize_with = "crate::config::list")]
    pub mavlink: Vec<String>,
    /// Carriers.
    #[serde(deserialize_with = "crate::config::list")]
    pub carrier: Vec<String>,
    /// A file in mavlink-router's format.
    pub mavlink_config: Option<PathBuf>,
    /// Directory of logs of flights.
    pub mavlink_log: Option<PathBuf>,
    /// Megabytes of all of these logs.
    #[serde(default, deserialize_with = "crate::config::optional_whole::<_, 1, 1_000_000>")]
    pub mavlink_log_limit: Option<u32>,
    /// Pause between two reports of the security state to programs; zero for never.
    #[serde(with = "crate::duration")]
    pub mavlink_state: Duration,
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
pub struct OpenBridge {
    bridge: Bridge<Ristretto255>,
    inputs: Inputs<Ristretto255>,
    /// Tells it of the group.
    pub feed: Arc<Feed<Ristretto255>>,
    /// Report of the bridge's state.
    pub report: BridgeReport,
}

impl MavlinkSettings {
    /// Returns true if there is to be a bridge.
    #[must_use]
    pub fn is_given(&self) -> bool {
        !self.mavlink.is_empty() || !self.carrier.is_empty() || self.mavlink_config.is_some()
    }

    /// Reads them, and the files that they name; `None` if nothing is given.
    ///
    /// # Errors
    /// [`Error::Bridge`] with what to write instead; those of the files.
    pub fn read(&self) -> Result<Option<BridgeSettings>> {
        let file = self.mavlink_config.as_deref().map(read_text).transpose()?;
        let text = file.as_ref().map(|(path, content)| (path.as_str(), content.text().unwrap_or_default()));
        let given = Given { endpoints: &self.mavlink, carriers: &self.carrier, file: text };
        let read_key =
            |path: &str| private_file::read(Path::new(path), LONGEST_KEY).map_err(|error| error.to_string());
        let settings = BridgeSettings::read(given, read_key).map_err(|error| match &file {
            Some((path, content)) if content.is_private() && error.to_string().contains(path.as_str()) => {
                Error::config(format!("{path}: {}", content.explain(error)))
            }
            _ => error.into(),
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
    pub async fn check_ports(&self) -> Result<()> {
        match self.read()? {
            Some(settings) => Ok(settings.check_ports().await?),
            None => Ok(()),
        }
    }

    /// Opens endpoints and carriers; `None` if nothing is given.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); [`Error::Bridge`] if a port is taken.
    pub async fn open(&self, deployment: &Deployment<Ristretto255>) -> Result<Option<OpenBridge>> {
        let Some(settings) = self.read()? else { return Ok(None) };
        let report = BridgeReport::default();
        let bridge = Bridge::open(settings, deployment.clone(), since_1970, report.clone()).await?;
        let (feed, inputs) = feed();
        Ok(Some(OpenBridge { bridge, inputs, feed: Arc::new(feed), report }))
    }
}

impl OpenBridge {
    /// Lets it work until `tasks` are dropped or the feed is gone.
    pub fn start(self, tasks: &mut JoinSet<()>, group: impl GroupServices<Ristretto255>) {
        tasks.spawn(self.bridge.run(self.inputs, group));
    }
}

/// Adds the bridge's status to that of its drone, under `mavlink`.
///
/// # Errors
/// The error that was answered.
pub fn with_status(answered: Answered, report: Option<&BridgeReport>) -> Answered {
    let mut status = answered?;
    if let Some(report) = report
        && let Some(status) = status.as_object_mut()
    {
        let mavlink = serde_json::to_value(report.status()).map_err(|error| error.to_string())?;
        status.insert("mavlink".into(), mavlink);
    }
    Ok(status)
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
    fn state_is_told_seldom_or_never() {
        assert_eq!(state_interval("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(state_interval("0s"), Ok(Duration::ZERO));
        for text in ["100ms", "2h", "5"] {
            assert!(state_interval(text).is_err(), "{text}");
        }
    }

    #[test]
    fn log_without_anything_to_log_is_refused() {
        let settings = MavlinkSettings { mavlink_log: Some("logs".into()), ..MavlinkSettings::default() };
        let error = settings.read().unwrap_err().to_string();
        assert!(error.contains("mavlink_log") && error.contains("--carrier"), "{error}");
    }
}
