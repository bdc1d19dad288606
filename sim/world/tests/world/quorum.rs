//! Drones enrol with a quorum of KGCs, some of which crash, lie or are cut off.

use std::time::Duration;

use quiver_ainq::{Name, Ristretto255};
use quiver_quorum::QuorumSuite;
use quiver_world::check::{CheckSetup, SeedChecker};
use quiver_world::{Action, InsecureToy, Invariant, Invariants, NodeId, Sabotage, Setup, World, WorldSuite};

fn quorum(kgcs: u16, threshold: u16) -> Setup {
    Setup { members: 6, kgcs, threshold, recording: true, ..Setup::default() }
}

fn enrolled<S: QuorumSuite>(world: &World<S>) -> usize {
    (0..world.edge_count())
        .filter(|edge| world.edge(*edge).is_some_and(|edge| edge.status().name.is_some()))
        .count()
}

fn a_group_forms<S: QuorumSuite>(setup: Setup) {
    let mut world = World::<S>::new(setup).unwrap();
    let mut invariants = Invariants::new(&world, false);
    world.start_everyone();
    world.run_until(Duration::from_secs(5), &mut invariants);
    assert_eq!(enrolled(&world), 6);
    for edge in 0..6 {
        world.schedule(world.time(), Action::Join(edge));
    }
    world.run_for(Duration::from_secs(5), &mut invariants);
    let key = |name: &Name, edge| Some(*world.edge(edge)?.export(name)?.expose());
    let name = Name::new("test").unwrap();
    let leader = *world.leader(0).unwrap().export(&name).unwrap().expose();
    assert!((0..6).all(|edge| key(&name, edge) == Some(leader)));
    assert_eq!(invariants.violations(), []);
}

#[test]
fn a_group_forms_under_a_quorum_over_every_suite() {
    a_group_forms::<InsecureToy>(quorum(5, 3));
    a_group_forms::<Ristretto255>(quorum(3, 2));
}

#[test]
fn so_many_kgcs_as_it_takes_are_enough_and_one_less_is_not() {
    for (off, expected) in [(2, 6), (3, 0)] {
        let mut world = World::<InsecureToy>::new(quorum(5, 3)).unwrap();
        let mut invariants = Invariants::new(&world, false);
        world.start_everyone();
        for kgc in 1..=off {
            world.schedule(Duration::ZERO, Action::Stop(NodeId::Kgc(kgc)));
        }
        world.run_until(Duration::from_secs(60), &mut invariants);
        assert_eq!(enrolled(&world), expected, "{off} KGCs are off");
        assert_eq!(invariants.violations(), []);
    }
}

/// Violations by a token that two drones have, one of which asks while the other is off and the KGCs restart
/// in between.
fn raced(sabotage: Sabotage) -> (usize, Vec<Invariant>) {
    let setup = Setup { strangers: 2, one_token: vec![6, 7], sabotage, ..quorum(5, 3) };
    let mut world = World::<InsecureToy>::new(setup).unwrap();
    let mut invariants = Invariants::new(&world, false);
    world.start_everyone();
    world.schedule(Duration::ZERO, Action::Stop(NodeId::Edge(7)));
    for kgc in 1..=5 {
        world.schedule(Duration::from_secs(5), Action::Stop(NodeId::Kgc(kgc)));
        world.schedule(Duration::from_secs(6), Action::Start(NodeId::Kgc(kgc)));
    }
    world.schedule(Duration::from_secs(7), Action::Start(NodeId::Edge(7)));
    world.run_until(Duration::from_secs(60), &mut invariants);
    let twins = [6, 7].into_iter().filter(|edge| world.edge(*edge).unwrap().status().name.is_some());
    (twins.count(), invariants.violations().iter().map(|violation| violation.invariant).collect())
}

#[test]
fn a_token_gives_one_identity_and_kgcs_that_forget_whom_they_are_bound_to_are_noticed() {
    assert_eq!(raced(Sabotage::None), (1, vec![]));
    let (twins, broken) = raced(Sabotage::ForgetPins);
    assert_eq!(twins, 2);
    assert!(broken.contains(&Invariant::OneIdentityPerToken), "{broken:?}");
}

/// Violations by an adversary that takes the state of these KGCs.
fn seized(setup: Setup, kgcs: u16) -> Vec<Invariant> {
    let mut world = World::<InsecureToy>::new(Setup { orders: true, ..setup }).unwrap();
    let mut invariants = Invariants::new(&world, false);
    for kgc in 1..=kgcs {
        world.schedule(Duration::from_secs(1), Action::Seize(kgc));
    }
    world.run_until(Duration::from_secs(2), &mut invariants);
    assert!(invariants.checks() >= 2 * u64::from(kgcs));
    invariants.violations().iter().map(|violation| violation.invariant).collect()
}

#[test]
fn the_adversary_has_nothing_of_few_kgcs_and_a_quorum_that_gives_more_away_is_noticed() {
    assert_eq!(seized(quorum(5, 4), 3), []);
    // With enough it has everything: no violation either, or its arithmetic would be wrong.
    assert_eq!(seized(quorum(5, 4), 5), []);
    let broken = seized(Setup { sabotage: Sabotage::LowDegree, ..quorum(5, 4) }, 3);
    assert_eq!(broken, [Invariant::FewKgcsKnowNothing]);
}

/// Violations by an order that two of the three operators that it takes have approved.
fn ordered(sabotage: Sabotage, approving: u16) -> (usize, Vec<Invariant>) {
    let setup = Setup { orders: true, sabotage, ..quorum(5, 3) };
    let mut world = World::<InsecureToy>::new(setup).unwrap();
    let mut invariants = Invariants::new(&world, false);
    world.start_everyone();
    for edge in 0..6 {
        world.schedule(Duration::from_secs(3), Action::Join(edge));
    }
    world.schedule(Duration::from_secs(10), Action::Order(7));
    for kgc in 1..=approving {
        world.schedule(Duration::from_secs(12), Action::Approve(kgc));
    }
    world.run_until(Duration::from_secs(30), &mut invariants);
    (invariants.opened(), invariants.violations().iter().map(|violation| violation.invariant).collect())
}

#[test]
fn an_order_opens_when_enough_operators_approve_and_kgcs_that_do_not_wait_are_noticed() {
    assert_eq!(ordered(Sabotage::None, 2), (0, vec![]));
    assert_eq!(ordered(Sabotage::None, 3), (6, vec![]));
    let (opened, broken) = ordered(Sabotage::EarlyRelease, 0);
    assert_eq!((opened, broken), (6, vec![Invariant::OpensWhenReleased; 6]));
}

#[test]
fn lives_under_a_quorum_break_no_invariant() {
    let checker = SeedChecker::new(CheckSetup { edges: 8, kgcs: 5, ..CheckSetup::default() }).unwrap();
    for seed in (1..=24).filter(|seed| SeedChecker::suite(*seed) == WorldSuite::Toy) {
        let violation = checker.check(seed).unwrap().violation;
        assert_eq!(violation, None, "seed {seed}");
    }
}
