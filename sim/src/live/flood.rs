//! Floods a leader over loopback and measures the delay of its members' keys: strangers that publish, ask to
//! join, or show forged keys, and many anonymous joins at once.
//!
//! Everything runs in one process: leader, members, attackers. Attackers are nodes of their own, with keys
//! that nobody knows, send messages built before, and keep to a rate like that of an attacker with a line of
//! its own. A disconnected attacker comes back under another key, some times a second; all of them, and the
//! members, come from one address. Every group is measured quiet first, and then under each flood; the result
//! is the growth of the 99th percentile.

mod attacker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use quiver_ainq::{Ristretto255, StrategyKind};
use quiver_report::{Machine, Progress};
use quiver_world::run::Percentiles;
use serde::Serialize;

pub(crate) use self::attacker::Attack;
use super::check_files;
use super::phases;
use super::world::LiveWorld;
use crate::plan::{Plan, TransportKind};
use crate::report::RunOutcome;
use crate::{Result, SimError, interrupt};

/// Largest growth of the 99th percentile at which the outcome is a pass.
pub const MAX_GROWTH: f64 = 2.0;
/// The most members, attackers, joiners and re-keys, and the highest rate of one attacker.
pub const MAX_MEMBERS: u32 = 10_000;
/// The most attackers.
pub const MAX_ATTACKERS: u32 = 256;
/// The most messages that one attacker sends in a second.
pub const MAX_RATE: u32 = 1_000;
/// The most identities that one attacker takes on in a second.
pub const MAX_IDENTITIES: u32 = 64;
/// The most re-keys for each line of the table.
pub const MAX_REKEYS: u32 = 1_000;
/// A policy that every drone satisfies.
const EVERYBODY: &str = "x >= -1000 and y >= -1000 and battery <= 120";

/// A kind of flood. Forged keys come last, because new connections from the penalised address, which all
/// nodes share here, have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flood {
    /// Strangers publish questions for revocation lists, known headers, forged messages and junk.
    Gossip,
    /// Strangers ask to join, with forged signatures.
    Joins,
    /// Drones that satisfy the policy join anonymously, all at once.
    Anonymous,
    /// Strangers that show forged keys to a leader that demands a policy.
    Keys,
}

impl Flood {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Gossip, Self::Joins, Self::Anonymous, Self::Keys];

    /// Returns true if the leader demands a policy.
    pub fn is_anonymous(self) -> bool {
        matches!(self, Self::Keys | Self::Anonymous)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gossip => "strangers publish",
            Self::Joins => "forged joins",
            Self::Keys => "forged keys",
            Self::Anonymous => "anonymous joins",
        }
    }
}

/// The plan of `sim flood`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FloodPlan {
    /// Members of the group that drones join by name.
    pub members: u32,
    /// Members of the group whose leader demands a policy.
    pub anonymous: u32,
    /// Number of drones that join anonymously at once.
    pub joiners: u32,
    /// The floods to run.
    pub floods: Vec<Flood>,
    /// Nodes that attack at a time.
    pub attackers: u32,
    /// Messages that each of them sends in a second.
    pub rate: u32,
    /// Number of identities per second of each of them, once it was cut off.
    pub identities: u32,
    /// Number of re-keys for each line of the table.
    pub rekeys: u32,
    /// Pause of the leader between two of them.
    #[serde(skip)]
    pub pause: Duration,
    /// Network of the nodes.
    pub transport: TransportKind,
    /// Re-key strategy.
    pub strategy: StrategyKind,
    /// Seed of all keys.
    pub seed: u64,
    /// Time limit of a step.
    #[serde(skip)]
    pub timeout: Duration,
}

impl Default for FloodPlan {
    fn default() -> Self {
        Self {
            members: 1000,
            anonymous: 1000,
            joiners: 100,
            floods: Flood::ALL.to_vec(),
            attackers: 8,
            rate: 64,
            identities: 2,
            rekeys: 30,
            pause: Duration::from_millis(200),
            transport: TransportKind::Tcp,
            strategy: StrategyKind::Flat,
            seed: 1,
            timeout: Duration::from_secs(300),
        }
    }
}

impl FloodPlan {
    /// Refuses what cannot be done, saying why.
    ///
    /// # Errors
    /// [`SimError::Usage`].
    pub fn check(&self) -> Result<()> {
        let bounded = [
            ("members", self.members, MAX_MEMBERS),
            ("anonymous members", self.anonymous, MAX_MEMBERS),
            ("joiners", self.joiners, MAX_MEMBERS),
            ("attackers", self.attackers, MAX_ATTACKERS),
            ("messages per second", self.rate, MAX_RATE),
            ("identities per second", self.identities, MAX_IDENTITIES),
            ("re-keys", self.rekeys, MAX_REKEYS),
        ];
        for (what, count, most) in bounded {
            if count == 0 || count > most {
                return Err(SimError::Usage(format!("{count} {what}: give 1 to {most}")));
            }
        }
        Ok(())
    }

    /// The run that makes the group, without or with a policy.
    fn group(&self, anonymous: bool) -> Plan {
        let drones = if anonymous { self.anonymous } else { self.members };
        let joiners = if anonymous { self.joiners } else { 0 };
        Plan {
            drones,
            transport: self.transport,
            strategy: self.strategy,
            seed: self.seed,
            // Rounded up, which is why a little less is asked for.
            join_percent: (f64::from(joiners) - 0.5).max(0.0) * 100.0 / f64::from(drones),
            messages: 0,
            admission: anonymous.then(|| EVERYBODY.into()),
            timeout: self.timeout,
            ..Plan::default()
        }
    }
}

/// Counters of the attackers' messages.
#[derive(Debug, Default)]
pub(crate) struct FloodCounters {
    messages: AtomicU64,
    bytes: AtomicU64,
    answers: AtomicU64,
    identities: AtomicU64,
}

impl FloodCounters {
    fn sent(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    fn appeared(&self) {
        self.identities.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of identities under which it was done.
    pub(crate) fn identities(&self) -> u64 {
        self.identities.load(Ordering::Relaxed)
    }

    /// Messages, bytes and answers so far.
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        let [messages, bytes, answers] =
            [&self.messages, &self.bytes, &self.answers].map(|count| count.load(Ordering::Relaxed));
        (messages, bytes, answers)
    }
}

/// A line of the table.
#[derive(Clone, Debug, Serialize)]
pub struct FloodMeasurement {
    /// The flood; `None` for the quiet run that it is compared with.
    pub flood: Option<Flood>,
    /// True if the leader demands a policy.
    pub anonymous: bool,
    /// Members whose keys were waited for.
    pub members: usize,
    /// Seconds that it was measured.
    pub seconds: f64,
    /// Messages of the attackers.
    pub messages: u64,
    /// Bytes of the messages.
    pub bytes: u64,
    /// Answers to them.
    pub answers: u64,
    /// Transport identities that attackers spent, since the flood began.
    pub identities: u64,
    /// Number of attackers that the leader penalised.
    pub penalised: u64,
    /// Connections that it refused because the address's allowance of penalties was spent.
    pub refused: u64,
    /// Drones that joined meanwhile.
    pub joined: usize,
    /// Seconds from the command to re-key until a member holds the key, over all members and re-keys.
    #[serde(serialize_with = "in_seconds")]
    pub latencies: Option<Percentiles>,
    /// Members that had no key in time.
    pub missing: usize,
    /// p99 over that of the quiet run.
    pub growth: Option<f64>,
}

#[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
fn in_seconds<S: serde::Serializer>(spread: &Option<Percentiles>, out: S) -> Result<S::Ok, S::Error> {
    spread.map(|it| [it.p50, it.p99, it.max].map(|time| time.as_secs_f64())).serialize(out)
}

impl FloodMeasurement {
    /// Name of the flood.
    pub fn name(&self) -> String {
        let group = if self.anonymous { "policy" } else { "by name" };
        format!("{group}: {}", self.flood.map_or("quiet", Flood::name))
    }
}

/// The report of `sim flood`.
#[derive(Clone, Debug, Serialize)]
pub struct FloodReport {
    /// The plan.
    pub plan: FloodPlan,
    /// Machine that was measured.
    pub machine: Machine,
    /// The lines of the table.
    pub lines: Vec<FloodMeasurement>,
    /// Invariants that did not hold.
    pub violations: Vec<String>,
    /// True if the user ended it before the last line.
    pub interrupted: bool,
}

impl FloodReport {
    /// Outcome of the floods, which passed if every member had every key in time, and no flood increased the
    /// 99th percentile beyond the bound.
    pub fn outcome(&self) -> RunOutcome {
        let fails = |line: &FloodMeasurement| {
            line.missing > 0 || line.growth.is_some_and(|growth| growth >= MAX_GROWTH)
        };
        let failed = self.lines.iter().any(fails) || !self.violations.is_empty();
        match (failed, self.interrupted) {
            (true, _) => RunOutcome::Failed,
            (false, true) => RunOutcome::Interrupted,
            (false, false) => RunOutcome::Passed,
        }
    }
}

/// Measures re-keys quiet and under each flood. If the user ends it, the report has the lines that were finished.
///
/// # Errors
/// If the run could not be carried out, or was ended before the first line.
pub fn run(plan: &FloodPlan, progress: &Progress) -> Result<FloodReport> {
    plan.check()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(SimError::Runtime)?;
    let report = runtime.block_on(play(plan, progress));
    // Thousands of nodes need not be taken down one by one.
    runtime.shutdown_background();
    report
}

async fn play(plan: &FloodPlan, progress: &Progress) -> Result<FloodReport> {
    let mut report = FloodReport {
        plan: plan.clone(),
        machine: Machine::here(),
        lines: Vec::new(),
        violations: Vec::new(),
        interrupted: false,
    };
    for anonymous in [false, true] {
        let floods: Vec<Flood> = Flood::ALL
            .into_iter()
            .filter(|flood| flood.is_anonymous() == anonymous)
            .filter(|flood| plan.floods.contains(flood))
            .collect();
        if floods.is_empty() || report.interrupted {
            continue;
        }
        let group = plan.group(anonymous);
        group.check()?;
        check_files(&group)?;
        let built = tokio::select! {
            world = LiveWorld::<Ristretto255>::build(&group, progress, Vec::new()) => Some(world?),
            () = interrupt::requested() => None,
        };
        let Some(mut world) = built else {
            report.interrupted = true;
            continue;
        };
        let (results, measured) = phases::flood(&mut world, plan, &floods).await?;
        report.lines.extend(measured);
        report.violations.extend(results.violations.iter().map(ToString::to_string));
        report.interrupted = results.interrupted;
    }
    if report.interrupted && report.lines.is_empty() { Err(SimError::Interrupted) } else { Ok(report) }
}

/// The target of attackers.
pub(crate) struct FloodTarget<'w> {
    pub(crate) plan: &'w FloodPlan,
    pub(crate) counters: Arc<FloodCounters>,
    /// The first step of an admission, as some drone sent it.
    pub(crate) shown: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_beyond_their_bounds_are_refused() {
        FloodPlan::default().check().unwrap();
        for plan in [
            FloodPlan { members: 0, ..FloodPlan::default() },
            FloodPlan { attackers: MAX_ATTACKERS + 1, ..FloodPlan::default() },
            FloodPlan { rate: MAX_RATE + 1, ..FloodPlan::default() },
        ] {
            assert!(matches!(plan.check(), Err(SimError::Usage(_))), "{plan:?}");
        }
    }

    #[test]
    fn interrupted_flood_neither_passes_nor_hides_a_failure() {
        let report = |violations: &[&str], interrupted| FloodReport {
            plan: FloodPlan::default(),
            machine: Machine::here(),
            lines: Vec::new(),
            violations: violations.iter().map(ToString::to_string).collect(),
            interrupted,
        };
        assert_eq!(report(&[], false).outcome(), RunOutcome::Passed);
        assert_eq!(report(&[], true).outcome(), RunOutcome::Interrupted);
        assert_eq!(report(&["broken"], true).outcome(), RunOutcome::Failed);
    }

    #[test]
    fn as_many_join_anonymously_as_were_asked_for() {
        for (anonymous, joiners) in [(1000, 100), (7, 3), (300, 1), (10, 40)] {
            let plan = FloodPlan { anonymous, joiners, ..FloodPlan::default() }.group(true);
            assert_eq!(plan.newcomers(), joiners);
            plan.check().unwrap();
        }
    }
}
