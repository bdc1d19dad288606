//! Adversaries with few means: a leader with two keys under one serial is refused, strangers are not
//! answered.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_group::leader::LeaderTiming;
use quiver_kem::KemSetting;
use quiver_world::check::{CheckSetup, SeedChecker};
use quiver_world::{
    Action, DiskState, Forgery, InsecureToy, Invariant, Invariants, NodeId, NodeSet, Partition, Sabotage,
    Setup, World,
};

const MEMBERS: u32 = 6;
const STRATEGIES: [StrategyKind; 2] = [StrategyKind::Flat, StrategyKind::Tree];

fn setup(strategy: StrategyKind, leaders: u16, sabotage: Sabotage) -> Setup {
    let silence = (leaders > 1).then(|| Duration::from_secs(4));
    Setup {
        members: MEMBERS,
        strangers: 2,
        leaders,
        recording: true,
        strategy,
        leader_timing: LeaderTiming { silence, ..LeaderTiming::default() },
        sabotage,
        ..Setup::default()
    }
}

/// A formed group, with faults from the twentieth second on.
fn befallen(
    setup: Setup,
    actions: impl IntoIterator<Item = (u64, Action)>,
) -> (World<InsecureToy>, Invariants<InsecureToy>) {
    let mut world = World::<InsecureToy>::new(setup).unwrap();
    let mut invariants = Invariants::new(&world, false);
    world.start_everyone();
    for edge in 0..MEMBERS {
        world.schedule(Duration::from_secs(10), Action::Join(edge));
    }
    for (after, action) in actions {
        world.schedule(Duration::from_secs(20 + after), action);
    }
    world.run_until(Duration::from_secs(120), &mut invariants);
    (world, invariants)
}

fn broken(invariants: &Invariants<InsecureToy>) -> BTreeSet<Invariant> {
    invariants.violations().iter().map(|violation| violation.invariant).collect()
}

fn two_keys() -> [(u64, Action); 2] {
    let again = |split| Action::DoubleTerm { rounds: 1, split, crossing: Duration::from_secs(3) };
    // The second time under two other keys: nodes that have seen both before follow neither.
    [(0, again(0b10_1010)), (40, again(0b01_0101))]
}

#[test]
fn lone_leader_leads_again_as_soon_as_it_has_proof_against_the_one_it_made_way_for() {
    for strategy in STRATEGIES {
        let (world, invariants) = befallen(setup(strategy, 1, Sabotage::None), two_keys());
        assert!(invariants.convinced() > MEMBERS as usize / 2, "{}", invariants.convinced());
        // The other leader's keys are valid for minutes.
        let newest = world.leader(0).unwrap().status().epoch;
        assert!(newest.is_some(), "{strategy:?}");
        assert!((0..MEMBERS).all(|edge| world.edge(edge).unwrap().status().epoch == newest), "{strategy:?}");
        assert_eq!(invariants.violations(), [], "{strategy:?}");
    }
}

#[test]
fn proof_that_no_kgc_hears_of_is_noticed() {
    let (world, mut invariants) = befallen(setup(StrategyKind::Flat, 1, Sabotage::KeepProofs), two_keys());
    invariants.demand_convergence(&world);
    let at_kgc = |it: &&quiver_world::Violation| it.node == Some(NodeId::Kgc(1));
    assert_eq!(invariants.violations().iter().filter(at_kgc).count(), 1, "{:?}", invariants.violations());
}

/// A KGC takes no message while its disk holds a request to revoke up.
#[test]
fn proof_that_a_kgc_with_a_full_disk_misses_is_sent_again() {
    for strategy in STRATEGIES {
        let disk = |state| Action::Disk(NodeId::Kgc(1), state);
        let held_up =
            [(0, disk(DiskState::Full)), (1, Action::Revoke(MEMBERS + 1)), (10, disk(DiskState::Sound))];
        let contradiction = two_keys().into_iter().map(|(_, action)| (2, action)).take(1);
        let actions = held_up.into_iter().chain(contradiction);
        let (world, mut invariants) = befallen(setup(strategy, 1, Sabotage::None), actions);
        assert!(invariants.convinced() > MEMBERS as usize / 2, "{}", invariants.convinced());
        invariants.demand_convergence(&world);
        assert_eq!(invariants.violations(), [], "{strategy:?}");
    }
}

fn forgeries(by: u32) -> impl Iterator<Item = (u64, Action)> {
    let renewed = [(0, Action::Revoke(MEMBERS + 1)), (1, Action::Rekey)];
    let forged = (0_u64..).zip(Forgery::ALL).flat_map(move |(place, what)| {
        (0..4).map(move |time| (5 + 8 * place + time, Action::Forge { by, what, pick: 100 * place + time }))
    });
    renewed.into_iter().chain(forged)
}

#[test]
fn nobody_answers_what_a_stranger_publishes_and_nobody_loses_a_membership_by_it() {
    for strategy in STRATEGIES {
        for leaders in [1, 3] {
            // A stranger's own, and messages that a member relays for one.
            for by in [MEMBERS, 2] {
                let (world, mut invariants) =
                    befallen(setup(strategy, leaders, Sabotage::None), forgeries(by));
                invariants.demand_convergence(&world);
                assert_eq!(invariants.violations(), [], "{strategy:?}, {leaders} leaders, by {by}");
                assert!(invariants.forgeries() > 40, "{}", invariants.forgeries());
            }
        }
    }
}

#[test]
fn epoch_that_is_due_as_a_forged_message_comes_is_no_answer_to_it() {
    // A life in which a question without a sender reaches the leader over a member at the moment of a batch's end.
    let outcome = SeedChecker::new(CheckSetup::default()).unwrap().check(6343).unwrap();
    assert_eq!(outcome.violation, None);
}

#[test]
fn machines_that_are_not_told_what_came_by_the_group_are_noticed() {
    let (_, invariants) = befallen(setup(StrategyKind::Flat, 1, Sabotage::HideGroup), forgeries(2));
    assert!(broken(&invariants).contains(&Invariant::NoReflection), "{:?}", invariants.violations());
}

/// A KGC whose disk is full is switched off before the request to revoke is durable.
#[test]
fn request_to_revoke_that_no_disk_took_is_lost_with_the_kgc() {
    for strategy in STRATEGIES {
        let kgc = NodeId::Kgc(1);
        let actions = [
            (0, Action::Disk(kgc, DiskState::Full)),
            (1, Action::Revoke(0)),
            (2, Action::Stop(kgc)),
            (3, Action::Start(kgc)),
            (4, Action::Revoke(1)),
            (10, Action::Disk(kgc, DiskState::Sound)),
            (20, Action::Rekey),
        ];
        let (world, mut invariants) = befallen(setup(strategy, 1, Sabotage::None), actions);
        invariants.demand_convergence(&world);
        assert_eq!(invariants.violations(), [], "{strategy:?}");
        let newest = world.leader(0).unwrap().status().epoch;
        let follows = |edge| world.edge(edge).unwrap().status().epoch == newest;
        assert!(follows(0) && !follows(1));
    }
}

/// A partition isolates a leader and two drones, and a deputy takes over, with which these have no κ. An adversary replays the
/// deputy's opening to them before their leader sends it.
#[test]
fn opening_to_which_no_second_factor_leads_ends_a_membership_whoever_shows_it() {
    let [near, late] = [MEMBERS - 2, MEMBERS - 1];
    let island = [NodeId::Leader(0), NodeId::Edge(near), NodeId::Edge(late)];
    for (strategy, seed) in
        STRATEGIES.into_iter().flat_map(|strategy| (1..5).map(move |seed| (strategy, seed)))
    {
        let setup = Setup { seed, kem: KemSetting::MlKem768, ..setup(strategy, 2, Sabotage::None) };
        let mut world = World::<InsecureToy>::new(setup).unwrap();
        let mut invariants = Invariants::new(&world, false);
        world.start_everyone();
        for edge in 0..near {
            world.schedule(Duration::from_secs(10), Action::Join(edge));
        }
        let apart = Partition::both_ways(NodeSet::only(island), NodeSet::all_but(island));
        world.schedule(Duration::from_secs(20), Action::Part(apart));
        for edge in near..MEMBERS {
            world.schedule(Duration::from_secs(21), Action::Join(edge));
        }
        world.run_until(Duration::from_secs(40), &mut invariants);
        let (held, newest) =
            (world.edge(late).unwrap().status().epoch, world.leader(1).unwrap().status().epoch);
        assert!(held.is_some() && newest > held, "{held:?}, {newest:?}");
        for pick in 0..40 {
            let shown = Action::Forge { by: near, what: Forgery::KnownHeader, pick };
            world.schedule(world.time() + Duration::from_millis(20 * pick), shown);
        }
        world.run_for(Duration::from_secs(2), &mut invariants);
        assert_eq!(world.edge(late).unwrap().status().epoch, None);
        world.schedule(world.time(), Action::Heal);
        world.run_for(Duration::from_secs(60), &mut invariants);
        invariants.demand_convergence(&world);
        assert_eq!(invariants.violations(), [], "{strategy:?}, seed {seed}");
    }
}

/// A newcomer takes an epoch in which another's nonce is altered; κ that was captured ahead of a term opens it also after a
/// later capture; wraps come before the path that leads to them; a leader refuses forged joins in the second in which it answers as
/// many questions as it may; a pair that was captured unused opens a lower term that another deputy opens later; the leader with two
/// keys opens two terms at a time.
#[test]
fn invariants_know_what_rare_lives_have_shown_to_be_right() {
    let tree = CheckSetup { strategy: StrategyKind::Tree, ..CheckSetup::default() };
    let lives = [
        (tree, 5_007_417),
        (CheckSetup { leaders: 3, ..CheckSetup::default() }, 6_000_412),
        (CheckSetup { relays: 3, ..tree }, 7_000_612),
        (CheckSetup { leaders: 3, ..tree }, 100_009_785),
        (CheckSetup { leaders: 3, ..CheckSetup::default() }, 100_024_246),
        (CheckSetup::default(), 100_235_187),
        (tree, 100_235_187),
    ];
    for (setup, seed) in lives {
        let outcome = SeedChecker::new(setup).unwrap().check(seed).unwrap();
        assert_eq!(outcome.violation, None, "seed {seed}");
    }
}
