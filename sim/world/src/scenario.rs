//! Scenarios: worlds with their faults and events, written in TOML.
//!
//! A file defines nodes, radio, events, and what must be true at the end. All invariants hold in every
//! scenario without being asked for; `[expect]` adds what shows that the scenario happened.
//!
//! ```toml
//! title = "A flapping drone"
//! about = "edge-3 dies and comes back every few seconds while the group re-keys."
//! duration = "2m"              # until the last fault is over
//! settle = "1m"                # then everybody must have converged within this; by default the bound of the invariants
//!
//! [fleet]
//! members = 20
//!
//! [[event]]
//! at = "20s"
//! repeat = { every = "7s", times = 8 }
//! crash = { nodes = ["edge-3"], after = 2, down = "3s" }
//!
//! [[event]]
//! at = "90s"
//! rekey = true
//!
//! [expect]
//! members = 20
//! min-crashes = 8
//! ```
//!
//! | table or key | what it says |
//! |---|---|
//! | `[fleet]` | `members`, `strangers`, `kgcs`, `threshold`, `one-token`, `leaders`, `strategy`, `kem`; `stay-out`, `off`; `start-over`, `join-at`, `join-over` |
//! | `[leader]`, `[edge]` | timings: `validity`, `batching`, `batching-max`, `resend`, `challenge`, `absence`, `silence`; `retry`, `retry-max`, `admission`, `overlap` |
//! | `[radio]` | `preset`, `loss` or `burst = { rate, length }` of its frames, `rounds`, `coding`, `spread`, `repeats = { imin, doublings, k, intervals }`, `hostile`, `ignore-duty-cycle`, `arithmetic` |
//! | `[links]` | faults of whole messages, whatever the radio: `delay`, `jitter`, `loss`, `burst`, `duplicate`, `reorder`, `corrupt` |
//! | `[admission]` | `policy` over `x`, `y` and `battery`, `period`, `answers`: edges then join anonymously |
//! | `[mavlink]` | `frames-per-second`, `frame-bytes`, `bit-rate` of each: drones send MAVLink telemetry in the group's datagrams, leaders a heartbeat |
//! | `[churn]` | `from`, `until`, `edges`, `leaves-per-minute`, `joins-per-minute`, `crashes-per-minute`, `down` |
//! | `[mobility]` | `from`, `until`, `edges`, `side-metres`, `range-metres`, `metres-per-second`, `step` |
//! | `[[event]]` | `at`, `over`, `repeat`, and one of `start`, `stop`, `crash`, `join`, `leave`, `evict`, `revoke`, `capture`, `rekey`, `renew-kem`, `talk`, `links`, `links-of`, `radio`, `part`, `heal`, `skew`, `disk`, `replay`, `usurp`, `lie`, `repent`, `seize`, `order`, `approve`, `certify = { edges, x, y, battery }`, `decertify` |
//! | `[expect]` | `members`, `outside`, `min-terms`, `min-epochs`, `min-admitted`, `min-crashes`, `min-stalls`, `min-lost`, `min-blamed`, `enrolled`, `opened`, `liars`, `mavlink = { min-delivered, max-unopened, max-unopened-at-removal, max-outage-at-removal, max-shaped, max-added-bytes, max-air, min-hostile, min-refused }` |
//!
//! Nodes are named `kgc` (if there is one), `kgc-1`, `kgcs`, `leader-0`, `leaders`, `edge-7`, `edge-0..9`
//! (both included), `edges` and `everyone`.
//!
//! Unknown keys, impossible values and fleets that do not fit into memory are refused with file, line and key
//! ([`ScenarioError`]).

mod churn;
mod error;
mod expect;
mod exports;
mod flight_plan;
mod links;
mod mobility;
mod names;
mod run;
mod script;
mod settings;
mod shipped;

use std::time::Duration;

use quiver_scenario_format::File;

pub use self::error::ScenarioError;
pub use self::expect::{Expectations, ExpectedTelemetry, Tally};
pub use self::exports::{Exports, Recording};
pub use self::run::ScenarioRun;
pub use self::shipped::{SHIPPED, shipped};
use crate::radio::cycles::Arithmetic;
use crate::radio::{Loss, Preset};
use crate::trace::DronePaths;
use crate::{Action, AirSetup, Setup};

/// A world with its faults and events.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name of the file, without folder and extension.
    pub name: String,
    /// A line.
    pub title: String,
    /// Description of the events and their purpose.
    pub about: String,
    /// The world, with the faults of its links at first.
    pub setup: Setup,
    /// Radio over which they talk.
    pub radio: RadioPlan,
    /// Actions, in order of time.
    pub script: Vec<(Duration, Action)>,
    /// Paths on which edges fly, if they do.
    pub places: Option<DronePaths>,
    /// Time at which the last fault is over.
    pub duration: Duration,
    /// Time after it within which the world must converge.
    pub settle: Duration,
    /// Expectations of the end, beside the invariants.
    pub expect: Expectations,
}

/// Radio over which the nodes talk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RadioPlan {
    /// The preset.
    pub preset: Preset,
    /// Losses of frames on its links.
    pub loss: Loss,
    /// Number of times that a broadcast frame is sent.
    pub rounds: u32,
    /// True if broadcasts of several frames have parity frames. They have none if `rounds` is above 1.
    pub coding: bool,
    /// True if senders may exceed the legal duty cycle.
    pub ignore_duty_cycle: bool,
    /// Curve arithmetic of the drones.
    pub arithmetic: Arithmetic,
}

impl RadioPlan {
    /// The air of such a world.
    pub fn air(&self) -> AirSetup {
        let profile = self.preset.profile().with_rounds(self.rounds);
        let profile = if self.coding { profile.with_coding() } else { profile };
        let profile = if self.ignore_duty_cycle { profile.without_duty_cycle() } else { profile };
        AirSetup { profile, loss: self.loss, arithmetic: self.arithmetic }
    }
}

/// Options for reading a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Bytes of memory its world may take; `None` if unknown.
    pub memory: Option<u64>,
    /// A seed in place of the file's.
    pub seed: Option<u64>,
}

impl Scenario {
    /// Reads a scenario. `file` is what errors call it; its stem becomes the scenario's name.
    ///
    /// # Errors
    /// With file, line, column and key, if the text is no TOML, has an unknown key or an impossible value, or
    /// asks for more drones than fit into memory.
    pub fn parse(file: &str, text: &str, reading: ReadOptions) -> Result<Self, ScenarioError> {
        let source = error::SourceText { file, text };
        let raw = File::read(text).map_err(|error| source.toml(&error))?;
        script::read(&source, &raw, reading)
    }

    /// Number of edges.
    pub fn edges(&self) -> u32 {
        self.setup.members + self.setup.strangers
    }
}

/// The part of a path that names a scenario.
fn stem(file: &str) -> String {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    base.strip_suffix(".toml").unwrap_or(base).to_owned()
}
