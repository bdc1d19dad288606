//! Tests of releases while the shares are refreshed, and after that.

use quiver_ibe::Dealing;
use quiver_key_release::{CollectEvent, Holding, ReleaseAuthority, ReleaseParameters, Verdict};

use crate::world::verdict;
use crate::world::{World, name, not_before};

#[test]
fn drone_that_knows_old_shares_learns_of_the_new_ones_and_the_keys_stay() {
    let mut world = World::new(1, 3, 5);
    let (drone, other) = (world.add_drone(), world.add_drone());
    let before = world.collect(drone, &not_before(1)).unwrap();
    world.refresh();
    (1..=5).for_each(|kgc| world.hold(kgc));
    assert_eq!(world.collect(other, &not_before(1)).unwrap(), before);
    // Its links hold challenges that still name the old version.
    let later = world.collect(drone, &not_before(2)).unwrap();
    assert!(world.opens(&later, &not_before(2)));
    assert_eq!(world.drone(drone).authority().unwrap().version(), 2);
    assert!(world.culprits(drone).is_empty());
    let news = |event: &&CollectEvent| matches!(event, CollectEvent::Statement { .. });
    assert_eq!(world.drone_events(drone).iter().filter(news).count(), 2);
}

#[test]
fn shares_of_two_versions_are_never_mixed() {
    let (mut world, drone) = World::with_drone(2, 3, 5);
    world.collect(drone, &not_before(1)).unwrap();
    world.refresh();
    // Two are through with the refresh, then a third.
    (1..=2).for_each(|kgc| world.hold(kgc));
    world.set_mute([5].into());
    let shortfall = world.collect(drone, &not_before(2)).unwrap_err();
    assert!(matches!(verdict(&shortfall, 3), Some(Verdict::OtherVersion(1))), "{shortfall}");
    assert!(world.culprits(drone).is_empty(), "nobody lied");
    world.hold(3);
    let key = world.collect(drone, &not_before(2)).unwrap();
    assert!(world.opens(&key, &not_before(2)));
}

#[test]
fn statement_of_another_master_key_replaces_nothing() {
    let (mut world, drone) = World::with_drone(3, 2, 3);
    world.collect(drone, &not_before(1)).unwrap();
    let known = world.authority.clone();
    // A later set-up of a deployment that lost its master key.
    let dealing = Dealing::deal(2, 3, &mut world.rng).unwrap();
    world.replace_master(&dealing);
    let shortfall = world.collect(drone, &not_before(2)).unwrap_err();
    assert!(shortfall.to_string().contains("no such authority here"), "{shortfall}");
    assert_eq!(world.drone(drone).authority(), Some(&known));
    let newcomer = world.add_drone();
    world.collect(newcomer, &not_before(2)).unwrap();
}

#[test]
fn share_and_statement_must_belong_together() {
    let mut world = World::new(4, 2, 3);
    let (old, share) = (world.authority.clone(), world.share(1));
    Holding::new(old.clone(), share.clone()).unwrap();
    world.refresh();
    assert_eq!(Holding::new(world.authority.clone(), share).unwrap_err().kgc, 1);
    assert!(Holding::new(old, world.share(1)).is_err());
}

#[test]
fn statements_of_other_kinds_and_deployments_are_refused() {
    let mut world = World::new(5, 2, 3);
    let other = World::new(6, 2, 3);
    let bytes = world.authority.statement().bytes();
    assert!(ReleaseAuthority::decode(&other.deployment, &bytes).is_err());
    let good = ReleaseParameters { version: 1, publics: world.authority.publics().clone() };
    let statement = good.statement(&world.deployment, name("ibe")).unwrap();
    let mut kind = statement.clone();
    kind.kind = name("abe");
    let mut scheme = statement.clone();
    scheme.scheme = name("toy");
    let mut version = statement.clone();
    version.parameters[..4].copy_from_slice(&[0; 4]);
    let mut shares = statement.clone();
    *shares.parameters.last_mut().unwrap() ^= 1;
    for wrong in [kind, scheme, version, shares] {
        let signed = world.sign(wrong);
        assert!(ReleaseAuthority::decode(&world.deployment, &signed).is_err());
    }
    let signed = world.sign(statement);
    assert!(ReleaseAuthority::decode(&world.deployment, &signed).is_ok());
}
