//! Keys are made and refreshed.

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{Bls12381G1, KgcId};
use quiver_message::quorum::CeremonyKind;
use quiver_quorum::{QuorumSuite, SigningPackage};
use quiver_quorum_node::{QuorumCommand, QuorumEvent, QuorumKeyShare, QuorumKeys};

use crate::world::{S, World};

/// Returns true if these members' shares sign under their common public key.
fn sign<K: QuorumSuite>(held: &[&QuorumKeyShare<K>], world: &mut World) -> bool {
    let public = held[0].public();
    let message = b"anything".to_vec();
    let drawn: Vec<_> = held.iter().map(|key| key.share().commit(&mut world.rng).unwrap()).collect();
    let commitments = held.iter().zip(&drawn).map(|(key, (_, commitment))| (key.share().kgc(), *commitment));
    let package = SigningPackage::new(public.version(), message, commitments).unwrap();
    let shares: Result<BTreeMap<KgcId, _>, _> = held
        .iter()
        .zip(drawn)
        .map(|(key, (nonces, _))| Ok((key.share().kgc(), key.share().sign(nonces, &package)?)))
        .collect();
    shares
        .and_then(|shares: BTreeMap<_, _>| public.aggregate_statement(&package, &shares).map(drop))
        .map_err(|error: quiver_quorum::Error| error)
        .is_ok()
}

fn copy(keys: &QuorumKeys<S>) -> QuorumKeys<S> {
    QuorumKeys::decode(&keys.encode()).unwrap()
}

pub(crate) fn holdings(world: &World) -> Vec<QuorumKeys<S>> {
    world.ids().into_iter().map(|id| copy(world.node(id).keys().unwrap())).collect()
}

/// All hold the same public shares; any t sign with either key, and t − 1 do not.
pub(crate) fn check_keys(world: &mut World) {
    let keys = holdings(world);
    let digests: BTreeSet<_> = keys.iter().map(QuorumKeys::digest).collect();
    assert_eq!(digests.len(), 1, "all who finish hold the same public shares");
    let (n, t) = (keys.len(), usize::from(world.membership.parameters().threshold()));
    for first in 0..n {
        let some: Vec<_> = (0..t).map(|step| &keys[(first + step) % n]).collect();
        let ainq: Vec<_> = some.iter().map(|keys| keys.ainq()).collect();
        let ibe: Vec<_> = some.iter().map(|keys| keys.ibe()).collect();
        assert!(sign::<S>(&ainq, world) && sign::<Bls12381G1>(&ibe, world), "any t sign");
        assert!(!sign(&ainq[1..], world) && !sign(&ibe[1..], world), "t - 1 cannot");
    }
}

#[test]
fn members_make_both_keys_and_state_who_they_are() {
    for (seed, n, t) in [(1, 2, 2), (2, 3, 2), (3, 5, 3), (4, 7, 4)] {
        let mut world = World::new(seed, n, t);
        world.generate();
        check_keys(&mut world);
        world.until("the quorum says who it is", |world| {
            world.ids().iter().all(|id| world.node(*id).quorum_statement().is_some())
        });
        let statements: BTreeSet<_> =
            world.ids().iter().map(|id| world.node(*id).quorum_statement().unwrap().to_vec()).collect();
        assert_eq!(statements.len(), 1, "it is signed once");
        let deployment = world.node(1).deployment().unwrap().clone();
        let statement = quiver_ainq::QuorumStatement::<S>::decode(statements.first().unwrap()).unwrap();
        let verified = statement.verify(&deployment).unwrap();
        assert_eq!(verified.shares(), world.node(1).keys().unwrap().ainq().public().encode());
    }
}

#[test]
fn one_operator_refreshes_and_the_public_keys_stay() {
    let mut world = World::new(5, 5, 3);
    world.generate();
    let before = holdings(&world);
    for version in 1..=2 {
        world.run_for(std::time::Duration::from_secs(100));
        world.command(4, QuorumCommand::Refresh);
        world.until("shares are refreshed", |world| world.all_hold(version));
        check_keys(&mut world);
    }
    for (old, new) in before.iter().zip(holdings(&world)) {
        assert_eq!(old.ainq().public().master(), new.ainq().public().master());
        assert_eq!(old.ibe().public().master(), new.ibe().public().master());
        assert_ne!(old.ainq().share().public(), new.ainq().share().public());
        assert_ne!(old.ibe().share().public(), new.ibe().share().public());
    }
    // Shares of two versions do not sign together.
    let new = holdings(&world);
    assert!(!sign(&[before[0].ainq(), new[1].ainq(), new[2].ainq()], &mut world));
}

#[test]
fn keys_are_made_and_refreshed_in_any_weather() {
    for seed in 0..12 {
        let mut world = World::new(100 + seed, 3 + (seed % 3) as u16, 3);
        world.set_faults(80, 80, 3000);
        world.generate();
        check_keys(&mut world);
        world.run_for(std::time::Duration::from_secs(100));
        world.command(2, QuorumCommand::Refresh);
        world.until("shares are refreshed", |world| world.all_hold(1));
        check_keys(&mut world);
    }
}

#[test]
fn nothing_begins_before_every_operator_wants_it() {
    let mut world = World::new(6, 3, 2);
    world.command(1, QuorumCommand::Generate);
    world.command(2, QuorumCommand::Generate);
    world.run_for(std::time::Duration::from_secs(300));
    assert!(world.ids().iter().all(|id| world.node(*id).keys().is_none()));
    let invited = |by| QuorumEvent::Invited { by, kind: CeremonyKind::Generation };
    assert_eq!(world.events(3), [invited(1), invited(2)]);
    assert_eq!(world.node(1).view().ceremony.unwrap().waits_for, [3]);
    world.command(3, QuorumCommand::Generate);
    world.until("keys are made", |world| world.all_hold(0));
    check_keys(&mut world);
    // Never a second time.
    world.command(3, QuorumCommand::Generate);
    assert!(matches!(world.events(3).last(), Some(QuorumEvent::Refused(_))));
}

#[test]
fn a_ceremony_that_is_abandoned_changes_nothing() {
    let mut world = World::new(7, 3, 2);
    world.generate();
    let before = holdings(&world);
    world.run_for(std::time::Duration::from_secs(100));
    world.part(&[1, 2], 3);
    world.command(1, QuorumCommand::Refresh);
    world.run_for(std::time::Duration::from_secs(100));
    world.command(1, QuorumCommand::Abandon);
    world.command(2, QuorumCommand::Abandon);
    for (old, new) in before.iter().zip(holdings(&world)) {
        assert_eq!(old.digest(), new.digest());
        assert_eq!(old.encode(), new.encode());
    }
    world.network.heal();
    world.run_for(std::time::Duration::from_secs(100));
    world.command(3, QuorumCommand::Refresh);
    world.until("shares are refreshed", |world| world.all_hold(1));
    check_keys(&mut world);
}
