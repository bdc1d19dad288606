//! Counts of frames and datagrams by outcome: the status of a bridge, and its metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use quiver_datagram::DatagramCounters;
use serde::{Deserialize, Serialize};

use crate::flight_log::FlightLogStatus;
use crate::frame_drop::FrameDrop;

/// Bounds of the histogram of delays, in seconds.
const DELAYS: [f64; 9] = [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25];

/// Way of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FrameDirection {
    /// Frames from a local program to the group.
    ToGroup,
    /// Frames from the group to a local program.
    FromGroup,
    /// Frames between local programs.
    Local,
}

impl FrameDirection {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ToGroup => "to group",
            Self::FromGroup => "from group",
            Self::Local => "local",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FrameLabels {
    way: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DatagramLabels {
    what: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CarrierLabels {
    carrier: String,
    what: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndpointLabels {
    endpoint: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WayLabels {
    way: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LogLabels {
    result: &'static str,
}

/// Status and metrics of a bridge. Clones are of the same.
#[derive(Clone, Debug)]
pub struct BridgeReport {
    status: Arc<Mutex<BridgeStatus>>,
    frames: Family<FrameLabels, Counter>,
    datagrams: Family<DatagramLabels, Counter>,
    carriers: Family<CarrierLabels, Counter>,
    delays: Family<WayLabels, Histogram, fn() -> Histogram>,
    open: Gauge,
    links: Family<EndpointLabels, Gauge>,
    senders: Gauge,
    logged: Family<LogLabels, Counter>,
}

impl Default for BridgeReport {
    fn default() -> Self {
        Self {
            status: Arc::default(),
            frames: Family::default(),
            datagrams: Family::default(),
            carriers: Family::default(),
            delays: Family::new_with_constructor(|| Histogram::new(DELAYS)),
            open: Gauge::default(),
            links: Family::default(),
            senders: Gauge::default(),
            logged: Family::default(),
        }
    }
}

/// State of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeStatus {
    /// True if there is a valid key: otherwise nothing passes.
    pub open: bool,
    /// True if frames of local programs pass to the group.
    #[serde(default)]
    pub passes: bool,
    /// The system id granted to this drone, or that was when it had a key last.
    pub system_id: Option<u32>,
    /// System ids granted in the group.
    pub system_ids: usize,
    /// Reason why frames do not pass, or soon will not, for people.
    pub trouble: Option<String>,
    /// Endpoints at which programs are connected.
    pub endpoints: Vec<EndpointStatus>,
    /// Carriers of datagrams.
    pub carriers: Vec<CarrierStatus>,
    /// Members that datagrams come from.
    pub senders: Vec<SenderReport>,
    /// Numbers of frames by way and result.
    pub frames: BTreeMap<String, u64>,
    /// Numbers of datagrams by what became of them, those that are not 0.
    pub datagrams: BTreeMap<String, u64>,
    /// Logs of flights, if they are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flight_log: Option<FlightLogStatus>,
    /// Numbers of the leader's messages about the table of system ids by what became of them, those that are
    /// not 0.
    #[serde(default)]
    pub tables: BTreeMap<String, u64>,
}

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointStatus {
    /// Endpoint as it is spelled in the configuration.
    pub endpoint: String,
    /// Connections.
    pub links: usize,
    /// Systems heard behind it.
    pub systems: Vec<u32>,
    /// Frames that its programs did not take in time.
    #[serde(default)]
    pub dropped: u64,
    /// Reason why its programs may not see systems with ids above 255, for people.
    #[serde(default)]
    pub narrow: Option<String>,
    /// Frames with system ids above 255 for programs that have shown none of their own: given to them, and kept
    /// from those that know 8 bits alone.
    #[serde(default)]
    pub wide_frames: (u64, u64),
}

/// A carrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierStatus {
    /// Carrier as it is spelled in the configuration.
    pub carrier: String,
    /// Datagrams sent, by number and bytes.
    pub sent: (u64, u64),
    /// Datagrams received, by number and bytes.
    pub received: (u64, u64),
    /// Datagrams that it did not take.
    pub dropped: u64,
    /// Datagrams forwarded, and not: of a relay.
    pub forwarded: (u64, u64),
}

/// A member that datagrams come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderReport {
    /// Slot of the sender; `None` for the leader.
    pub slot: Option<u32>,
    /// Name of the sender, if it signed it.
    pub name: Option<String>,
    /// The system id granted to it.
    pub system_id: Option<u32>,
    /// Number of datagrams in this epoch.
    pub received: u64,
    /// Milliseconds since the last.
    pub heard_ago: Option<u64>,
}

impl BridgeStatus {
    /// Describes the state for people, in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let passing = match (&self.trouble, self.open) {
            (Some(trouble), _) => {
                let passing = if self.passes { "passing, but" } else { "not passing" };
                // Texts for ground stations say who speaks; a line of the status need not.
                format!("{passing} ({})", trouble.trim_start_matches("Quiver: "))
            }
            (None, true) => "passing".into(),
            (None, false) => "not passing (no valid group key)".into(),
        };
        let id = self.system_id.map_or_else(|| "no system id".into(), |id| format!("system {id}"));
        let passed = |way: FrameDirection| self.frames.get(&key(way, "passed")).copied().unwrap_or(0);
        let dropped: u64 =
            self.frames.iter().filter(|(key, _)| !key.ends_with(": passed")).map(|(_, number)| number).sum();
        let log = self.flight_log.as_ref().and_then(|log| log.trouble.as_deref().zip(Some(log.lost)));
        let log = log.map_or_else(String::new, |(trouble, lost)| format!("; {lost} not logged ({trouble})"));
        let narrow: String = self
            .endpoints
            .iter()
            .filter_map(|one| one.narrow.as_ref())
            .map(|why| format!("; {why}"))
            .collect();
        format!(
            "{passing}, {id}, {}, {}, {}; frames: {} to the group, {} from it, {dropped} dropped{narrow}{log}",
            count(self.endpoints.len(), "endpoint"),
            count(self.carriers.len(), "carrier"),
            count(self.senders.len(), "sender"),
            passed(FrameDirection::ToGroup),
            passed(FrameDirection::FromGroup),
        )
    }
}

/// Writes a number of things for people.
fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn key(way: FrameDirection, result: &str) -> String {
    format!("{}: {result}", way.name())
}

impl BridgeReport {
    /// Registers the metrics, under `mavlink`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("mavlink");
        registry.register("frames", "MAVLink frames, by way and result", self.frames.clone());
        registry.register(
            "datagrams",
            "Datagrams and payloads, by what became of them",
            self.datagrams.clone(),
        );
        registry.register("carriers", "Datagrams and bytes of each carrier", self.carriers.clone());
        let help = "Time that frames spend in this process";
        registry.register_with_unit("delay", help, Unit::Seconds, self.delays.clone());
        registry.register(
            "open",
            "1 while there is a valid group key; otherwise nothing passes",
            self.open.clone(),
        );
        registry.register("links", "Connections of each endpoint", self.links.clone());
        registry.register("senders", "Members that datagrams come from", self.senders.clone());
        registry.register("log_records", "Records of flight logs, by result", self.logged.clone());
    }

    /// The status, not older than a second.
    #[must_use]
    pub fn status(&self) -> BridgeStatus {
        // Cloned, because the bridge takes this lock for every frame and must not wait for a reader.
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a frame that passes, or is dropped.
    pub(crate) fn count(&self, way: FrameDirection, result: Result<(), FrameDrop>) {
        // Labels are of an enum, so that neither programs nor members can add time series.
        let result = result.err().map_or("passed", FrameDrop::label);
        self.frames.get_or_create(&FrameLabels { way: way.name(), result }).inc();
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        *status.frames.entry(key(way, result)).or_default() += 1;
    }

    /// Notes the time that a frame took from its arrival to its hand-over.
    pub(crate) fn delayed(&self, way: FrameDirection, delay: Duration) {
        self.delays.get_or_create(&WayLabels { way: way.name() }).observe(delay.as_secs_f64());
    }

    /// Publishes the rest of a status, and what counters have grown by.
    pub(crate) fn publish(&self, status: BridgeStatus, counters: &DatagramCounters) {
        self.open.set(i64::from(status.open));
        self.senders.set(i64::try_from(status.senders.len()).unwrap_or(i64::MAX));
        for endpoint in &status.endpoints {
            let labels = EndpointLabels { endpoint: endpoint.endpoint.clone() };
            let links = i64::try_from(endpoint.links).unwrap_or(i64::MAX);
            self.links.get_or_create(&labels).set(links);
        }
        for (what, number) in counters.iter() {
            raise(&self.datagrams.get_or_create(&DatagramLabels { what }), number);
        }
        for carrier in &status.carriers {
            let numbers = [
                ("sent", carrier.sent.0),
                ("sent bytes", carrier.sent.1),
                ("received", carrier.received.0),
                ("received bytes", carrier.received.1),
                ("dropped", carrier.dropped),
                ("forwarded", carrier.forwarded.0),
                ("refused", carrier.forwarded.1),
            ];
            for (what, number) in numbers {
                let labels = CarrierLabels { carrier: carrier.carrier.clone(), what };
                raise(&self.carriers.get_or_create(&labels), number);
            }
        }
        if let Some(log) = &status.flight_log {
            for (result, number) in [("written", log.written), ("lost", log.lost), ("withheld", log.withheld)]
            {
                raise(&self.logged.get_or_create(&LogLabels { result }), number);
            }
        }
        let datagrams = counters.iter().filter(|(_, number)| *number > 0);
        let datagrams = datagrams.map(|(what, number)| (what.into(), number)).collect();
        let mut held = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        // Frames are counted here as they pass, and the bridge's status has no numbers of them.
        let frames = std::mem::take(&mut held.frames);
        *held = BridgeStatus { frames, datagrams, ..status };
    }
}

/// Raises a counter to this number.
fn raise(counter: &Counter, to: u64) {
    // A counter cannot be set, and the datagrams' machine knows totals alone. Only the bridge's task raises
    // counters, so that nothing comes between reading and adding.
    counter.inc_by(to.saturating_sub(counter.get()));
}
