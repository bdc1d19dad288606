//! Random lives under random faults, all invariants after every step; what breaks is shrunk until a person
//! can read it.
//!
//! A seed decides everything: the plan (an explicit list of [`Action`]s with times), the faults of the
//! network, the randomness of every node. Enrolling twenty drones costs more than a life of theirs, so a
//! [`Base`] enrols them once and most seeds start from what was durable then; one seed in sixteen enrols
//! anew, under faults. And since a life in an honest group is spent multiplying points, fifteen seeds in
//! sixteen run over [`InsecureToy`], whose group is no group to hide anything in but whose protocol is the
//! same code to the last line; the sixteenth runs over ristretto255. No group takes the place of the pairing's, with which
//! anonymous admission computes for every attribute. So fifteen lives in sixteen certify the battery alone, and the
//! sixteenth all fields.

mod generate;
mod shrink;
mod story;
mod watch;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use quiver_ainq::{Ristretto255, StrategyKind, Suite};
use quiver_group::leader::LeaderTiming;
use quiver_kem::KemSetting;

pub use self::generate::{ActionPlan, StartState};
pub use self::shrink::shrink;
pub use self::story::story;
use crate::admission::{FENCE, Rules, distinguish};
use crate::invariants::{QuantumAdversary, all_violations};
use crate::node_id::NodeIndex;
use crate::ranks::Ranks;
use crate::step::Sabotage;
use crate::{
    Action, Disks, Hop, InsecureToy, Invariant, Invariants, MasterKeySuite, NoObserver, NodeId, Setup,
    StepObserver, Violation, World, WorldError, WorldSuite,
};
use crate::{Step, bound};

/// Validity of credentials, where a policy is demanded.
const PERIOD: Duration = Duration::from_secs(40);
/// Policy over the battery alone, which half of the drones satisfy.
const CHARGE: &str = "battery >= 45";
/// Interval between checks of convergence.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Population and features of the checked worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckSetup {
    /// Edges that may be in the group, at most 1,000; two strangers come on top.
    pub edges: u32,
    /// KGCs: one, or a quorum of which more than half issue keys.
    pub kgcs: u16,
    /// Leaders.
    pub leaders: u16,
    /// Relays of each leader, which drones dial in its place if there are any.
    pub relays: u16,
    /// True if leaders demand a policy: then edges join anonymously.
    pub admission: bool,
    /// Re-key strategy.
    pub strategy: StrategyKind,
    /// Second factor of pairwise secrets; `None`: every seed draws one, or none.
    pub kem: Option<KemSetting>,
    /// Rules that drivers break, to see that the invariants notice.
    #[doc(hidden)]
    pub sabotage: Sabotage,
}

impl CheckSetup {
    /// KGCs that must agree: more than half.
    pub const fn threshold(&self) -> u16 {
        self.kgcs / 2 + 1
    }

    /// Second factor of a seed's life.
    pub const fn kem_of(&self, seed: u64) -> KemSetting {
        match (self.kem, seed >> 1 & 1, seed >> 4 & 7) {
            (Some(kem), _, _) => kem,
            // Whatever the start state, which goes by the lowest four bits.
            (None, odd, more) if odd == more & 1 => KemSetting::None,
            (None, _, more) if more < 6 => KemSetting::MlKem768,
            (None, ..) => KemSetting::MlKem1024,
        }
    }
}

impl Default for CheckSetup {
    fn default() -> Self {
        Self {
            edges: 20,
            kgcs: 1,
            leaders: 1,
            relays: 0,
            admission: false,
            strategy: StrategyKind::Flat,
            kem: None,
            sabotage: Sabotage::None,
        }
    }
}

/// Result of a seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedOutcome {
    /// The first violation, if any.
    pub violation: Option<Violation>,
    /// Steps taken.
    pub steps: u64,
    /// Epochs made.
    pub epochs: usize,
    /// Comparisons made.
    pub checks: u64,
    /// Time from the end of the faults until convergence.
    pub convergence: Duration,
    /// Virtual time that passed.
    pub time: Duration,
    /// Actions that took place, by kind: what operators, applications, faults and the adversary did.
    pub actions: BTreeMap<&'static str, u64>,
    /// SHA-256 over every step, if [ranks](crate::ranks) share the life: the same for any number of them.
    pub trace: Option<[u8; 32]>,
}

/// Drones that are enrolled, and drones that are in the group: where most seeds start from.
pub struct Base<S: Suite> {
    setup: CheckSetup,
    ranks: Option<Ranks>,
    /// True if observers are told of every hop.
    hops: bool,
    kem: KemSetting,
    enrolled: Disks<S>,
    formed: Disks<S>,
    /// What the adversary that computes discrete logarithms has recorded of the forming.
    recording: QuantumAdversary<S>,
}

/// Setup of a world for the checks.
fn world_setup<S: Suite>(check: &CheckSetup, kem: KemSetting, seed: u64) -> Setup {
    let rules = if S::ID == InsecureToy::ID { Rules::of_battery(CHARGE) } else { Rules::of(FENCE) };
    Setup {
        seed,
        members: check.edges,
        strangers: 2,
        kgcs: check.kgcs,
        threshold: check.threshold(),
        orders: check.kgcs > 1,
        // So that a period or two end in most lives.
        admission: check.admission.then_some(Rules { period: PERIOD, ..rules }),
        one_token: if check.kgcs > 1 { vec![check.edges, check.edges + 1] } else { Vec::new() },
        leaders: check.leaders,
        relays: check.relays,
        strategy: check.strategy,
        kem,
        // Relays are for links.
        shared_medium: check.relays == 0 && seed.is_multiple_of(2),
        // Short enough for a key to run out in most lives.
        leader_timing: LeaderTiming {
            validity: Duration::from_secs(45),
            silence: (check.leaders > 1).then(|| Duration::from_secs(4)),
            ..LeaderTiming::default()
        },
        recording: true,
        sabotage: check.sabotage,
        ..Setup::default()
    }
}

impl<S: MasterKeySuite> Base<S> {
    /// Enrols all nodes and forms the group, without a fault.
    ///
    /// # Errors
    /// Errors of [`World::new`].
    pub fn new(setup: CheckSetup, kem: KemSetting) -> Result<Self, WorldError> {
        Self::over(setup, kem, None)
    }

    /// The same, of a world that [ranks](crate::ranks) share if there are some.
    fn over(setup: CheckSetup, kem: KemSetting, ranks: Option<Ranks>) -> Result<Self, WorldError> {
        Self::formed(setup, kem, ranks, None)
    }

    /// The same, with an observer of the forming, which is told of every hop, if there is one.
    fn formed(
        setup: CheckSetup,
        kem: KemSetting,
        ranks: Option<Ranks>,
        observer: Option<&mut dyn StepObserver<S>>,
    ) -> Result<Self, WorldError> {
        let honest = CheckSetup { sabotage: Sabotage::None, ..setup };
        let hops = observer.is_some();
        let mut world =
            World::<S>::new(Setup { ranks: ranks.clone(), hops, ..world_setup::<S>(&honest, kem, 0) })?;
        let mut nobody = NoObserver;
        let observer = observer.unwrap_or(&mut nobody);
        world.start_everyone();
        // Several leaders listen first, then one leads.
        let patience = Duration::from_secs(5) * u32::from(setup.leaders);
        world.run_until(patience, observer);
        let enrolled = world.disks();
        // Anonymous memberships are not durable: no edge is a member in the base.
        let wanting = if setup.admission { 0 } else { setup.edges };
        for edge in 0..wanting {
            world.schedule(world.time(), Action::Join(edge));
        }
        let mut recording = QuantumAdversary::default();
        world.run_for(patience * 2, &mut watch::Both(&mut recording, observer));
        Ok(Self { setup, ranks, hops, kem, enrolled, formed: world.disks(), recording })
    }

    fn world(&self, plan: &ActionPlan) -> Result<World<S>, WorldError> {
        let (ranks, traced) = (self.ranks.clone(), self.ranks.is_some());
        let setup =
            Setup { ranks, traced, hops: self.hops, ..world_setup::<S>(&self.setup, self.kem, plan.seed) };
        let mut world = match plan.beginning {
            StartState::Nothing => World::with_empty_disks(setup, &self.enrolled)?,
            StartState::Enrolled => World::from_disks(setup, &self.enrolled)?,
            StartState::Formed => World::from_disks(setup, &self.formed)?,
        };
        world.start_everyone();
        for (at, action) in &plan.actions {
            world.schedule(*at, action.clone());
        }
        world.schedule(plan.calm, Action::Calm);
        Ok(world)
    }

    /// The invariants of a plan's world, whose adversary has recorded how the group formed.
    fn invariants(&self, world: &World<S>, plan: &ActionPlan) -> Invariants<S> {
        let invariants = Invariants::new(world, true);
        match plan.beginning {
            StartState::Formed => invariants.with_recording(self.recording.clone()),
            StartState::Nothing | StartState::Enrolled => invariants,
        }
    }

    /// Runs a plan.
    ///
    /// # Errors
    /// Errors of [`World::new`].
    pub fn run(&self, plan: &ActionPlan) -> Result<SeedOutcome, WorldError> {
        let mut world = self.world(plan)?;
        let mut invariants = self.invariants(&world, plan);
        let mut counting = Counting { checker: &mut invariants, actions: BTreeMap::new() };
        let convergence = run_to_convergence(&mut world, plan, &mut counting);
        let actions = counting.actions;
        let mut violation = all_violations(&world, invariants.violations().to_vec()).into_iter().next();
        let [checks] = world.totals([invariants.checks()]);
        if let Some(rank) = world.lost_rank() {
            return Err(WorldError::LostRank(rank));
        }
        if violation.is_none() && self.setup.admission {
            violation = unlinkable::<S>(plan.seed)?;
        }
        Ok(SeedOutcome {
            violation,
            steps: world.steps(),
            epochs: invariants.epochs(),
            checks,
            convergence,
            time: world.time(),
            actions,
            trace: world.trace_hash(),
        })
    }
}

/// Invariants, and how often which action took place.
struct Counting<'a, S: Suite> {
    checker: &'a mut Invariants<S>,
    actions: BTreeMap<&'static str, u64>,
}

impl<S: Suite> StepObserver<S> for Counting<'_, S> {
    fn on_step(&mut self, world: &World<S>, step: &Step) {
        self.checker.on_step(world, step);
    }

    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        *self.actions.entry(action.kind()).or_default() += 1;
        self.checker.on_action(world, at, action);
    }

    fn stops(&self) -> bool {
        self.checker.stops()
    }
}

impl<S: Suite> ConvergenceChecker<S> for Counting<'_, S> {
    fn has_converged(&self, world: &World<S>) -> bool {
        self.checker.has_converged(world)
    }

    fn check_convergence(&mut self, world: &World<S>) {
        self.checker.check_convergence(world);
    }
}

/// Runs the tagging attack on two memberships of one drone and on those of two.
fn unlinkable<S: Suite>(seed: u64) -> Result<Option<Violation>, WorldError> {
    let told = distinguish::<S>(seed).map_err(|error| WorldError::Admission(error.to_string()))?;
    let (invariant, at, node) = (Invariant::Unlinkability, Duration::ZERO, None);
    Ok(told.map(|detail| Violation { invariant, at, node, detail }))
}

/// An observer that checks convergence.
trait ConvergenceChecker<S: Suite>: StepObserver<S> {
    fn has_converged(&self, world: &World<S>) -> bool;
    fn check_convergence(&mut self, world: &World<S>);
}

impl<S: Suite> ConvergenceChecker<S> for Invariants<S> {
    fn has_converged(&self, world: &World<S>) -> bool {
        self.stragglers(world).is_empty()
    }

    fn check_convergence(&mut self, world: &World<S>) {
        self.demand_convergence(world);
    }
}

/// Runs a world until its faults are over and it has converged. Returns how long that took.
fn run_to_convergence<S: Suite>(
    world: &mut World<S>,
    plan: &ActionPlan,
    checker: &mut dyn ConvergenceChecker<S>,
) -> Duration {
    let end = plan.calm + bound(&world.setup().edge_timing);
    if run_until(world, plan.calm + Duration::from_millis(1), checker) {
        return Duration::ZERO;
    }
    while world.time() < end {
        let next = (world.time() + CHECK_INTERVAL).min(end);
        if run_until(world, next, checker) || !world.anywhere(!checker.has_converged(world)) {
            return world.time() - plan.calm;
        }
    }
    checker.check_convergence(world);
    world.time() - plan.calm
}

fn run_until<S: Suite>(
    world: &mut World<S>,
    until: Duration,
    checker: &mut dyn ConvergenceChecker<S>,
) -> bool {
    world.run_until(until, &mut AsObserver(checker))
}

/// A convergence checker as a plain observer.
struct AsObserver<'a, S: Suite>(&'a mut dyn ConvergenceChecker<S>);

impl<S: Suite> StepObserver<S> for AsObserver<'_, S> {
    fn on_step(&mut self, world: &World<S>, step: &Step) {
        self.0.on_step(world, step);
    }

    fn on_hop(&mut self, hop: &Hop) {
        self.0.on_hop(hop);
    }

    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        self.0.on_action(world, at, action);
    }

    fn stops(&self) -> bool {
        self.0.stops()
    }
}

/// Start states of seeds, in both groups.
pub struct SeedChecker {
    toy: Bases<InsecureToy>,
    real: Bases<Ristretto255>,
    setup: CheckSetup,
}

/// Start states for each second factor, made when the first seed needs them.
struct Bases<S: Suite> {
    setup: CheckSetup,
    ranks: Option<Ranks>,
    bases: [OnceLock<Result<Base<S>, WorldError>>; KemSetting::ALL.len()],
}

impl<S: MasterKeySuite> Bases<S> {
    fn new(setup: CheckSetup, ranks: Option<Ranks>) -> Self {
        Self { setup, ranks, bases: [const { OnceLock::new() }; KemSetting::ALL.len()] }
    }

    /// That of a seed's life.
    fn of(&self, seed: u64) -> Result<&Base<S>, WorldError> {
        let kem = self.setup.kem_of(seed);
        let place = KemSetting::ALL.iter().position(|known| *known == kem).unwrap_or_default();
        let made = || Base::over(self.setup, kem, self.ranks.clone());
        self.bases[place].get_or_init(made).as_ref().map_err(Clone::clone)
    }

    fn run(&self, plan: &ActionPlan) -> Result<SeedOutcome, WorldError> {
        self.of(plan.seed)?.run(plan)
    }
}

/// A failing seed, and the shortest plan found that fails in the same way.
#[derive(Clone, Debug)]
pub struct FailingSeed {
    /// The seed.
    pub seed: u64,
    /// The violation.
    pub violation: Violation,
    /// Number of actions in the seed's plan.
    pub planned: usize,
    /// The shrunk plan.
    pub plan: ActionPlan,
    /// The last steps before it did not hold, for people.
    pub story: Vec<String>,
}

impl SeedChecker {
    /// Enrols all nodes.
    ///
    /// # Errors
    /// Errors of [`World::new`].
    pub fn new(setup: CheckSetup) -> Result<Self, WorldError> {
        Self::with_ranks(setup, None)
    }

    /// The same, of lives that [ranks](crate::ranks) share: all of them check the same seeds in the same order.
    ///
    /// # Errors
    /// Errors of [`World::new`].
    pub fn over(setup: CheckSetup, ranks: &Ranks) -> Result<Self, WorldError> {
        Self::with_ranks(setup, Some(ranks))
    }

    fn with_ranks(setup: CheckSetup, ranks: Option<&Ranks>) -> Result<Self, WorldError> {
        let ranks = || ranks.cloned();
        let checker = Self { toy: Bases::new(setup, ranks()), real: Bases::new(setup, ranks()), setup };
        // A setup that cannot be is refused before the first seed.
        checker.toy.of(1)?;
        Ok(checker)
    }

    /// The group that a seed computes in.
    pub fn suite(seed: u64) -> WorldSuite {
        if seed.is_multiple_of(16) { WorldSuite::Ristretto255 } else { WorldSuite::Toy }
    }

    /// The plan of a seed.
    pub fn plan(&self, seed: u64) -> ActionPlan {
        ActionPlan::new(&self.setup, seed)
    }

    /// Runs a plan.
    ///
    /// # Errors
    /// Errors of [`World::new`].
    pub fn run(&self, plan: &ActionPlan) -> Result<SeedOutcome, WorldError> {
        if Self::suite(plan.seed) == WorldSuite::Toy { self.toy.run(plan) } else { self.real.run(plan) }
    }

    /// Lives through a seed.
    ///
    /// # Errors
    /// Errors of [`World::new`].
    pub fn check(&self, seed: u64) -> Result<SeedOutcome, WorldError> {
        self.run(&self.plan(seed))
    }

    /// Shrinks the plan of a failing seed and returns its last steps; `None` if the seed does not fail.
    ///
    /// # Errors
    /// Errors of [`World::new`].
    pub fn explain(&self, seed: u64) -> Result<Option<FailingSeed>, WorldError> {
        let plan = self.plan(seed);
        if Self::suite(seed) == WorldSuite::Toy {
            self.toy.of(seed)?.explain(&plan)
        } else {
            self.real.of(seed)?.explain(&plan)
        }
    }
}

impl<S: MasterKeySuite> Base<S> {
    fn explain(&self, plan: &ActionPlan) -> Result<Option<FailingSeed>, WorldError> {
        let Some(violation) = self.run(plan)?.violation else { return Ok(None) };
        let (seed, planned) = (plan.seed, plan.actions.len());
        let plan = shrink(plan, |shorter| {
            let outcome = self.run(shorter)?;
            Ok(outcome.violation.is_some_and(|found| found.invariant == violation.invariant))
        })?;
        let (found, story) = story(self, &plan)?;
        // A violation outside the world has no steps.
        let violation = found.unwrap_or(violation);
        Ok(Some(FailingSeed { seed, violation, planned, plan, story }))
    }
}

/// Seeds among which the canary is found: of worlds whose disks lose records many break.
const CANARY_SEEDS: Range<u64> = 1..201;

/// Plants a flaw for which the invariants are there, records that are said to be durable and are not, and looks for it with
/// the same plans, faults and invariants as for every other: the first seed that finds it, `None` if none of 200 does. Then
/// the check sees nothing, and that it found nothing elsewhere says nothing.
///
/// # Errors
/// Errors of [`World::new`].
pub fn find_canary(strategy: StrategyKind) -> Result<Option<u64>, WorldError> {
    let sabotage = Sabotage::LoseRecords;
    find_planted(CheckSetup { edges: 8, strategy, sabotage, ..CheckSetup::default() }, CANARY_SEEDS)
}

/// The first of these seeds, those over ristretto255 left out, that finds what a setup has planted.
///
/// # Errors
/// Errors of [`World::new`].
#[doc(hidden)]
pub fn find_planted(setup: CheckSetup, seeds: Range<u64>) -> Result<Option<u64>, WorldError> {
    let bases = Bases::<InsecureToy>::new(setup, None);
    for seed in seeds.filter(|seed| SeedChecker::suite(*seed) == WorldSuite::Toy) {
        if bases.run(&ActionPlan::new(&setup, seed))?.violation.is_some() {
            return Ok(Some(seed));
        }
    }
    Ok(None)
}

/// Nodes of the checks' worlds.
fn nodes(setup: &CheckSetup) -> impl Iterator<Item = NodeId> {
    let nodes = NodeIndex { kgcs: setup.kgcs, leaders: setup.leaders, relays: setup.relays };
    nodes.kgcs().chain(nodes.leaders()).chain(nodes.relays()).chain((0..setup.edges + 2).map(NodeId::Edge))
}
