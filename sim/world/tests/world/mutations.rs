//! The invariants notice what they are there for: worlds with a planted bug fail within some seeds, honest
//! ones do not.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::{Epoch, StrategyKind};
use quiver_group::{EdgeEvent, LeaderEvent};
use quiver_kem::KemSetting;
use quiver_testbed::matching;
use quiver_world::check::{CheckSetup, SeedChecker, find_canary, find_planted};
use quiver_world::scenario::{ReadOptions, Scenario, shipped};
use quiver_world::{
    Action, Cause, DiskState, Effect, InsecureToy, Invariant, Invariants, LinkFaults, NoObserver, NodeEvent,
    NodeId, NodeSet, Partition, Sabotage, Setup, Step, StepObserver, World,
};

/// The invariants that break in these seeds.
fn broken(sabotage: Sabotage, strategy: StrategyKind, rng_stream: u64) -> BTreeSet<Invariant> {
    let setup = CheckSetup { edges: 8, strategy, sabotage, ..CheckSetup::default() };
    let checker = SeedChecker::new(setup).unwrap();
    let rng_stream =
        (1..=rng_stream).filter(|seed| SeedChecker::suite(*seed) == quiver_world::WorldSuite::Toy);
    rng_stream.filter_map(|seed| Some(checker.check(seed).unwrap().violation?.invariant)).collect()
}

#[test]
fn an_honest_world_breaks_nothing() {
    for strategy in [StrategyKind::Flat, StrategyKind::Tree] {
        assert_eq!(broken(Sabotage::None, strategy, 60), BTreeSet::new());
    }
}

#[test]
fn a_driver_that_transmits_before_it_persists_is_noticed() {
    assert!(!broken(Sabotage::TransmitBeforePersist, StrategyKind::Flat, 200).is_empty());
}

#[test]
fn a_store_that_loses_records_is_noticed() {
    assert!(broken(Sabotage::LoseRecords, StrategyKind::Flat, 60).contains(&Invariant::Persistence));
}

#[test]
fn an_edge_that_starts_from_a_stale_state_is_noticed() {
    assert!(broken(Sabotage::StaleState, StrategyKind::Flat, 60).contains(&Invariant::Persistence));
}

#[test]
fn a_node_that_draws_the_same_randomness_again_is_noticed() {
    assert!(broken(Sabotage::SameDice, StrategyKind::Flat, 60).contains(&Invariant::NoMaskReuse));
}

#[test]
fn pairs_without_the_second_factor_that_the_deployment_says_are_noticed() {
    for strategy in StrategyKind::ALL {
        assert_eq!(broken_with_kem(Sabotage::LeaveOutKem, strategy, 6), [Invariant::ClosedToQuantum].into());
    }
}

#[test]
fn second_factors_that_are_kept_from_term_to_term_are_noticed() {
    for strategy in StrategyKind::ALL {
        assert_eq!(broken_with_kem(Sabotage::KeepStates, strategy, 80), [Invariant::ClosedToQuantum].into());
    }
}

#[test]
fn second_factors_of_anonymous_runs_that_are_left_out_or_logged_are_noticed() {
    for strategy in StrategyKind::ALL {
        for (kem, sabotage, broken) in [
            // Without a second factor the adversary must open every epoch that a drone holds.
            (KemSetting::None, Sabotage::None, None),
            (KemSetting::MlKem768, Sabotage::None, None),
            (KemSetting::MlKem768, Sabotage::LeaveOutKem, Some(Invariant::ClosedToQuantum)),
            (KemSetting::MlKem768, Sabotage::LogRunKem, Some(Invariant::ClosedToQuantum)),
        ] {
            let kem = Some(kem);
            let setup =
                CheckSetup { edges: 8, admission: true, strategy, kem, sabotage, ..CheckSetup::default() };
            assert_eq!(
                broken_in(setup, 4),
                broken.into_iter().collect(),
                "{strategy}, {kem:?}, {sabotage:?}"
            );
        }
    }
}

/// The invariants that break in these seeds, all of them with a second factor.
fn broken_with_kem(sabotage: Sabotage, strategy: StrategyKind, seeds: u64) -> BTreeSet<Invariant> {
    let kem = Some(KemSetting::MlKem768);
    broken_in(CheckSetup { edges: 8, strategy, kem, sabotage, ..CheckSetup::default() }, seeds)
}

/// The invariants that break in these seeds of the toy group.
fn broken_in(setup: CheckSetup, seeds: u64) -> BTreeSet<Invariant> {
    let checker = SeedChecker::new(setup).unwrap();
    let seeds = (1..=seeds).filter(|seed| SeedChecker::suite(*seed) == quiver_world::WorldSuite::Toy);
    seeds.filter_map(|seed| Some(checker.check(seed).unwrap().violation?.invariant)).collect()
}

#[test]
fn a_driver_that_misses_deadlines_is_noticed() {
    assert!(broken(Sabotage::MissDeadlines, StrategyKind::Flat, 100).contains(&Invariant::Convergence));
}

/// The invariants that break in the scenario of telemetry and a captured vehicle.
fn broken_with_telemetry(sabotage: Sabotage, seed: u64) -> BTreeSet<Invariant> {
    let reading = ReadOptions { seed: Some(seed), ..ReadOptions::default() };
    let mut scenario = Scenario::parse("mavlink", shipped("mavlink").unwrap(), reading).unwrap();
    scenario.setup.sabotage = sabotage;
    let run = scenario.run(quiver_world::WorldSuite::Toy).unwrap();
    run.violations.iter().map(|violation| violation.invariant).collect()
}

#[test]
fn a_datagram_key_that_outlives_a_removal_is_noticed() {
    for seed in 1..4 {
        assert_eq!(broken_with_telemetry(Sabotage::KeepDatagramKey, seed), [Invariant::Datagrams].into());
    }
}

#[test]
fn a_station_that_forgets_which_datagrams_it_opened_is_noticed() {
    for seed in 1..4 {
        assert_eq!(broken_with_telemetry(Sabotage::ForgetDatagrams, seed), [Invariant::Datagrams].into());
    }
}

#[test]
fn the_canary_of_every_check_is_found_under_either_strategy_and_where_nothing_is_planted_nothing_is() {
    for strategy in StrategyKind::ALL {
        let found = find_canary(strategy).unwrap();
        assert!(found.is_some_and(|seed| seed <= 40), "{strategy}: {found:?}");
        let honest = CheckSetup { edges: 8, strategy, ..CheckSetup::default() };
        assert_eq!(find_planted(honest, 1..40).unwrap(), None, "{strategy}");
    }
}

#[test]
fn a_seed_tells_how_long_its_world_lived_and_what_took_place() {
    let checker = SeedChecker::new(CheckSetup { edges: 8, ..CheckSetup::default() }).unwrap();
    let (plan, outcome) = (checker.plan(3), checker.check(3).unwrap());
    assert!(outcome.time > Duration::from_secs(10), "{outcome:?}");
    assert_eq!(outcome.actions["end of all faults"], 1);
    // All of the plan took place, beside what actions bring about themselves.
    for (_, action) in &plan.actions {
        let planned = plan.actions.iter().filter(|(_, other)| other.kind() == action.kind()).count() as u64;
        assert!(
            outcome.actions.get(action.kind()).is_some_and(|count| *count >= planned),
            "{action}: {outcome:?}"
        );
    }
}

#[test]
fn a_failing_plan_shrinks_and_still_fails() {
    let setup = CheckSetup { edges: 8, sabotage: Sabotage::SameDice, ..CheckSetup::default() };
    let checker = SeedChecker::new(setup).unwrap();
    let failure = (2..40).find_map(|seed| checker.explain(seed).unwrap()).expect("some seed fails");
    assert!(failure.plan.actions.len() < failure.planned, "{}", failure.plan);
    let again = checker.run(&failure.plan).unwrap().violation.expect("the short plan fails");
    assert_eq!(again, failure.violation);
    assert!(!failure.story.is_empty());
    for left_out in 0..failure.plan.actions.len() {
        let mut shorter = failure.plan.clone();
        shorter.actions.remove(left_out);
        let found = checker.run(&shorter).unwrap().violation;
        assert!(found.is_none_or(|found| found.invariant != failure.violation.invariant), "{}", failure.plan);
    }
}

/// A grouped world and invariants that saw it form.
fn grouped() -> (World<InsecureToy>, Invariants<InsecureToy>) {
    let mut world = World::new(Setup { members: 4, ..Setup::default() }).unwrap();
    let mut invariants = Invariants::new(&world, false);
    world.start_everyone();
    for edge in 0..4 {
        world.schedule(Duration::from_secs(2), Action::Join(edge));
    }
    world.run_until(Duration::from_secs(6), &mut invariants);
    assert_eq!(invariants.violations(), []);
    (world, invariants)
}

fn reported(world: &World<InsecureToy>, node: NodeId, event: NodeEvent) -> Step {
    let effects = vec![Effect::Reported(Box::new(event))];
    Step {
        at: world.time(),
        node,
        cause: Cause::Deadline,
        effects,
        cpu: Duration::ZERO,
        digest: None,
        account: None,
    }
}

#[test]
fn an_edge_that_reports_an_older_epoch_is_noticed() {
    let (world, mut invariants) = grouped();
    let event =
        EdgeEvent::KeyActivated { epoch: Epoch { term: 1 << 16, counter: 1 }, digest: [0; 32], slot: 0 };
    invariants.on_step(&world, &reported(&world, NodeId::Edge(1), NodeEvent::Edge(event)));
    assert_eq!(invariants.violations()[0].invariant, Invariant::NoEpochRegression);
}

#[test]
fn an_edge_that_can_use_an_older_key_than_it_reported_is_noticed() {
    let (world, mut invariants) = grouped();
    let held = world.edge(1).unwrap().status().epoch.unwrap();
    let epoch = Epoch { counter: held.counter + 1, ..held };
    let event = EdgeEvent::KeyActivated { epoch, digest: [0; 32], slot: 0 };
    invariants.on_step(&world, &reported(&world, NodeId::Edge(1), NodeEvent::Edge(event)));
    assert_eq!(invariants.violations()[0].invariant, Invariant::NoEpochRegression);
}

/// Notes which epochs an edge reports, and how far it is whenever its disk holds it up.
struct Outputs {
    invariants: Invariants<InsecureToy>,
    reported: Vec<Epoch>,
    ahead: Vec<Epoch>,
}

impl StepObserver<InsecureToy> for Outputs {
    fn on_step(&mut self, world: &World<InsecureToy>, step: &Step) {
        self.invariants.on_step(world, step);
        if step.node != NodeId::Edge(1) {
            return;
        }
        self.reported.extend(
            step.events()
                .filter_map(matching!(NodeEvent::Edge(EdgeEvent::KeyActivated { epoch, .. }) => *epoch)),
        );
        if step.effects.contains(&Effect::Stalled) {
            self.ahead.extend(world.edge(1).and_then(|edge| edge.status().epoch));
        }
    }
}

/// An edge has the wraps of an epoch before those of the epoch that they build on. When it has both it takes
/// two steps at once, and its disk fails at the first: both epochs are reported late, one after the other, by
/// a machine that is past the first all the time. That is no way back.
#[test]
fn epochs_that_a_failing_disk_holds_up_are_no_regression() {
    let setup = Setup { members: 4, strategy: StrategyKind::Tree, ..Setup::default() };
    let mut world = World::new(setup).unwrap();
    let invariants = Invariants::new(&world, false);
    let mut outputs = Outputs { invariants, reported: Vec::new(), ahead: Vec::new() };
    world.start_everyone();
    for edge in 0..4 {
        world.schedule(Duration::from_secs(2), Action::Join(edge));
    }
    world.run_until(Duration::from_secs(6), &mut outputs);
    outputs.reported.clear();
    let slow = LinkFaults { delay: Duration::from_secs(2), ..LinkFaults::SOUND };
    let deaf = Partition::one_way(NodeSet::only([NodeId::Edge(1)]), NodeSet::only([NodeId::Leader(0)]));
    for (millis, action) in [
        // It asks for missing epochs, but no leader receives that.
        (6_000, Action::Part(deaf)),
        (6_000, Action::LinksOf(NodeId::Edge(1), Some(slow))),
        (6_100, Action::Rekey),
        (6_200, Action::LinksOf(NodeId::Edge(1), None)),
        (6_300, Action::Rekey),
        (8_000, Action::Disk(NodeId::Edge(1), DiskState::Failing(1))),
        (9_000, Action::Heal),
    ] {
        world.schedule(Duration::from_millis(millis), action);
    }
    world.run_until(Duration::from_secs(20), &mut outputs);
    let [first, second] = outputs.reported[..] else { panic!("{:?}", outputs.reported) };
    assert_eq!(second.counter, first.counter + 1);
    assert_eq!(outputs.ahead, [second], "the machine was ahead of its first report");
    assert_eq!(outputs.invariants.violations(), []);
}

#[test]
fn a_leader_that_makes_an_epoch_twice_is_noticed() {
    let (world, mut invariants) = grouped();
    let epoch = world.leader(0).unwrap().status().epoch.unwrap();
    let event = LeaderEvent::EpochActivated {
        epoch,
        kind: quiver_ainq::EpochKind::Rekey,
        members: 4,
        added: 0,
        removed: 0,
    };
    invariants.on_step(&world, &reported(&world, NodeId::Leader(0), NodeEvent::Leader(event)));
    let found: BTreeSet<_> = invariants.violations().iter().map(|found| found.invariant).collect();
    assert!(found.contains(&Invariant::NoEpochRegression) && found.contains(&Invariant::Agreement));
}

#[test]
fn a_message_that_nobody_said_is_noticed() {
    let (world, mut invariants) = grouped();
    let event = EdgeEvent::Message {
        channel: quiver_ainq::Name::new("talk").unwrap(),
        data: 7_u32.to_be_bytes().to_vec().into(),
        source: quiver_group::MessageOrigin::Unauthenticated { slot: 0 },
    };
    invariants.on_step(&world, &reported(&world, NodeId::Edge(1), NodeEvent::Edge(event)));
    assert_eq!(invariants.violations()[0].invariant, Invariant::Delivery);
}

#[test]
fn an_edge_that_is_cut_off_is_missed() {
    let (mut world, mut invariants) = grouped();
    let island = Partition::island([NodeId::Edge(2)]);
    world.schedule(world.time(), Action::Part(island));
    world.schedule(world.time() + Duration::from_secs(1), Action::Rekey);
    world.run_for(Duration::from_secs(5), &mut invariants);
    invariants.demand_convergence(&world);
    let [violation] = invariants.violations() else { panic!("{:?}", invariants.violations()) };
    assert_eq!((violation.invariant, violation.node), (Invariant::Convergence, Some(NodeId::Edge(2))));
    world.run_for(Duration::from_secs(1), &mut NoObserver);
}

#[test]
fn a_captive_opens_what_it_is_in_and_nothing_else() {
    for strategy in [StrategyKind::Flat, StrategyKind::Tree] {
        let setup = Setup { members: 4, recording: true, strategy, ..Setup::default() };
        let mut world = World::<InsecureToy>::new(setup).unwrap();
        let mut invariants = Invariants::new(&world, false);
        world.start_everyone();
        for edge in 0..4 {
            world.schedule(Duration::from_secs(2), Action::Join(edge));
        }
        world.schedule(Duration::from_secs(6), Action::Rekey);
        world.schedule(Duration::from_secs(8), Action::Capture(1));
        world.schedule(Duration::from_secs(10), Action::Stop(NodeId::Leader(0)));
        world.schedule(Duration::from_secs(11), Action::Start(NodeId::Leader(0)));
        world.schedule(Duration::from_secs(20), Action::Evict(1));
        world.schedule(Duration::from_secs(22), Action::Rekey);
        world.schedule(Duration::from_secs(24), Action::Stop(NodeId::Leader(0)));
        world.schedule(Duration::from_secs(25), Action::Start(NodeId::Leader(0)));
        world.run_until(Duration::from_secs(40), &mut invariants);
        assert_eq!(invariants.violations(), []);
        // Its keys do open the term that was opened while it was in: otherwise its failure to open others
        // would prove nothing.
        assert!(invariants.opened_by_compromised() > 0, "{strategy:?}");
    }
}
