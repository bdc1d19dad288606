//! The format of a scenario file: its tables and keys, each with its place in the text, so that an error can point at it.
//!
//! A crate of its own, because what reads TOML is much code that runs once: release builds compile it without optimisation.

#![allow(
    missing_docs,
    reason = "a field is a key of the file, and the module `scenario` of quiver-world has a table of them"
)]

use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_kem::KemSetting;
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

/// A length of time such as `"1m 30s"`.
#[derive(Clone, Copy, Debug)]
pub struct DurationText(pub Duration);

impl<'de> Deserialize<'de> for DurationText {
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
pub struct File {
    pub title: Spanned<String>,
    pub about: String,
    #[serde(default = "one")]
    pub seed: u64,
    pub duration: Spanned<DurationText>,
    pub settle: Option<Spanned<DurationText>>,
    pub fleet: ScenarioFleet,
    #[serde(default)]
    pub leader: LeaderTable,
    #[serde(default)]
    pub edge: EdgeTable,
    #[serde(default)]
    pub links: LinksTable,
    pub radio: Option<Spanned<RadioTable>>,
    pub admission: Option<Spanned<AdmissionTable>>,
    pub mavlink: Option<Spanned<MavlinkTable>>,
    pub churn: Option<Spanned<Churn>>,
    pub mobility: Option<Spanned<Mobility>>,
    #[serde(default)]
    pub event: Vec<Spanned<EventTable>>,
    #[serde(default)]
    pub expect: Expect,
}

impl File {
    /// Reads a file.
    ///
    /// # Errors
    /// With the place, if the text is no TOML, lacks a key, has one that is unknown, or a value of another kind.
    pub fn read(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }
}

fn one() -> u64 {
    1
}

/// Nodes of the world.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScenarioFleet {
    pub members: Spanned<u64>,
    pub strangers: Option<Spanned<u64>>,
    /// KGCs, and how many of them issue keys; by default more than half.
    pub kgcs: Option<Spanned<u16>>,
    pub threshold: Option<Spanned<u16>>,
    /// Strangers that race for one token.
    pub one_token: Option<Names>,
    pub leaders: Option<Spanned<u64>>,
    #[serde(default)]
    pub strategy: StrategyKind,
    /// Second factor of pairwise secrets.
    #[serde(default)]
    pub kem: KemSetting,
    /// Members that do not join by themselves at the beginning.
    pub stay_out: Option<Names>,
    /// Nodes that are not switched on at the beginning.
    pub off: Option<Names>,
    /// Time over which the edges are switched on.
    pub start_over: Option<Spanned<DurationText>>,
    /// Time at which the first member joins, and the time over which all do.
    pub join_at: Option<Spanned<DurationText>>,
    pub join_over: Option<Spanned<DurationText>>,
}

/// Curve arithmetic of the drones.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArithmeticWord {
    #[default]
    Portable,
    Assembly,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LeaderTable {
    pub validity: Option<Spanned<DurationText>>,
    pub batching: Option<Spanned<DurationText>>,
    pub batching_max: Option<Spanned<DurationText>>,
    pub resend: Option<Spanned<DurationText>>,
    pub challenge: Option<Spanned<DurationText>>,
    pub absence: Option<Spanned<DurationText>>,
    /// Time for which the active leader may be silent, if there are several.
    pub silence: Option<Spanned<DurationText>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EdgeTable {
    pub retry: Option<Spanned<DurationText>>,
    pub retry_max: Option<Spanned<DurationText>>,
    pub admission: Option<Spanned<DurationText>>,
    pub overlap: Option<Spanned<DurationText>>,
}

/// Faults of links, whatever the radio. Links without a setting stay sound.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinksTable {
    pub delay: Option<Spanned<DurationText>>,
    pub jitter: Option<Spanned<DurationText>>,
    pub loss: Option<Spanned<f64>>,
    pub burst: Option<Spanned<BurstTable>>,
    pub duplicate: Option<Spanned<f64>>,
    pub reorder: Option<Spanned<f64>>,
    pub corrupt: Option<Spanned<f64>>,
}

/// Loss of this rate, in bursts of this length on average.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BurstTable {
    pub rate: f64,
    pub length: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RadioTable {
    pub preset: Spanned<String>,
    pub loss: Option<Spanned<f64>>,
    pub burst: Option<Spanned<BurstTable>>,
    pub rounds: Option<Spanned<u32>>,
    pub coding: Option<bool>,
    /// Radius of the disc of members in ranges of the radio; `None`: all nodes hear each other.
    pub spread: Option<Spanned<f64>>,
    /// Manner in which members repeat re-keys.
    pub repeats: Option<Spanned<RepeatsTable>>,
    /// The first so many members repeat false frames.
    #[serde(default)]
    pub hostile: u32,
    #[serde(default)]
    pub ignore_duty_cycle: bool,
    #[serde(default)]
    pub arithmetic: ArithmeticWord,
}

/// Timers of the members that repeat re-keys.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RepeatsTable {
    pub imin: DurationText,
    pub doublings: u8,
    pub k: u8,
    pub intervals: u8,
}

/// Policy and terms of anonymous admission.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AdmissionTable {
    /// `None`: to be inside of a circle, with some battery left.
    pub policy: Option<Spanned<String>>,
    pub period: Option<Spanned<DurationText>>,
    pub answers: Option<u32>,
}

/// Telemetry of the drones in the group's datagrams.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MavlinkTable {
    /// Rate of each vehicle; `None`: 18.
    pub frames_per_second: Option<Spanned<f64>>,
    /// Bytes of the frames, in turn; `None`: those of 744 bytes per second.
    pub frame_bytes: Option<Spanned<Vec<usize>>>,
    /// Bits per second of a station; `None`: an equal part of the radio's.
    pub bit_rate: Option<Spanned<u32>>,
}

/// Certified fields of some drones from now on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Certify {
    pub edges: Names,
    pub x: i16,
    pub y: i16,
    pub battery: Spanned<u8>,
}

/// Edges that come, go and die at random.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Churn {
    pub from: Spanned<DurationText>,
    pub until: Spanned<DurationText>,
    pub edges: Names,
    pub leaves_per_minute: Option<Spanned<f64>>,
    pub joins_per_minute: Option<Spanned<f64>>,
    pub crashes_per_minute: Option<Spanned<f64>>,
    pub down: Option<Spanned<DurationText>>,
}

/// Edges that fly about in a square with all their peers in its middle.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mobility {
    pub from: Spanned<DurationText>,
    pub until: Spanned<DurationText>,
    pub edges: Names,
    pub side_metres: Spanned<f64>,
    pub range_metres: Spanned<f64>,
    pub metres_per_second: Spanned<f64>,
    pub step: Option<Spanned<DurationText>>,
}

/// Event of the script at a time. One action each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EventTable {
    pub at: Spanned<DurationText>,
    /// Spreads the nodes of the action evenly over this time.
    pub over: Option<Spanned<DurationText>>,
    pub repeat: Option<Spanned<Repeat>>,
    pub start: Option<Names>,
    pub stop: Option<Names>,
    pub crash: Option<Spanned<Crash>>,
    pub join: Option<Names>,
    pub leave: Option<Names>,
    pub evict: Option<Names>,
    pub revoke: Option<Names>,
    pub capture: Option<Names>,
    pub rekey: Option<Spanned<bool>>,
    pub renew_kem: Option<Names>,
    /// Certifies fields of anonymous edges.
    pub certify: Option<Spanned<Certify>>,
    /// Edges for which nothing more is certified.
    pub decertify: Option<Names>,
    pub talk: Option<Spanned<Talk>>,
    pub links: Option<Spanned<LinksTable>>,
    pub links_of: Option<Spanned<LinksOf>>,
    pub radio: Option<Spanned<RadioTable>>,
    pub part: Option<Spanned<PartitionAction>>,
    pub heal: Option<Spanned<bool>>,
    pub skew: Option<Spanned<Skew>>,
    pub disk: Option<Spanned<DiskTable>>,
    pub replay: Option<Spanned<Replay>>,
    pub usurp: Option<Spanned<Usurp>>,
    /// KGCs that begin, or cease, to hand out wrong shares.
    pub lie: Option<Names>,
    pub repent: Option<Names>,
    /// KGCs of which the adversary takes all that they have.
    pub seize: Option<Names>,
    /// An order is sealed to the second phase and handed on.
    pub order: Option<Spanned<bool>>,
    /// KGCs whose operators approve the second phase.
    pub approve: Option<Names>,
}

/// Nodes, by name.
pub type Names = Spanned<Vec<Spanned<String>>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Repeat {
    pub every: Spanned<DurationText>,
    pub times: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Crash {
    pub nodes: Names,
    /// Outputs it still brings about.
    #[serde(default)]
    pub after: u32,
    pub down: Spanned<DurationText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Talk {
    pub nodes: Names,
    #[serde(default)]
    pub signed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinksOf {
    pub nodes: Names,
    /// `None`: as all others again.
    pub faults: Option<Spanned<LinksTable>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PartitionAction {
    pub these: Names,
    /// `None`: from every other node.
    pub from: Option<Names>,
    /// Only what `these` send is stopped.
    #[serde(default)]
    pub one_way: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Skew {
    pub nodes: Names,
    pub seconds: i64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DiskTable {
    pub nodes: Names,
    pub state: Spanned<DiskWord>,
    /// Writes that fail, if the state is `failing`.
    pub writes: Option<Spanned<u32>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskWord {
    Sound,
    Full,
    Failing,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Replay {
    pub nodes: Names,
    /// Number of the messages sent so far, chosen at random, that each node receives again.
    pub messages: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Usurp {
    pub edge: Spanned<String>,
    pub rounds: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Expect {
    pub members: Option<u32>,
    pub outside: Option<Names>,
    #[serde(default)]
    pub min_terms: u64,
    #[serde(default)]
    pub min_epochs: u64,
    /// Anonymous memberships.
    #[serde(default)]
    pub min_admitted: u64,
    #[serde(default)]
    pub min_crashes: u64,
    #[serde(default)]
    pub min_stalls: u64,
    #[serde(default)]
    pub min_lost: u64,
    #[serde(default)]
    pub min_blamed: u64,
    /// Drones that are enrolled, one for each token.
    pub enrolled: Option<u32>,
    /// Number of openings of orders for the second phase.
    pub opened: Option<u32>,
    /// The KGCs that drones found to have sent them wrong shares, no more and no fewer.
    pub liars: Option<Names>,
    /// Bounds of what becomes of telemetry.
    pub mavlink: Option<Spanned<ExpectMavlink>>,
}

/// Bounds of what becomes of telemetry.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExpectMavlink {
    /// Share of all copies of frames that are delivered.
    pub min_delivered: Option<Spanned<f64>>,
    /// Copies that the radio brings and the layer does not open, but for the time after a removal.
    pub max_unopened: Option<u64>,
    /// Share of all copies that are not opened after a removal.
    pub max_unopened_at_removal: Option<Spanned<f64>>,
    /// The longest time for which what arrives of a sender is not opened, from a removal until ten seconds
    /// later.
    pub max_outage_at_removal: Option<Spanned<DurationText>>,
    /// Frames dropped by shaping.
    pub max_shaped: Option<u64>,
    /// Bytes that a frame takes more on the air than alone.
    pub max_added_bytes: Option<f64>,
    /// Share of the air's time that datagrams and announcements take.
    pub max_air: Option<Spanned<f64>>,
    /// Datagrams that captured vehicles sent, and datagrams that were not taken.
    #[serde(default)]
    pub min_hostile: u64,
    #[serde(default)]
    pub min_refused: u64,
}
