//! Rosters: lowest free slots, and a hash that is a function of the content.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use quiver_ainq::{Batch, DronePublicKey, Error, Join, Ristretto255, Roster, SecretScalar, Suite};

use crate::swarm::{Swarm, times};

fn publics<S: Suite>(seed: u64, count: usize) -> Vec<DronePublicKey<S>> {
    let swarm = Swarm::<S>::new(seed, count);
    swarm.edges.iter().map(|edge| edge.keypair.public().clone()).collect()
}

#[test]
fn a_rosters_hash_depends_on_its_content_alone() {
    let drones = publics::<Ristretto255>(1, 12);
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    let steps = proptest::collection::vec((0..12usize, 0..40u32, any::<bool>()), 0..40);
    TestRunner::new(config)
        .run(&steps, |steps| {
            let mut roster = Roster::new();
            for (drone, slot, insert) in steps {
                if insert {
                    let _ = roster.insert(slot, drones[drone].clone());
                } else {
                    roster.remove(slot);
                }
            }
            let mut rebuilt = Roster::new();
            for (slot, public) in roster.iter().collect::<Vec<_>>().into_iter().rev() {
                rebuilt.insert(slot, public.clone()).unwrap();
            }
            prop_assert_eq!(rebuilt.hash(), roster.hash());
            Ok(())
        })
        .unwrap();
}

#[test]
fn every_difference_changes_the_hash() {
    let drones = publics::<Ristretto255>(2, 3);
    let roster = |members: &[(u32, usize)]| {
        let mut roster = Roster::new();
        members.iter().for_each(|(slot, drone)| roster.insert(*slot, drones[*drone].clone()).unwrap());
        roster
    };
    let mut evicted = roster(&[(0, 0)]);
    evicted.evict(drones[2].identity.serial);
    let all = [
        roster(&[]),
        roster(&[(0, 0)]),
        roster(&[(1, 0)]),
        roster(&[(0, 1)]),
        roster(&[(0, 0), (1, 1)]),
        roster(&[(0, 1), (1, 0)]),
        roster(&[(0, 0), (2, 1)]),
        evicted,
    ];
    let hashes: std::collections::BTreeSet<_> = all.iter().map(Roster::hash).collect();
    assert_eq!(hashes.len(), all.len());
}

#[test]
fn a_slot_is_held_by_one_drone_and_a_drone_holds_one_slot() {
    let drones = publics::<Ristretto255>(3, 2);
    let mut roster = Roster::new();
    roster.insert(0, drones[0].clone()).unwrap();
    let hash = roster.hash();
    assert_eq!(roster.insert(0, drones[1].clone()), Err(Error::WrongSlot));
    assert_eq!(roster.insert(1, drones[0].clone()), Err(Error::WrongSlot));
    assert_eq!(roster.insert(quiver_ainq::MAX_SLOTS, drones[1].clone()), Err(Error::WrongSlot));
    assert_eq!(roster.hash(), hash);
    assert_eq!(roster.evict(drones[0].identity.serial), Some(0));
    assert_eq!(roster.insert(0, drones[0].clone()), Err(Error::Revoked));
    assert!(roster.is_empty() && roster.is_evicted(&drones[0].identity.serial));
}

#[test]
fn a_drone_with_two_keys_holds_one_slot_and_is_evicted_under_both() {
    let mut drones = publics::<Ristretto255>(7, 2);
    // Another key under the serial of the first.
    drones[1].identity = drones[0].identity.clone();
    let serial = drones[0].identity.serial;
    assert_ne!(drones[0].handle(), drones[1].handle());
    let mut roster = Roster::new();
    roster.insert(0, drones[0].clone()).unwrap();
    assert_eq!(roster.insert(1, drones[1].clone()), Err(Error::WrongSlot));
    assert_eq!((roster.find(&serial), roster.evict(serial)), (Some(0), Some(0)));
    for drone in drones {
        assert_eq!(roster.insert(2, drone), Err(Error::Revoked));
    }
}

#[test]
fn joins_take_the_lowest_free_slots_and_those_freed_with_them() {
    let mut swarm = Swarm::<Ristretto255>::formed(4, 6);
    swarm.rekey(&[], vec![1, 4]);
    swarm.add_edge();
    swarm.add_edge();
    swarm.add_edge();
    // Slots 1 and 4 are free, 0 is freed in the same batch.
    let output = swarm.rekey(&[6, 7, 8], vec![0]);
    assert_eq!(output.assigned, [0, 1, 4]);
    assert_eq!(output.dropped, [0]);
    assert!([2, 3, 5, 6, 7, 8].into_iter().all(|index| swarm.agrees(index)));
    assert!(!swarm.agrees(0));
}

#[test]
fn a_batch_that_cannot_be_carried_out_changes_nothing() {
    let mut swarm = Swarm::<Ristretto255>::formed(5, 2);
    let serial = swarm.edges[1].keypair.public().identity.serial;
    let batch = Batch { evictions: vec![serial], ..Batch::default() };
    swarm.leadership.rekey(&swarm.leader, batch, &times(), &mut swarm.rng).unwrap();
    swarm.add_edge();
    let join = |swarm: &mut Swarm<_>, index: usize| {
        let e = SecretScalar::generate(&mut swarm.rng);
        Join::new(&swarm.deployment, swarm.edges[index].keypair.public().clone(), e.public()).unwrap()
    };
    let (evicted, twice) = (join(&mut swarm, 1), join(&mut swarm, 2));
    let batches = [
        (Batch { joins: vec![evicted], ..Batch::default() }, Error::Revoked),
        (Batch { removals: vec![1], ..Batch::default() }, Error::WrongSlot),
        (
            Batch { joins: vec![twice.clone(), twice], ..Batch::default() },
            Error::Malformed("a drone joins twice in one batch"),
        ),
    ];
    let before = (swarm.leadership.epoch(), *swarm.leadership.digest(), swarm.leadership.roster().hash());
    for (batch, error) in batches {
        let refused = swarm.leadership.rekey(&swarm.leader, batch, &times(), &mut swarm.rng);
        assert_eq!(refused.unwrap_err(), error);
        let after = (swarm.leadership.epoch(), *swarm.leadership.digest(), swarm.leadership.roster().hash());
        assert_eq!(after, before);
    }
    let other = swarm.enrol(crate::swarm::leader_role("alpha", 1));
    let refused = swarm.leadership.rekey(&other, Batch::default(), &times(), &mut swarm.rng);
    assert_eq!(refused.unwrap_err(), Error::NotALeader);
}

#[test]
fn a_point_that_cancels_the_implicit_key_is_refused() {
    let mut swarm = Swarm::<Ristretto255>::formed(6, 2);
    let y = swarm.edges[0].keypair.implicit();
    // −Y, which its owner can compute and sign.
    let zero = *y.point() - *y.point();
    let negated = quiver_ainq::Element::from_point(zero - *y.point()).unwrap();
    let public = swarm.edges[0].keypair.public().clone();
    assert_eq!(Join::new(&swarm.deployment, public, negated).unwrap_err(), Error::IdentityPoint);
    // As a spare point it costs its owner the term, and no other member anything.
    let spares = [(0, (1, negated)), (1, (1, *swarm.edges[1].spare.point()))];
    let (leadership, output) = quiver_ainq::Leadership::open_term(
        swarm.context(),
        &swarm.leader,
        swarm.leadership.roster().clone(),
        &spares.into_iter().collect(),
        2 << 16 | 1,
        *swarm.leadership.digest(),
        &times(),
        quiver_ainq::StrategyKind::Flat,
        &mut swarm.rng,
    )
    .unwrap();
    assert_eq!(output.header.core.absent.iter().collect::<Vec<_>>(), [0]);
    swarm.leadership = leadership;
    swarm.broadcasts.push(crate::swarm::Broadcast::of(&output));
    swarm.deliver(1).unwrap();
    assert!(swarm.agrees(1));
}
