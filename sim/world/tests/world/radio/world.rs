//! The radio under the roles: costs of a world's messages, and the nodes that pay them.

use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_world::radio::cycles::Arithmetic;
use quiver_world::radio::{Account, Loss, Preset};
use quiver_world::{Action, AirSetup, InsecureToy, NoObserver, NodeId, Setup, World};

fn air(preset: Preset, loss: Loss) -> Option<AirSetup> {
    Some(AirSetup { profile: preset.profile(), loss, arithmetic: Arithmetic::Portable })
}

/// A world in which all edges joined within twenty seconds.
pub(crate) fn formed(setup: Setup) -> World<InsecureToy> {
    let members = setup.members;
    let mut world = World::new(setup).unwrap();
    world.start_everyone();
    for edge in 0..members {
        world.schedule(Duration::from_secs(10), Action::Join(edge));
    }
    world.run_until(Duration::from_secs(40), &mut NoObserver);
    let leader = world.leader(0).unwrap().status();
    assert_eq!(leader.members, members as usize);
    world
}

/// Costs of one more re-key, after a leave, for all nodes together.
fn rekey(world: &mut World<InsecureToy>) -> Account {
    world.schedule(world.time(), Action::Leave(0));
    world.run_for(Duration::from_secs(20), &mut NoObserver);
    *world.air().unwrap().ledger().rekeys().last().unwrap().1
}

#[test]
fn every_second_on_the_channel_is_paid_by_somebody() {
    let loss = Loss::bursts(0.1, 4.0).unwrap();
    let mut world = formed(Setup { members: 12, air: air(Preset::Ieee802154, loss), ..Setup::default() });
    rekey(&mut world);
    let air = world.air().unwrap();
    let ledger = air.ledger();
    assert_eq!(ledger.total().airtime, air.medium().carried());
    let of_rekeys: Duration = ledger.rekeys().map(|(_, account)| account.airtime).sum();
    assert!(!of_rekeys.is_zero() && of_rekeys < ledger.total().airtime, "enrolment belongs to no re-key");
    // All enrolled and joined: frames, and the multiplications of both.
    for drone in ledger.drones() {
        assert!(drone.frames >= 5 && drone.computing.picojoules() > 1_000_000_000, "{drone:?}");
    }
}

#[test]
fn tree_rekey_takes_less_air_than_a_flat_one() {
    let of = |strategy| {
        let air = air(Preset::Ieee802154, Loss::None);
        rekey(&mut formed(Setup { members: 60, strategy, air, ..Setup::default() }))
    };
    let (flat, tree) = (of(StrategyKind::Flat), of(StrategyKind::Tree));
    assert!(tree.airtime * 2 < flat.airtime, "tree {tree:?}, flat {flat:?}");
    assert!(tree.frames < flat.frames, "tree {tree:?}, flat {flat:?}");
}

#[test]
fn radio_leaves_one_seed_with_one_trace_on_any_number_of_threads() {
    let trace = |parallel, seed| {
        let loss = Loss::independent(0.05).unwrap();
        let air = air(Preset::Wifi, loss);
        let mut world = formed(Setup { seed, members: 24, traced: true, parallel, air, ..Setup::default() });
        rekey(&mut world);
        (world.trace_hash().unwrap(), world.air().unwrap().ledger().total())
    };
    assert_eq!(trace(true, 3), trace(true, 3));
    assert_ne!(trace(true, 3).0, trace(true, 4).0);
    assert_eq!(trace(false, 3), trace(false, 3));
}

#[test]
fn leaders_and_kgc_reach_each_other_without_the_radio() {
    let setup = Setup { members: 1, air: air(Preset::Ieee802154, Loss::None), ..Setup::default() };
    let mut world = World::<InsecureToy>::new(setup).unwrap();
    for node in [NodeId::Kgc(1), NodeId::Leader(0)] {
        world.schedule(Duration::ZERO, Action::Start(node));
    }
    world.run_until(Duration::from_secs(10), &mut NoObserver);
    assert!(world.leader(0).unwrap().status().name.is_some(), "the leader is enrolled");
    assert_eq!(world.air().unwrap().medium().carried(), Duration::ZERO);
}
