//! The format of a scenario file.

use std::time::Duration;

use quiver_ainq::StrategyKind;
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

/// A length of time such as `"1m 30s"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(pub(super) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_duration(&text).map(Self).map_err(|error| {
            de::Error::custom(format_args!(
                "{text:?} is not a length of time such as \"250ms\" or \"1m 30s\": {error}"
            ))
        })
    }
}

/// A whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) title: Spanned<String>,
    pub(super) about: String,
    #[serde(default = "one")]
    pub(super) seed: u64,
    pub(super) duration: Spanned<Span>,
    pub(super) settle: Option<Spanned<Span>>,
    pub(super) fleet: Fleet,
    #[serde(default)]
    pub(super) leader: LeaderTable,
    #[serde(default)]
    pub(super) edge: EdgeTable,
    #[serde(default)]
    pub(super) links: Links,
    pub(super) radio: Option<Spanned<Radio>>,
    pub(super) admission: Option<Spanned<AdmissionTable>>,
    pub(super) mavlink: Option<Spanned<MavlinkTable>>,
    pub(super) churn: Option<Spanned<Churn>>,
    pub(super) mobility: Option<Spanned<Mobility>>,
    #[serde(default)]
    pub(super) event: Vec<Spanned<Event>>,
    #[serde(default)]
    pub(super) expect: Expect,
}

fn one() -> u64 {
    1
}

/// Nodes of the world.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Fleet {
    pub(super) members: Spanned<u64>,
    pub(super) strangers: Option<Spanned<u64>>,
    /// KGCs, and how many of them issue keys; by default more than half.
    pub(super) kgcs: Option<Spanned<u16>>,
    pub(super) threshold: Option<Spanned<u16>>,
    /// Strangers that race for one token.
    pub(super) one_token: Option<Names>,
    pub(super) leaders: Option<Spanned<u64>>,
    #[serde(default)]
    pub(super) strategy: StrategyKind,
    /// Members that do not join by themselves at the beginning.
    pub(super) stay_out: Option<Names>,
    /// Nodes that are not switched on at the beginning.
    pub(super) off: Option<Names>,
    /// Time over which the edges are switched on.
    pub(super) start_over: Option<Spanned<Span>>,
    /// Time at which the first member joins, and the time over which all do.
    pub(super) join_at: Option<Spanned<Span>>,
    pub(super) join_over: Option<Spanned<Span>>,
}

/// Curve arithmetic of the drones.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ArithmeticWord {
    #[default]
    Portable,
    Assembly,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LeaderTable {
    pub(super) validity: Option<Spanned<Span>>,
    pub(super) batching: Option<Spanned<Span>>,
    pub(super) batching_max: Option<Spanned<Span>>,
    pub(super) resend: Option<Spanned<Span>>,
    pub(super) challenge: Option<Spanned<Span>>,
    pub(super) absence: Option<Spanned<Span>>,
    /// Time for which the active leader may be silent, if there are several.
    pub(super) silence: Option<Spanned<Span>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct EdgeTable {
    pub(super) retry: Option<Spanned<Span>>,
    pub(super) retry_max: Option<Spanned<Span>>,
    pub(super) admission: Option<Spanned<Span>>,
    pub(super) overlap: Option<Spanned<Span>>,
}

/// Faults of links, whatever the radio. What is not given stays sound.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Links {
    pub(super) delay: Option<Spanned<Span>>,
    pub(super) jitter: Option<Spanned<Span>>,
    pub(super) loss: Option<Spanned<f64>>,
    pub(super) burst: Option<Spanned<BurstTable>>,
    pub(super) duplicate: Option<Spanned<f64>>,
    pub(super) reorder: Option<Spanned<f64>>,
    pub(super) corrupt: Option<Spanned<f64>>,
}

/// Loss of this rate, in bursts of this length on average.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BurstTable {
    pub(super) rate: f64,
    pub(super) length: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Radio {
    pub(super) preset: Spanned<String>,
    pub(super) loss: Option<Spanned<f64>>,
    pub(super) burst: Option<Spanned<BurstTable>>,
    pub(super) rounds: Option<Spanned<u32>>,
    pub(super) coding: Option<bool>,
    /// Radius of the disc of members in ranges of the radio; `None`: all nodes hear each other.
    pub(super) spread: Option<Spanned<f64>>,
    /// Manner in which members repeat re-keys.
    pub(super) repeats: Option<Spanned<RepeatsTable>>,
    /// The first so many members repeat false frames.
    #[serde(default)]
    pub(super) hostile: u32,
    #[serde(default)]
    pub(super) ignore_duty_cycle: bool,
    #[serde(default)]
    pub(super) arithmetic: ArithmeticWord,
}

/// Timers of the members that repeat re-keys.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RepeatsTable {
    pub(super) imin: Span,
    pub(super) doublings: u8,
    pub(super) k: u8,
    pub(super) intervals: u8,
}

/// Policy and terms of anonymous admission.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct AdmissionTable {
    /// `None`: to be inside of a circle, with some battery left.
    pub(super) policy: Option<Spanned<String>>,
    pub(super) period: Option<Spanned<Span>>,
    pub(super) answers: Option<u32>,
}

/// Telemetry of the drones in the group's datagrams.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct MavlinkTable {
    /// Rate of each vehicle; `None`: 18.
    pub(super) frames_per_second: Option<Spanned<f64>>,
    /// Bytes of the frames, in turn; `None`: those of 744 bytes per second.
    pub(super) frame_bytes: Option<Spanned<Vec<usize>>>,
    /// Bits per second of a station; `None`: an equal part of the radio's.
    pub(super) bit_rate: Option<Spanned<u32>>,
}

/// Certified fields of some drones from now on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Certify {
    pub(super) edges: Names,
    pub(super) x: i16,
    pub(super) y: i16,
    pub(super) battery: Spanned<u8>,
}

/// Edges that come, go and die at random.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Churn {
    pub(super) from: Spanned<Span>,
    pub(super) until: Spanned<Span>,
    pub(super) edges: Names,
    pub(super) leaves_per_minute: Option<Spanned<f64>>,
    pub(super) joins_per_minute: Option<Spanned<f64>>,
    pub(super) crashes_per_minute: Option<Spanned<f64>>,
    pub(super) down: Option<Spanned<Span>>,
}

/// Edges that fly about in a square with all their peers in its middle.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Mobility {
    pub(super) from: Spanned<Span>,
    pub(super) until: Spanned<Span>,
    pub(super) edges: Names,
    pub(super) side_metres: Spanned<f64>,
    pub(super) range_metres: Spanned<f64>,
    pub(super) metres_per_second: Spanned<f64>,
    pub(super) step: Option<Spanned<Span>>,
}

/// Event of the script at a time. One action each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Event {
    pub(super) at: Spanned<Span>,
    /// Spreads the nodes of the action evenly over this time.
    pub(super) over: Option<Spanned<Span>>,
    pub(super) repeat: Option<Spanned<Repeat>>,
    pub(super) start: Option<Names>,
    pub(super) stop: Option<Names>,
    pub(super) crash: Option<Spanned<Crash>>,
    pub(super) join: Option<Names>,
    pub(super) leave: Option<Names>,
    pub(super) evict: Option<Names>,
    pub(super) revoke: Option<Names>,
    pub(super) capture: Option<Names>,
    pub(super) rekey: Option<Spanned<bool>>,
    /// Certifies fields of anonymous edges.
    pub(super) certify: Option<Spanned<Certify>>,
    /// Edges for which nothing more is certified.
    pub(super) decertify: Option<Names>,
    pub(super) talk: Option<Spanned<Talk>>,
    pub(super) links: Option<Spanned<Links>>,
    pub(super) links_of: Option<Spanned<LinksOf>>,
    pub(super) radio: Option<Spanned<Radio>>,
    pub(super) part: Option<Spanned<Part>>,
    pub(super) heal: Option<Spanned<bool>>,
    pub(super) skew: Option<Spanned<Skew>>,
    pub(super) disk: Option<Spanned<DiskTable>>,
    pub(super) replay: Option<Spanned<Replay>>,
    pub(super) usurp: Option<Spanned<Usurp>>,
    /// KGCs that begin, or cease, to hand out wrong shares.
    pub(super) lie: Option<Names>,
    pub(super) repent: Option<Names>,
    /// KGCs of which the adversary takes all that they have.
    pub(super) seize: Option<Names>,
    /// An order is sealed to the second phase and handed on.
    pub(super) order: Option<Spanned<bool>>,
    /// KGCs whose operators approve the second phase.
    pub(super) approve: Option<Names>,
}

/// Nodes, by name.
pub(super) type Names = Spanned<Vec<Spanned<String>>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Repeat {
    pub(super) every: Spanned<Span>,
    pub(super) times: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Crash {
    pub(super) nodes: Names,
    /// Outputs it still brings about.
    #[serde(default)]
    pub(super) after: u32,
    pub(super) down: Spanned<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Talk {
    pub(super) nodes: Names,
    #[serde(default)]
    pub(super) signed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LinksOf {
    pub(super) nodes: Names,
    /// `None`: as all others again.
    pub(super) faults: Option<Spanned<Links>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Part {
    pub(super) these: Names,
    /// `None`: from every other node.
    pub(super) from: Option<Names>,
    /// Only what `these` send is stopped.
    #[serde(default)]
    pub(super) one_way: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Skew {
    pub(super) nodes: Names,
    pub(super) seconds: i64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DiskTable {
    pub(super) nodes: Names,
    pub(super) state: Spanned<DiskWord>,
    /// Writes that fail, if the state is `failing`.
    pub(super) writes: Option<Spanned<u32>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DiskWord {
    Sound,
    Full,
    Failing,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Replay {
    pub(super) nodes: Names,
    /// Number of the messages sent so far, chosen at random, that each node receives again.
    pub(super) messages: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Usurp {
    pub(super) edge: Spanned<String>,
    pub(super) rounds: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Expect {
    pub(super) members: Option<u32>,
    pub(super) outside: Option<Names>,
    #[serde(default)]
    pub(super) min_terms: u64,
    #[serde(default)]
    pub(super) min_epochs: u64,
    /// Anonymous memberships.
    #[serde(default)]
    pub(super) min_admitted: u64,
    #[serde(default)]
    pub(super) min_crashes: u64,
    #[serde(default)]
    pub(super) min_stalls: u64,
    #[serde(default)]
    pub(super) min_lost: u64,
    #[serde(default)]
    pub(super) min_blamed: u64,
    /// Drones that are enrolled, one for each token.
    pub(super) enrolled: Option<u32>,
    /// Number of openings of orders for the second phase.
    pub(super) opened: Option<u32>,
    /// The KGCs that drones found to have sent them wrong shares, no more and no fewer.
    pub(super) liars: Option<Names>,
    /// Bounds of what becomes of telemetry.
    pub(super) mavlink: Option<Spanned<ExpectMavlink>>,
}

/// Bounds of what becomes of telemetry.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ExpectMavlink {
    /// Share of all copies of frames that are delivered.
    pub(super) min_delivered: Option<Spanned<f64>>,
    /// Copies that the radio brings and the layer does not open, but for the time after a removal.
    pub(super) max_unopened: Option<u64>,
    /// Share of all copies that are not opened after a removal.
    pub(super) max_unopened_at_removal: Option<Spanned<f64>>,
    /// The longest time for which what arrives of a sender is not opened, from a removal until ten seconds
    /// later.
    pub(super) max_outage_at_removal: Option<Spanned<Span>>,
    /// Frames dropped by shaping.
    pub(super) max_shaped: Option<u64>,
    /// Bytes that a frame takes more on the air than alone.
    pub(super) max_added_bytes: Option<f64>,
    /// Share of the air's time that datagrams and announcements take.
    pub(super) max_air: Option<Spanned<f64>>,
    /// Datagrams that captured vehicles sent, and datagrams that were not taken.
    #[serde(default)]
    pub(super) min_hostile: u64,
    #[serde(default)]
    pub(super) min_refused: u64,
}
