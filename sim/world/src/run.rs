//! Measures one run of a large group without faults: enrol, form, re-key, leave, join, send, restart.

mod arrivals;
mod operation;
mod pacing;
mod phase;
pub(crate) mod phases;

use std::ops::ControlFlow;
use std::time::Duration;

use quiver_ainq::{Epoch, StrategyKind, Suite, UnixTime};
use quiver_group::Leader;
use quiver_group::leader::LeaderTiming;
use quiver_kem::KemSetting;
use serde::Serialize;

use self::arrivals::Arrivals;
pub use self::operation::{Percentiles, PhaseCosts, RadioCost, RunViolation};
pub use self::pacing::Pacing;
pub use self::phase::Phase;
use crate::admission::Rules;
use crate::ranks::Ranks;
use crate::suite::over;
use crate::trace::{Trace, TraceRecorder};
use crate::{AirSetup, LinkFaults, MasterKeySuite, Setup, World, WorldError, WorldSuite};

/// Validity of keys: longer than any run.
const VALIDITY: Duration = Duration::from_secs(30 * 86_400);

/// Parameters of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    /// Drones in the group when it is formed.
    pub drones: u32,
    /// Re-key strategy of the leader.
    pub strategy: StrategyKind,
    /// Second factor of pairwise secrets.
    pub kem: KemSetting,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of drones that leave.
    pub leavers: u32,
    /// Number of drones that join later.
    pub newcomers: u32,
    /// Number of group messages.
    pub messages: u32,
    /// True if orders are sealed to those with certain attributes.
    pub envelopes: bool,
    /// KGCs: one, or a quorum of which any `threshold` issue keys.
    pub kgcs: u16,
    /// Threshold of the KGCs.
    pub threshold: u16,
    /// True if an order is sealed to the mission's second phase.
    pub orders: bool,
    /// The policy that anonymous drones must satisfy: over [`admission::FIELDS`](crate::admission::FIELDS).
    /// `None`: admission by name.
    pub admission: Option<String>,
    /// True to compute once what many drones verify alike: [`Setup::share_verifications`].
    pub share_verifications: bool,
    /// True if the leader is switched off and on again.
    pub restart_leader: bool,
    /// The radio; `None`: links as [`LinkFaults::SOUND`].
    pub air: Option<AirSetup>,
    /// The radio for enrolment and joins, before all nodes change to `air` for the rest. `None`: `air`.
    pub depot: Option<AirSetup>,
    /// True to hash every step.
    pub traced: bool,
    /// Processes that play the world together; not with envelopes, orders or admission.
    pub ranks: Option<Ranks>,
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The phases, in order.
    pub operations: Vec<PhaseCosts>,
    /// The invariants that did not hold.
    pub violations: Vec<RunViolation>,
    /// Number of compared keys.
    pub checks: u64,
    /// The newest epoch.
    pub epoch: Option<Epoch>,
    /// Pairs of a member and the leader at the end.
    pub pairs: Pairs,
    /// Steps taken.
    pub steps: u64,
    /// True if the run was ended before its last phase: what it has is of the phases before.
    pub interrupted: bool,
    /// SHA-256 over every step, if the run is traced: the same for any number of threads and ranks.
    pub trace: Option<[u8; 32]>,
}

/// Numbers of pairs of a member and its leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Pairs {
    /// Those that have a second factor.
    pub hybrid: usize,
    /// Those that rest on the curve alone.
    pub classical: usize,
    /// Second factors that the leader keeps; `None` without any, and of anonymous members, whose are of one
    /// term alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptFactors>,
}

/// Second factors that a leader shares with its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KeptFactors {
    /// Number of the leader's terms to which all were stepped.
    pub terms: u64,
    /// Age of the youngest, in seconds.
    pub youngest_s: u64,
    /// Age of the oldest, in seconds.
    pub oldest_s: u64,
}

impl Pairs {
    /// Pairs of a leader, at this time by its clock.
    pub fn of<S: Suite>(leader: &Leader<S>, now: UnixTime) -> Self {
        let states = leader.members().filter_map(|(slot, _)| leader.kem_state(slot));
        let kept = states.fold(None, |kept: Option<KeptFactors>, state| {
            let age = now.saturating_sub(state.made);
            let (youngest, oldest) = kept.map_or((age, age), |kept| (kept.youngest_s, kept.oldest_s));
            Some(KeptFactors {
                terms: state.term.g(),
                youngest_s: youngest.min(age),
                oldest_s: oldest.max(age),
            })
        });
        Self { hybrid: leader.hybrid_pairs(), classical: leader.classical_pairs(), kept }
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// The phase under way.
    pub phase: Phase,
    /// Number of drones that are done.
    pub done: u32,
    /// Number of drones in all.
    pub of: u32,
    /// Virtual time.
    pub at: Duration,
}

/// The part of a run that is finished.
#[derive(Clone, Copy, Debug)]
pub struct FinishedPart<'a> {
    /// The phases, in order.
    pub operations: &'a [PhaseCosts],
    /// The invariants that did not hold.
    pub violations: &'a [RunViolation],
    /// Number of compared keys.
    pub checks: u64,
}

/// Watcher of a run, which ends it or lets it go on.
pub type RunWatcher<'a> = dyn FnMut(RunProgress, FinishedPart<'_>) -> ControlFlow<()> + 'a;

/// Runs a plan over a suite.
///
/// # Errors
/// As for [`World::new`], and if the [`Pacing`] of its radio cannot be had.
pub fn run(
    suite: WorldSuite,
    plan: &RunPlan,
    progress: &mut dyn FnMut(RunProgress),
) -> Result<Run, WorldError> {
    run_while(suite, plan, false, &mut to_the_end(progress)).map(|(run, _)| run)
}

/// Runs a plan over a suite, and records it. If it fails, the trace goes until then.
///
/// # Errors
/// As for [`run`].
pub fn record(
    suite: WorldSuite,
    plan: &RunPlan,
    progress: &mut dyn FnMut(RunProgress),
) -> Result<(Run, Trace), WorldError> {
    run_while(suite, plan, true, &mut to_the_end(progress))
        .map(|(run, trace)| (run, trace.expect("a recorder was there")))
}

/// Runs a plan over a suite for as long as `watch` continues, and records it if that is wanted. The watcher
/// is called several times in each phase, after at most a tenth of a second of virtual time.
///
/// # Errors
/// As for [`run`].
pub fn run_while(
    suite: WorldSuite,
    plan: &RunPlan,
    record: bool,
    watch: &mut RunWatcher<'_>,
) -> Result<(Run, Option<Trace>), WorldError> {
    over!(suite, S => run_over::<S>(plan, watch, record))
}

/// A watcher that ends no run.
fn to_the_end(
    progress: &mut dyn FnMut(RunProgress),
) -> impl FnMut(RunProgress, FinishedPart<'_>) -> ControlFlow<()> {
    move |state, _| {
        progress(state);
        ControlFlow::Continue(())
    }
}

fn run_over<S: MasterKeySuite>(
    plan: &RunPlan,
    watch: &mut RunWatcher<'_>,
    record: bool,
) -> Result<(Run, Option<Trace>), WorldError> {
    let pace = Pacing::of(plan).map_err(WorldError::Radio)?;
    let members = plan.drones.saturating_add(plan.newcomers);
    let setup = Setup {
        seed: plan.seed,
        fleet_seed: plan.seed,
        members,
        kgcs: plan.kgcs,
        threshold: plan.threshold,
        orders: plan.orders,
        admission: plan.admission.clone().map(Rules::of),
        strategy: plan.strategy,
        kem: plan.kem,
        shared_medium: true,
        // Keys outlive the run, so no expiry re-keys.
        leader_timing: LeaderTiming { validity: VALIDITY, ..pace.leader_timing() },
        edge_timing: pace.edge_timing(),
        faults: LinkFaults::SOUND,
        air: plan.depot.clone().or_else(|| plan.air.clone()),
        metered: true,
        share_verifications: plan.share_verifications,
        parallel: true,
        // The count of an anonymous drone's answers outlives its machines.
        durable: plan.admission.is_some(),
        hops: record,
        traced: plan.traced,
        ranks: plan.ranks.clone(),
        ..Setup::default()
    };
    if plan.ranks.as_ref().is_some_and(|ranks| ranks.count() > 1) {
        if record {
            return Err(WorldError::Ranks("ranks record nothing: play it in one process"));
        }
        if plan.envelopes || plan.orders || plan.admission.is_some() {
            return Err(WorldError::Ranks("envelopes, orders and admission are for runs in one process"));
        }
    }
    let world = World::<S>::new(setup)?;
    let recorder = record.then(|| TraceRecorder::new(&world, None));
    let phases = phases::Phases::new(world, plan.clone(), pace, watch, recorder);
    phases.run().map_err(WorldError::LostRank)
}
