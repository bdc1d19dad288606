//! Groups that demand a policy, in virtual time: who is an anonymous member, what ends a membership, and what
//! would link two.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_admission::{AdmissionError, AnonymousEvent, Ending};
use quiver_ainq::{Pseudonym, Ristretto255, StrategyKind, Suite};
use quiver_group::leader::LeaderTiming;
use quiver_group::{EdgeEvent, LeaderEvent};
use quiver_kem::KemSetting;
use quiver_world::admission::{
    AdmissionNodeEvent, COMPARED, CertifiedFields, FENCE, PERIOD, Rules, Sightings, linked,
};
use quiver_world::check::{Base, CheckSetup, SeedChecker};
use quiver_world::run::{PhaseCosts, RunPlan, run};
use quiver_world::{
    Action, Cause, DiskState, Effect, Forgery, InsecureToy, Invariant, Invariants, MasterKeySuite, NodeEvent,
    NodeId, NodeSet, Partition, Setup, Step, StepObserver, World, WorldSuite,
};

type S = InsecureToy;

const BOTH: [StrategyKind; 2] = [StrategyKind::Flat, StrategyKind::Tree];
const INSIDE: CertifiedFields = CertifiedFields { x: 200, y: -100, battery: 80 };
const OUTSIDE: CertifiedFields = CertifiedFields { x: -900, y: 900, battery: 80 };

fn setup(strategy: StrategyKind, seed: u64, members: u32) -> Setup {
    let admission = Some(Rules::of(FENCE));
    Setup { seed, fleet_seed: seed, members, strategy, admission, traced: true, ..Setup::default() }
}

/// A world with its observers.
struct Scene {
    world: World<S>,
    counter: Counter,
}

struct Counter {
    invariants: Invariants<S>,
    sightings: Sightings<S>,
    /// Events that leaders and drones reported about memberships.
    events: Vec<(NodeId, NodeEvent)>,
}

impl StepObserver<S> for Counter {
    fn on_step(&mut self, world: &World<S>, step: &Step) {
        self.invariants.on_step(world, step);
        self.sightings.note(world, step);
        self.events.extend(step.events().map(|event| (step.node, event.clone())));
    }

    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        self.invariants.on_action(world, at, action);
    }
}

impl Scene {
    /// Enrols all drones, and makes some join.
    fn new(setup: Setup, wanting: impl IntoIterator<Item = u32>) -> Self {
        let mut world = World::<S>::new(setup).unwrap();
        let counter = Counter {
            invariants: Invariants::new(&world, false),
            sightings: Sightings::default(),
            events: Vec::new(),
        };
        world.start_everyone();
        let mut scene = Self { world, counter };
        scene.run(20);
        for edge in wanting {
            scene.act(Action::Join(edge));
        }
        scene.run(20);
        scene
    }

    fn act(&mut self, action: Action) {
        self.world.schedule(self.world.time(), action);
    }

    fn run(&mut self, seconds: u64) {
        self.world.run_for(Duration::from_secs(seconds), &mut self.counter);
        assert_eq!(self.counter.invariants.violations(), [], "{:?}", self.counter.events);
    }

    /// Runs to the end of the period, and beyond the time in which drones fetch their credentials.
    fn run_into_the_next_period(&mut self) {
        let into = self.world.time().as_secs() % PERIOD.as_secs();
        self.run(PERIOD.as_secs() - into + 100);
    }

    /// The drones that hold the key of this leader.
    fn holders(&self, leader: u16) -> Vec<u32> {
        let name = quiver_ainq::Name::new("test").unwrap();
        let key = self.world.leader(leader).unwrap().export(&name).unwrap();
        let holds =
            |edge: &u32| self.world.edge(*edge).and_then(|edge| edge.export(&name)) == Some(key.clone());
        (0..self.world.edge_count()).filter(holds).collect()
    }

    /// The drones that the policy admits, computed from the coordinates, not by the circuit.
    fn inside(&self, drones: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let checkpoint = self.world.fleet().checkpoint().unwrap();
        let inside = |drone: &u32| {
            let CertifiedFields { x, y, battery } = checkpoint.fields(*drone);
            (i64::from(x) - 200).pow(2) + (i64::from(y) + 100).pow(2) < 700 * 700 && battery >= 20
        };
        drones.into_iter().filter(inside).collect()
    }

    fn converged(&mut self) {
        self.counter.invariants.demand_convergence(&self.world);
        assert_eq!(self.counter.invariants.violations(), []);
    }
}

#[test]
fn exactly_those_inside_the_circle_are_members_and_follow() {
    for strategy in BOTH {
        let mut scene = Scene::new(setup(strategy, 1, 20), 0..20);
        let inside = scene.inside(0..20);
        assert!(!inside.is_empty() && inside.len() < 20, "{inside:?}");
        assert_eq!(scene.holders(0), inside);
        let leader = scene.world.leader(0).unwrap();
        assert_eq!((leader.status().members, leader.members().count()), (inside.len(), 0));
        for _ in 0..3 {
            scene.act(Action::Rekey);
            scene.run(5);
        }
        assert_eq!(scene.holders(0), inside);
        scene.act(Action::Leave(inside[0]));
        scene.run(10);
        assert_eq!(scene.holders(0), inside[1..]);
        scene.converged();
        let told = |event: &(NodeId, NodeEvent)| {
            matches!(event, (NodeId::Leader(_), NodeEvent::Leader(LeaderEvent::Joined { .. })))
        };
        assert!(!scene.counter.events.iter().any(told), "a drone was admitted by name");
    }
}

#[test]
fn memberships_end_with_the_period_and_who_flew_out_or_was_revoked_stays_out() {
    for strategy in BOTH {
        let mut scene = Scene::new(setup(strategy, 2, 6), 0..6);
        for edge in 0..6 {
            scene.act(Action::Certify { edge, fields: INSIDE });
        }
        scene.run(30);
        assert_eq!(scene.holders(0), [0, 1, 2, 3, 4, 5]);
        scene.act(Action::Certify { edge: 1, fields: OUTSIDE });
        scene.act(Action::Decertify(2));
        scene.run(30);
        // A credential is valid until the period ends.
        assert_eq!(scene.holders(0), [0, 1, 2, 3, 4, 5]);
        scene.run_into_the_next_period();
        assert_eq!(scene.holders(0), [0, 3, 4, 5]);
        // It flies back, and need not wait.
        scene.act(Action::Certify { edge: 1, fields: INSIDE });
        scene.run(30);
        assert_eq!(scene.holders(0), [0, 1, 3, 4, 5]);
        scene.run_into_the_next_period();
        assert_eq!(scene.holders(0), [0, 1, 3, 4, 5]);
        scene.converged();
    }
}

#[test]
fn leader_that_restarts_lets_everybody_in_again_and_nobody_else() {
    for strategy in BOTH {
        let mut scene = Scene::new(setup(strategy, 3, 12), 0..12);
        let inside = scene.inside(0..12);
        let before = scene.world.leader(0).unwrap().status().epoch;
        scene.act(Action::Stop(NodeId::Leader(0)));
        scene.run(1);
        scene.act(Action::Start(NodeId::Leader(0)));
        scene.run(60);
        assert!(scene.world.leader(0).unwrap().status().epoch > before);
        assert_eq!(scene.holders(0), inside);
        scene.converged();
    }
}

#[test]
fn deputy_demands_the_same_and_everybody_applies_to_it_again() {
    for strategy in BOTH {
        let leader_timing = LeaderTiming { silence: Some(Duration::from_secs(4)), ..LeaderTiming::default() };
        let setup = Setup { leaders: 2, leader_timing, ..setup(strategy, 4, 12) };
        let mut scene = Scene::new(setup, 0..12);
        scene.run(30);
        let inside = scene.inside(0..12);
        assert_eq!(scene.holders(0), inside);
        scene.act(Action::Stop(NodeId::Leader(0)));
        scene.run(90);
        assert!(scene.world.leader(1).unwrap().status().epoch.is_some(), "it took over");
        assert_eq!(scene.holders(1), inside);
        assert_eq!(scene.world.leader(1).unwrap().members().count(), 0);
        // The first one comes back, and follows.
        scene.act(Action::Start(NodeId::Leader(0)));
        scene.run(60);
        scene.converged();
    }
}

/// A deputy takes over on an island with one drone, and is gone when the partition ends.
#[test]
fn anonymous_drone_enters_an_older_term_in_another_membership() {
    for strategy in BOTH {
        let leader_timing = LeaderTiming { silence: Some(Duration::from_secs(4)), ..LeaderTiming::default() };
        let setup = Setup { leaders: 2, leader_timing, ..setup(strategy, 4, 12) };
        let mut scene = Scene::new(setup, 0..12);
        let drone = scene.inside(0..12)[0];
        let island = [NodeId::Leader(1), NodeId::Edge(drone)];
        scene.act(Action::Part(Partition::both_ways(NodeSet::only(island), NodeSet::all_but(island))));
        scene.run(60);
        assert_eq!(scene.holders(1), [drone]);
        let ahead = scene.world.edge(drone).unwrap().status().epoch;
        scene.act(Action::Stop(NodeId::Leader(1)));
        scene.act(Action::Heal);
        scene.run(60);
        assert!(scene.holders(0).contains(&drone));
        assert!(scene.world.edge(drone).unwrap().status().epoch < ahead);
        scene.converged();
    }
}

#[test]
fn stranger_to_whom_nothing_is_certified_is_in_neither_by_name_nor_without_one() {
    let strangers = Setup { strangers: 2, ..setup(StrategyKind::Tree, 5, 4) };
    let mut scene = Scene::new(strangers, 0..6);
    for edge in 0..4 {
        scene.act(Action::Certify { edge, fields: INSIDE });
    }
    scene.run(30);
    assert_eq!(scene.holders(0), [0, 1, 2, 3]);
    let refused = |edge: u32| {
        let refused = |event: &(NodeId, NodeEvent)| {
            let (node, event) = event;
            *node == NodeId::Edge(edge) && matches!(event, NodeEvent::Edge(EdgeEvent::Refused(_)))
        };
        scene.counter.events.iter().any(refused)
    };
    assert!(refused(4) && refused(5));
}

#[test]
fn random_lives_under_faults_break_no_invariant() {
    for (leaders, strategy) in [(1, StrategyKind::Flat), (2, StrategyKind::Tree)] {
        let setup = CheckSetup { edges: 8, leaders, strategy, admission: true, ..CheckSetup::default() };
        let checker = SeedChecker::new(setup).unwrap();
        for seed in 1..=5 {
            let outcome = checker.check(seed).unwrap();
            assert_eq!(outcome.violation, None, "seed {seed}, {leaders} leaders");
            assert!(outcome.steps > 100 && outcome.epochs > 0);
        }
    }
}

/// Attributes of the credentials in a life.
#[derive(Default)]
struct Attributes(BTreeSet<usize>);

impl<S: Suite> StepObserver<S> for Attributes {
    fn on_step(&mut self, world: &World<S>, _: &Step) {
        self.0.insert(world.fleet().checkpoint().unwrap().size().1);
    }
}

fn attributes<S: MasterKeySuite>() -> BTreeSet<usize> {
    let setup = CheckSetup { edges: 4, admission: true, ..CheckSetup::default() };
    let base = Base::<S>::new(setup, KemSetting::None).unwrap();
    let mut seen = Attributes::default();
    assert_eq!(base.watch(&base.plan(2), &mut seen).unwrap(), None);
    seen.0
}

#[test]
fn lives_over_the_toy_group_certify_the_battery_and_the_others_all_fields() {
    assert_eq!(attributes::<S>(), BTreeSet::from([7]));
    assert_eq!(attributes::<Ristretto255>(), BTreeSet::from([39]));
}

#[test]
fn whoever_is_wrongly_in_or_out_is_noticed() {
    let mut scene = Scene::new(setup(StrategyKind::Flat, 1, 20), 0..20);
    let inside = scene.inside(0..20);
    let outside = (0..20).find(|drone| !inside.contains(drone)).unwrap();
    let unsatisfied = AdmissionError::Exchange(quiver_abke::Error::Unsatisfied);
    let mut reports = |drone: u32, event: AnonymousEvent| {
        let at = scene.world.time();
        let event = AdmissionNodeEvent::Anonymous(event).into();
        let effects = vec![Effect::Reported(Box::new(event))];
        let cause = Cause::Deadline;
        let step = Step {
            at,
            node: NodeId::Edge(drone),
            cause,
            effects,
            cpu: Duration::ZERO,
            digest: None,
            account: None,
        };
        let before = scene.counter.invariants.violations().len();
        scene.counter.invariants.on_step(&scene.world, &step);
        let found = &scene.counter.invariants.violations()[before..];
        found.iter().map(|violation| violation.invariant).collect::<Vec<_>>()
    };
    let admitted =
        |byte| AnonymousEvent::Admitted { pseudonym: Pseudonym([byte; 16]), slot: 0, until: u64::MAX };
    assert_eq!(reports(outside, admitted(1)), [Invariant::Admission]);
    assert_eq!(
        reports(inside[0], AnonymousEvent::Ended(Ending::Denied(unsatisfied))),
        [Invariant::Admission]
    );
    // A pseudonym that another drone had, and a key that is none of the drone's epochs.
    assert!(reports(inside[0], admitted(1)).contains(&Invariant::Unlinkability));
}

/// A drone's clock jumps over the end of the period, which its next step tells it, and that is a forged message.
#[test]
fn period_that_is_over_as_a_forged_message_comes_is_no_end_by_it() {
    for strategy in BOTH {
        let setup = Setup { recording: true, ..setup(strategy, 2, 6) };
        let mut scene = Scene::new(setup, 0..6);
        let [drone, other, ..] = scene.inside(0..6)[..] else { panic!("two drones are members") };
        let seconds = PERIOD.as_secs().cast_signed();
        scene.act(Action::Skew { node: NodeId::Edge(drone), seconds });
        scene.act(Action::Forge { by: other, what: Forgery::RevocationQuery, pick: 1 });
        scene.counter.events.clear();
        scene.world.run_for(Duration::from_millis(200), &mut scene.counter);
        let over = AnonymousEvent::Ended(Ending::PeriodOver);
        let over = NodeEvent::Feature(AdmissionNodeEvent::Anonymous(over).into());
        assert!(scene.counter.events.contains(&(NodeId::Edge(drone), over)), "{:?}", scene.counter.events);
        assert!(scene.counter.invariants.forgeries() > 0);
        assert_eq!(scene.counter.invariants.violations(), []);
    }
}

/// The disk of a leader takes an epoch half a second after it was made, and in between all memberships end.
#[test]
fn epoch_that_was_made_before_the_period_ended_and_is_durable_afterwards_is_no_fault_and_a_later_one_is() {
    for strategy in BOTH {
        let mut scene = Scene::new(setup(strategy, 1, 20), 0..20);
        let inside = scene.inside(0..20);
        let leader = NodeId::Leader(0);
        let before = |millis| PERIOD - Duration::from_millis(millis);
        scene.world.schedule(before(300), Action::Disk(leader, DiskState::Failing(1)));
        scene.world.schedule(before(200), Action::Rekey);
        scene.world.run_until(before(100), &mut scene.counter);
        assert!(scene.world.stalled(leader), "its disk holds the epoch up");
        scene.counter.events.clear();
        scene.world.run_until(PERIOD + Duration::from_millis(350), &mut scene.counter);
        let made = |(_, event): &(NodeId, NodeEvent)| match event {
            NodeEvent::Leader(LeaderEvent::EpochActivated { members, .. }) => Some(*members),
            _ => None,
        };
        let members: Vec<usize> = scene.counter.events.iter().filter_map(made).collect();
        assert_eq!(members, [inside.len()]);
        assert_eq!(scene.counter.invariants.violations(), []);
        // Were it another epoch, it would have been made now.
        let again = scene.counter.events.iter().find(|event| made(event).is_some()).cloned().unwrap().1;
        let step = Step {
            at: scene.world.time(),
            node: leader,
            cause: Cause::Deadline,
            effects: vec![Effect::Reported(Box::new(again))],
            cpu: Duration::ZERO,
            digest: None,
            account: None,
        };
        let mut later = Invariants::new(&scene.world, false);
        later.on_step(&scene.world, &step);
        let found: Vec<_> = later.violations().iter().map(|violation| violation.invariant).collect();
        assert!(found.contains(&Invariant::Admission), "{found:?}");
        scene.run_into_the_next_period();
        scene.converged();
    }
}

#[test]
fn one_seed_gives_one_life() {
    let trace = |seed| {
        let mut scene = Scene::new(setup(StrategyKind::Flat, seed, 8), 0..8);
        scene.act(Action::Crash { node: NodeId::Edge(1), after: 0, down_for: Duration::from_secs(3) });
        scene.act(Action::Rekey);
        scene.run(30);
        scene.world.trace_hash().unwrap()
    };
    assert_eq!(trace(6), trace(6));
    assert_ne!(trace(6), trace(7));
}

/// Two lives of each of twelve drones, with the same credential: the first ends because the leader restarts.
fn twice(seed: u64) -> Scene {
    let mut scene = Scene::new(setup(StrategyKind::Tree, seed, 12), 0..12);
    scene.act(Action::Stop(NodeId::Leader(0)));
    scene.run(1);
    scene.act(Action::Start(NodeId::Leader(0)));
    scene.run(60);
    scene
}

#[test]
fn two_lives_of_one_drone_have_nothing_in_common_that_a_leader_receives_or_sends() {
    let scene = twice(7);
    let lives = scene.counter.sightings.lives();
    let inside = scene.inside(0..12);
    for drone in &inside {
        let own: Vec<_> = lives.iter().filter(|life| life.drone == *drone).collect();
        assert_eq!(own.len(), 2, "drone {drone}");
        // The exchange, an offer and tables among it, and the messages of a member.
        assert!(own.iter().all(|life| life.seen.iter().map(Vec::len).sum::<usize>() > 15_000));
        assert!(own.iter().all(|life| life.seen.len() > 10), "{:?}", own[0].seen.len());
    }
    assert!(inside.len() >= 2 && inside.len() < COMPARED);
    assert!(linked(&lives).is_empty());
}

#[test]
fn drone_that_shows_the_same_twice_is_recognised() {
    let mut lives = twice(8).counter.sightings.lives();
    let tag = b"a serial number".to_vec();
    let drone = lives
        .iter()
        .map(|life| life.drone)
        .find(|drone| lives.iter().filter(|life| life.drone == *drone).count() == 2);
    for life in lives.iter_mut().filter(|life| Some(life.drone) == drone) {
        life.seen.push(tag.clone());
    }
    assert_eq!(linked(&lives).into_keys().collect::<Vec<_>>(), [drone.unwrap()]);
}

#[test]
fn whole_run_joins_without_names_under_a_quorum_too() {
    for ((kgcs, threshold), strategy) in [(1, 1), (3, 2)].into_iter().zip(BOTH) {
        let plan = RunPlan {
            drones: 12,
            strategy,
            kem: KemSetting::None,
            seed: 1,
            leavers: 1,
            newcomers: 3,
            messages: 4,
            envelopes: false,
            kgcs,
            threshold,
            orders: false,
            admission: Some(FENCE.into()),
            share_verifications: false,
            restart_leader: true,
            air: None,
            depot: None,
            traced: false,
            ranks: None,
        };
        let run = run(WorldSuite::Toy, &plan, &mut |_| {}).unwrap();
        assert_eq!(run.violations, []);
        let rows: Vec<_> = run.operations.iter().map(PhaseCosts::name).collect();
        let beginnings = [
            "enrol",
            "form group (",
            "re-key",
            "leave (1",
            "join (",
            "messages (2 by leader)",
            "messages (2 by drones)",
            "all leave (",
            "come again (",
            "next period (",
            "restart leader",
        ];
        assert_eq!(rows.len(), beginnings.len(), "{rows:?}");
        assert!(rows.iter().zip(beginnings).all(|(row, beginning)| row.starts_with(beginning)), "{rows:?}");
        assert!(rows[1].ends_with("of 12 admitted)"), "{rows:?}");
    }
}
