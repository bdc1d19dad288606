//! Traces: what every node of a world held and when, who led, what failed, which messages flew.
//!
//! A [`TraceRecorder`] is a [`StepObserver`](crate::StepObserver); what it gives, a [`Trace`], is serialised
//! into the page that plays it. Times are microseconds since the world began, rounded up: what happened until
//! a whole microsecond is what is recorded until then. Nodes are numbers: the KGCs, then the leaders, then
//! the edges.
//!
//! | what | as |
//! |---|---|
//! | a node's power, key, second factor, links, capture, story | [`facts`](Trace::facts): `[since the fact before, node, what, argument]` |
//! | a message over one link | [`hops`](Trace::hops): `[since the hop before, from, to, purpose, time under way or -1 if lost]` |
//! | epochs, faults, what operators and the adversary do | [`events`](Trace::events) |
//! | where drones are | [`places`](Trace::places) |
//!
//! A drone is *current* while it holds the newest epoch that any leader made, *behind* while it holds an
//! older one, and *out* while it holds none.

mod descriptions;
mod recorder;

use std::time::Duration;

use quiver_ainq::Epoch;
use serde::{Serialize, Serializer};

pub(crate) use self::descriptions::describe;
pub use self::recorder::TraceRecorder;

/// Purposes of messages; a hop names one by its index.
pub const PURPOSES: [&str; 6] = ["enrolment", "joining", "keys", "acknowledgements", "messages", "other"];

/// Kind of fact about a node. The numbers are those of the serialised form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// The node is switched on.
    On = 0,
    /// The node is off.
    Off = 1,
    /// A drone holds the key of an epoch (index in [`Trace::epochs`]), or none (-1).
    Holds = 2,
    /// A leader is in office since this epoch of its own, or leads no more (-1).
    Leads = 3,
    /// The adversary has a copy of its state.
    Captured = 4,
    /// No leader and it hear each other (1), or one does again (0).
    CutOff = 5,
    /// An event befell the node: index in [`Trace::texts`].
    Story = 6,
    /// A drone shares this second factor with the leader of the epoch that it holds (index in
    /// [`Trace::kems`]), or none (-1). -2 of a drone that was admitted without a name.
    SecondFactor = 7,
}

/// A fact: microseconds since the one before, node, [`What`], argument.
pub type Fact = (u64, u32, u8, i64);

/// A hop: microseconds since the one before, from, to, index in [`PURPOSES`], microseconds under way (-1:
/// lost).
pub type HopRow = (u64, u32, u32, u8, i64);

/// A second factor: name of its parameter set, number of the leader's terms to which it was stepped, and time
/// of the exchange that it comes from.
pub type SecondFactor = (String, u64, u64);

/// Kind of an event on the time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A part of a run.
    Phase,
    /// A leader made an epoch.
    Epoch,
    /// Another leader leads.
    Leader,
    /// A fault begins or ends.
    Fault,
    /// The adversary does something.
    Adversary,
    /// An operator or an application does something.
    Command,
    /// An invariant did not hold.
    Violation,
}

/// An event on the time line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceEvent {
    /// Time at which it began.
    pub at: u64,
    /// Time at which what it began is over, if it lasts and ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Kind of the event.
    pub kind: EventKind,
    /// The node, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Words of the event.
    pub text: String,
    /// Number of events of the kind, one after the other.
    pub times: u32,
}

/// A place of a drone at a time: metres to the east and north of the middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DronePosition {
    /// Time since the world began.
    pub at: Duration,
    /// Metres to the east.
    pub x: f64,
    /// Metres to the north.
    pub y: f64,
}

impl Serialize for DronePosition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let decimetres = |metres: f64| (metres * 10.0).round() / 10.0;
        (micros(self.at), decimetres(self.x), decimetres(self.y)).serialize(serializer)
    }
}

/// Paths of drones. Between two places they fly straight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DronePaths {
    /// The square they are in reaches so many metres from its middle.
    reach: f64,
    /// Leaders, in the middle, hear so many metres far.
    range: Option<f64>,
    /// Squares in which a policy admits drones, from north-west to south-east, as rows of `0` and `1`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    admitted: Vec<String>,
    /// Paths by drone, in order of time.
    paths: Vec<Vec<DronePosition>>,
}

impl DronePaths {
    /// No place of so many drones.
    pub(crate) fn new(reach: f64, range: Option<f64>, edges: u32) -> Self {
        Self { reach, range, admitted: Vec::new(), paths: vec![Vec::new(); edges as usize] }
    }

    /// Paths by drone, in order of time.
    #[must_use]
    pub fn paths(&self) -> &[Vec<DronePosition>] {
        &self.paths
    }

    /// A drone is there.
    pub(crate) fn stand(&mut self, edge: u32, place: DronePosition) {
        if let Some(path) = self.paths.get_mut(edge as usize) {
            path.push(place);
        }
    }
}

/// A run, to be played again.
#[derive(Clone, Debug, Serialize)]
pub struct Trace {
    /// Number of KGCs.
    pub kgcs: u16,
    /// Number of leaders.
    pub leaders: u16,
    /// Number of edges.
    pub edges: u32,
    /// End of the trace.
    pub end: u64,
    /// The epochs: round, ordinal of the leader, counter.
    #[serde(serialize_with = "numbers")]
    pub epochs: Vec<Epoch>,
    /// Second factors of drones and leaders.
    pub kems: Vec<SecondFactor>,
    /// Names of purposes: [`PURPOSES`].
    pub purposes: [&'static str; 6],
    /// Texts of stories.
    pub texts: Vec<String>,
    /// Facts, in order of time.
    pub facts: Vec<Fact>,
    /// Hops, in order of their sending.
    pub hops: Vec<HopRow>,
    /// Hops that are not listed: the second in which they were sent, and how many for each purpose.
    pub counted: Vec<(u64, [u32; 6])>,
    /// Events of the time line, in order of time.
    pub events: Vec<TraceEvent>,
    /// Paths of the drones; `None` if they have no place.
    pub places: Option<DronePaths>,
    /// Failures, in words.
    pub failures: Vec<String>,
    /// Parts that are left out because they were too much, in words.
    pub left_out: Vec<String>,
}

fn numbers<S: Serializer>(epochs: &[Epoch], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(epochs.iter().map(|epoch| (epoch.round(), epoch.ordinal(), epoch.counter)))
}

/// Microseconds, rounded up.
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX)
}
