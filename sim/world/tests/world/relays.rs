//! Drones behind relays: lives without faults, hostile relays, and random lives.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_group::leader::LeaderTiming;
use quiver_relay::RelayEvent;
use quiver_world::check::{CheckSetup, SeedChecker};
use quiver_world::relays::RelayNodeEvent;
use quiver_world::{
    Action, InsecureToy, Invariant, Invariants, NodeEvent, NodeId, Sabotage, Setup, Step, StepObserver,
    World, WorldError, WorldSuite,
};

const MEMBERS: u32 = 8;

fn setup(leaders: u16, strategy: StrategyKind) -> Setup {
    let silence = (leaders > 1).then(|| Duration::from_secs(4));
    Setup {
        members: MEMBERS,
        leaders,
        relays: 2,
        strategy,
        recording: true,
        leader_timing: LeaderTiming { silence, ..LeaderTiming::default() },
        ..Setup::default()
    }
}

/// A group that forms in ten seconds, and what happens to it from the twentieth on.
fn befallen(
    setup: Setup,
    actions: impl IntoIterator<Item = (u64, Action)>,
    observe: &mut dyn FnMut(&World<InsecureToy>, &Step),
) -> (World<InsecureToy>, Invariants<InsecureToy>) {
    let mut world = World::<InsecureToy>::new(setup).unwrap();
    let invariants = Invariants::new(&world, false);
    world.start_everyone();
    for edge in 0..MEMBERS {
        world.schedule(Duration::from_secs(10), Action::Join(edge));
    }
    for (after, action) in actions {
        world.schedule(Duration::from_secs(20 + after), action);
    }
    let mut watch = Watch { invariants, observe };
    world.run_until(Duration::from_secs(480), &mut watch);
    watch.invariants.demand_convergence(&world);
    (world, watch.invariants)
}

struct Watch<'a> {
    invariants: Invariants<InsecureToy>,
    observe: &'a mut dyn FnMut(&World<InsecureToy>, &Step),
}

impl StepObserver<InsecureToy> for Watch<'_> {
    fn on_step(&mut self, world: &World<InsecureToy>, step: &Step) {
        self.invariants.on_step(world, step);
        (self.observe)(world, step);
    }

    fn on_action(&mut self, world: &World<InsecureToy>, at: Duration, action: &Action) {
        self.invariants.on_action(world, at, action);
    }
}

fn talk(node: NodeId, number: u32) -> Action {
    Action::Talk { node, number, signed: true }
}

#[test]
fn group_behind_relays_lives_and_talks() {
    for (leaders, parallel) in [(1, false), (1, true), (2, false)] {
        for strategy in [StrategyKind::Flat, StrategyKind::Tree] {
            let setup = Setup { parallel, ..setup(leaders, strategy) };
            let actions = [
                (0, Action::Rekey),
                (5, Action::Evict(3)),
                (10, Action::Leave(5)),
                (20, talk(NodeId::Edge(2), 1)),
                (20, talk(NodeId::Leader(0), 2)),
            ];
            let (world, invariants) = befallen(setup, actions, &mut |_, _| {});
            assert_eq!(invariants.violations(), [], "{strategy:?}, {leaders} leaders");
            assert!((0..MEMBERS).all(|edge| !world.connected(NodeId::Edge(edge), NodeId::Leader(0))));
            // Each has a connection to both relays of each leader.
            assert_eq!(world.relayed(0), Some((2, 2 * MEMBERS as usize)));
            let members: BTreeSet<NodeId> =
                (0..MEMBERS).filter(|edge| ![3, 5].contains(edge)).map(NodeId::Edge).collect();
            for (number, sender) in [(1, NodeId::Edge(2)), (2, NodeId::Leader(0))] {
                let heard: BTreeSet<NodeId> = invariants.heard(number).collect();
                let missing: Vec<_> =
                    members.iter().filter(|node| **node != sender && !heard.contains(node)).collect();
                assert!(missing.is_empty(), "{missing:?} lack message {number}");
            }
            assert!(invariants.heard(1).any(|node| node == NodeId::Leader(0)));
        }
    }
}

#[test]
fn hostile_relay_breaks_nothing_and_all_converge_when_it_is_honest_again() {
    for strategy in [StrategyKind::Flat, StrategyKind::Tree] {
        for seed in 1..6 {
            let setup = Setup { seed, ..setup(1, strategy) };
            let busy =
                (1..30).map(|second| (second, if second == 9 { Action::Evict(1) } else { Action::Rekey }));
            let hostile = [true, false].map(|hostile| Action::Subvert { relay: 0, hostile });
            let actions = [0, 40].into_iter().zip(hostile).chain(busy);
            let (world, invariants) = befallen(setup, actions, &mut |_, _| {});
            assert_eq!(invariants.violations(), [], "{strategy:?}, seed {seed}");
            assert_eq!(world.leader(0).unwrap().members().count(), MEMBERS as usize - 1);
        }
    }
}

#[test]
fn relay_that_dies_or_loses_its_leader_lets_its_drones_go() {
    let mut lost = 0;
    let relay = NodeId::Relay(0);
    let crash = |node| Action::Crash { node, after: 0, down_for: Duration::from_secs(5) };
    // The relay is back, and has drones again, when the leader crashes.
    let actions =
        [(0, crash(relay)), (0, Action::Rekey), (40, crash(NodeId::Leader(0))), (40, Action::Rekey)];
    let (_, invariants) = befallen(setup(1, StrategyKind::Tree), actions, &mut |_, step| {
        lost += step
            .events()
            .map(NodeEvent::of_feature::<RelayNodeEvent>)
            .filter(
                |event| matches!(event, Some(RelayNodeEvent::Relay(RelayEvent::LeaderLost { drones })) if *drones > 0),
            )
            .count();
    });
    assert_eq!(invariants.violations(), []);
    assert_eq!(lost, 2, "both relays lost the leader that crashed");
}

#[test]
fn relays_are_for_links_without_a_radio() {
    let mavlink = Some(quiver_world::MavlinkSetup::default());
    let setup = Setup { mavlink, ..setup(1, StrategyKind::Flat) };
    assert!(matches!(World::<InsecureToy>::new(setup).err(), Some(WorldError::Relays(_))));
}

/// The invariants that break in these seeds.
fn broken(sabotage: Sabotage, leaders: u16, strategy: StrategyKind, seeds: u64) -> BTreeSet<Invariant> {
    let setup = CheckSetup { edges: 8, leaders, relays: 2, strategy, sabotage, ..CheckSetup::default() };
    let checker = SeedChecker::new(setup).unwrap();
    let seeds = (1..=seeds).filter(|seed| SeedChecker::suite(*seed) == WorldSuite::Toy);
    seeds.filter_map(|seed| Some(checker.check(seed).unwrap().violation?.invariant)).collect()
}

#[test]
fn honest_world_with_relays_breaks_nothing() {
    for strategy in [StrategyKind::Flat, StrategyKind::Tree] {
        assert_eq!(broken(Sabotage::None, 1, strategy, 30), BTreeSet::new());
    }
}

#[test]
fn relay_that_keeps_its_drones_without_a_leader_is_noticed() {
    assert!(broken(Sabotage::KeepDrones, 1, StrategyKind::Flat, 60).contains(&Invariant::Convergence));
}
