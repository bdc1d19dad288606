//! Carries out the phases of a run and checks the invariants after each.

mod flood;
mod leader_loss;
mod leader_restart;
mod membership;
mod messages;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::{Duration, Instant};

use quiver_ainq::Suite;
use quiver_crypto::{Hasher, Secret};
use quiver_world::Invariant;
use quiver_world::run::{FinishedPart, Phase, PhaseCosts, RunViolation};
use rand_chacha::ChaCha20Rng;

use super::checker::{Checker, SentMessage};
use super::event_log::{PhaseGoal, Reached};
use super::world::LiveWorld;
use super::{admission, conditions, envelopes, mavlink};
use crate::measure;
use crate::plan::Plan;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError, interrupt};

/// The outcome of the phases.
pub(crate) struct PhaseResults {
    pub(crate) operations: Vec<PhaseCosts>,
    pub(crate) violations: Vec<RunViolation>,
    pub(crate) checks: u64,
    /// True if the user ended the run before the last phase.
    pub(crate) interrupted: bool,
    pub(crate) choices_digest: [u8; 32],
}

/// Carries out the phases in order. If drones are stuck in one, those after it make no sense and are left
/// out. If the user ends the run or a worker is lost, the results are of the phases before. The watcher is
/// told of each operation that is finished.
pub(crate) async fn run_all<S: Suite>(
    world: &mut LiveWorld<S>,
    watch: &mut (dyn FnMut(FinishedPart<'_>) + Send),
) -> Result<PhaseResults> {
    let loss = world.swarm.loss();
    let mut run = PhaseRun::new(world, watch);
    let ended = tokio::select! {
        ended = run.play() => Some(ended),
        () = interrupt::requested() => None,
        () = loss => Some(Err(Halt::Stuck)),
    };
    match ended {
        Some(Ok(()) | Err(Halt::Stuck)) => Ok(run.results()),
        Some(Err(Halt::Error(error))) => Err(error),
        None => Ok(PhaseResults { interrupted: true, ..run.results() }),
    }
}

pub(crate) use self::flood::flood;

/// Reason why the phases end early.
pub(super) enum Halt {
    /// The run cannot go on.
    Error(SimError),
    /// Drones did not reach the goal, and a violation names them; or their worker is lost.
    Stuck,
}

impl From<SimError> for Halt {
    fn from(error: SimError) -> Self {
        Self::Error(error)
    }
}

pub(super) type StepResult<T = ()> = Result<T, Halt>;

/// Outcome of a phase, once it is over.
type PhaseFuture<'a> = Pin<Box<dyn Future<Output = StepResult> + 'a>>;

/// Carries out a phase.
type PlayPhase<S> = for<'a> fn(&'a mut PhaseRun<'_, S>) -> PhaseFuture<'a>;

/// A phase of a run.
struct ScriptedPhase<S: Suite> {
    is_planned: fn(&Plan) -> bool,
    play: PlayPhase<S>,
}

/// A phase of the plans for which this holds.
const fn scripted<S: Suite>(is_planned: fn(&Plan) -> bool, play: PlayPhase<S>) -> ScriptedPhase<S> {
    ScriptedPhase { is_planned, play }
}

/// All phases, in their order. A feature adds its own with one line.
fn script<S: Suite>() -> [ScriptedPhase<S>; 15] {
    let always: fn(&Plan) -> bool = |_| true;
    [
        scripted(always, |run| Box::pin(membership::enrol(run))),
        scripted(always, |run| Box::pin(membership::connect(run))),
        scripted(always, |run| Box::pin(membership::form(run))),
        scripted(always, |run| Box::pin(membership::expire(run))),
        scripted(always, |run| Box::pin(membership::leave(run))),
        scripted(always, |run| Box::pin(membership::join(run))),
        scripted(always, |run| Box::pin(messages::send_messages(run))),
        scripted(|plan| plan.mavlink, |run| Box::pin(mavlink::fly(run))),
        scripted(|plan| plan.envelopes, |run| Box::pin(envelopes::seal_envelopes(run))),
        scripted(|plan| plan.orders, |run| Box::pin(conditions::phases::ibe_order(run))),
        scripted(|plan| plan.admission.is_some(), |run| Box::pin(admission::phases::rejoin_anonymously(run))),
        scripted(|plan| plan.deputies > 0, |run| Box::pin(leader_loss::lose_leader(run))),
        scripted(
            |plan| plan.deputies == 0 && plan.restart_leader,
            |run| Box::pin(leader_restart::restart_leader(run)),
        ),
        scripted(always, |run| Box::pin(check_final_state(run))),
        scripted(
            |plan| plan.admission.is_some(),
            |run| {
                admission::phases::check_unlinkability(run);
                Box::pin(std::future::ready(Ok(())))
            },
        ),
    ]
}

/// The counters at the beginning of a phase.
pub(super) struct Mark {
    pub(super) at: Instant,
    pub(super) leader_cpu: Duration,
    pub(super) leader_bytes: u64,
    pub(super) epochs: usize,
    pub(super) cpu: Duration,
}

impl Mark {
    /// Time that each of these drones took since.
    fn latencies(&self, drones: &[(u32, Instant)]) -> Vec<(u32, Duration)> {
        drones.iter().map(|(drone, at)| (*drone, at.saturating_duration_since(self.at))).collect()
    }
}

pub(super) struct PhaseRun<'w, S: Suite> {
    pub(super) world: &'w mut LiveWorld<S>,
    pub(super) checker: Checker,
    operations: Vec<PhaseCosts>,
    /// The members of the group.
    pub(super) members: BTreeSet<u32>,
    /// Members that the leader evicted.
    pub(super) evicted: BTreeSet<u32>,
    /// Every message so far.
    pub(super) sent: Vec<SentMessage>,
    pub(super) rng: ChaCha20Rng,
    /// Record of every choice made.
    pub(super) choices: Vec<u32>,
    watch: &'w mut (dyn FnMut(FinishedPart<'_>) + Send),
}

impl<'w, S: Suite> PhaseRun<'w, S> {
    fn new(world: &'w mut LiveWorld<S>, watch: &'w mut (dyn FnMut(FinishedPart<'_>) + Send)) -> Self {
        let rng = rng_stream::generator(world.plan.seed, RngStream::Choices, 0, 0);
        let operations = world.generation.map(|took| PhaseCosts {
            detail: format!("{} KGCs", world.plan.kgcs),
            ..PhaseCosts::new(Phase::KeyGeneration, 0, took)
        });
        Self {
            world,
            checker: Checker::default(),
            operations: operations.into_iter().collect(),
            members: BTreeSet::new(),
            evicted: BTreeSet::new(),
            sent: Vec::new(),
            rng,
            choices: Vec::new(),
            watch,
        }
    }

    pub(super) fn add_operation(&mut self, operation: PhaseCosts) {
        self.operations.push(operation);
        let Checker { violations, checks, .. } = &self.checker;
        (self.watch)(FinishedPart { operations: &self.operations, violations, checks: *checks });
    }

    async fn play(&mut self) -> StepResult {
        for phase in script::<S>() {
            if (phase.is_planned)(&self.world.plan) {
                (phase.play)(self).await?;
            }
        }
        Ok(())
    }

    /// Returns true if drones join anonymously.
    pub(super) fn is_anonymous(&self) -> bool {
        self.world.setting.features.admission.is_some()
    }

    fn results(self) -> PhaseResults {
        let mut hasher = Hasher::new("quiver/1 simulator choices");
        for choice in &self.choices {
            hasher = hasher.u32(*choice);
        }
        PhaseResults {
            operations: self.operations,
            violations: self.checker.violations,
            checks: self.checker.checks,
            interrupted: false,
            choices_digest: hasher.finish(),
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            leader_cpu: self.world.leader_meter.total(),
            leader_bytes: self.world.leader_sent(),
            epochs: self.world.event_log().with_logs(|logs| logs.leader.epochs.len()),
            cpu: measure::process_cpu(),
            at: measure::now(),
        }
    }

    /// Time from the beginning of the run.
    pub(super) fn since_start(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.world.started)
    }

    /// Waits until all drones have reached the goal.
    pub(super) async fn reached(&self, bar: &'static str, drones: usize) -> Reached {
        let step = self.world.progress.step(bar, drones);
        self.world.event_log().reached(self.world.plan.timeout, &step).await
    }

    /// Adds a violation and ends the run unless all have reached the goal.
    pub(super) fn expect_all_reached(
        &mut self,
        invariant: Invariant,
        what: &str,
        reached: &Reached,
    ) -> StepResult {
        let there = reached.drones.iter().map(|(drone, _)| (*drone, false));
        let missing = reached.missing.iter().map(|drone| (*drone, true));
        let detail = format!("{what} within {} s", self.world.plan.timeout.as_secs_f64());
        self.checker.none(invariant, &detail, there.chain(missing));
        if reached.missing.is_empty() { Ok(()) } else { Err(Halt::Stuck) }
    }

    /// Waits until the members hold a key newer than at `mark`, and checks all keys. `gone` were members
    /// before.
    pub(super) async fn synced(
        &mut self,
        phase: Phase,
        detail: String,
        mark: &Mark,
        gone: &BTreeSet<u32>,
    ) -> StepResult {
        let reached = self.reached(phase.name(), self.members.len()).await;
        let took = mark.at.elapsed();
        self.checker.after(phase.name());
        // The costs of the acknowledgements belong to the operation.
        let acknowledged = reached.missing.is_empty() && self.world.acknowledged_by(&self.members).await?;
        self.record(phase, detail, mark, took, &reached);
        self.check_keys(gone);
        self.expect_all_reached(Invariant::Convergence, "does not hold the newest key", &reached)?;
        self.checker.that(Invariant::Convergence, acknowledged, || {
            "the leader did not receive an acknowledgement from every member".into()
        });
        Ok(())
    }

    /// Records the costs of a phase since `mark`.
    pub(super) fn record(
        &mut self,
        phase: Phase,
        detail: String,
        mark: &Mark,
        took: Duration,
        reached: &Reached,
    ) {
        let now = self.mark();
        let operation = PhaseCosts {
            detail,
            leader_cpu: Some(now.leader_cpu.saturating_sub(mark.leader_cpu)),
            leader_bytes: Some(now.leader_bytes.saturating_sub(mark.leader_bytes)),
            epochs: now.epochs.saturating_sub(mark.epochs),
            began: self.since_start(mark.at),
            cpu: Some(now.cpu.saturating_sub(mark.cpu)),
            ..PhaseCosts::new(phase, reached.drones.len() + reached.missing.len(), took)
        };
        self.add_operation(operation.with_latencies(mark.latencies(&reached.drones)));
    }

    /// Compares every key reported since the last time.
    pub(super) fn check_keys(&mut self, gone: &BTreeSet<u32>) {
        let authorised: BTreeSet<u32> = self.members.iter().chain(gone).copied().collect();
        let checker = &mut self.checker;
        self.world.event_log().with_logs(|logs| {
            checker.keys(logs, &authorised);
            checker.evictions(logs, &self.evicted);
        });
    }

    /// States that the members shall hold a newer key than now.
    pub(super) fn expect_newer_key(&self) {
        let goal = PhaseGoal::Synced { after: self.world.event_log().newest() };
        self.world.event_log().expect(goal, &self.member_list());
    }

    pub(super) fn member_list(&self) -> Vec<u32> {
        self.members.iter().copied().collect()
    }

    /// The keys that these drones can export now.
    pub(super) async fn exports(
        &self,
        drones: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<(u32, Option<Secret<32>>)>> {
        let drones: Vec<u32> = drones.into_iter().collect();
        self.world.swarm.exports(&self.world.setting, &drones).await
    }
}

/// Compares the keys that every drone exports, whatever it reported.
async fn check_final_state<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    run.checker.after("the last step");
    let members = run.exports(run.members.iter().copied()).await?;
    let others = (0..=run.world.outsider()).filter(|drone| !run.members.contains(drone));
    let others = run.exports(others).await?;
    let (checker, sent) = (&mut run.checker, &run.sent);
    run.world.event_log().with_logs(|logs| {
        checker.members(logs, &members);
        checker.outsiders(logs, &others);
        checker.messages(logs, sent);
    });
    run.check_keys(&BTreeSet::new());
    Ok(())
}
