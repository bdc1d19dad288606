//! One KGC is a quorum of one.

use quiver_key_release::{ReleaseConfig, Verdict};
use quiver_machine::RefusalReason;

use crate::world::verdict;
use crate::world::{PATIENCE, RATE, World, condition, not_before};

#[test]
fn single_kgc_releases_like_a_quorum() {
    let (mut world, drone) = World::with_drone(1, 1, 1);
    let own = condition(&format!("drone/{}", "01".repeat(16)));
    for wanted in [own, not_before(100)] {
        let key = world.collect(drone, &wanted).unwrap();
        assert!(world.opens(&key, &wanted));
    }
    assert_eq!(world.released(), 2);
}

#[test]
fn wrong_share_of_the_only_kgc_is_named_and_gives_no_key() {
    let (mut world, drone) = World::with_drone(2, 1, 1);
    crate::hostile::lie(&mut world, &[1]);
    let shortfall = world.collect(drone, &not_before(1)).unwrap_err();
    assert!(matches!(verdict(&shortfall, 1), Some(Verdict::Wrong(_))));
    assert_eq!(world.culprits(drone), [1]);
}

#[test]
fn kgc_without_a_master_key_says_so() {
    let mut world = World::new(3, 1, 1);
    let config = ReleaseConfig { holding: None, policies: vec![], approvals: vec![], rate: RATE };
    world.start_server(1, config);
    let drone = world.add_drone();
    let before = world.time();
    let shortfall = world.collect(drone, &not_before(1)).unwrap_err();
    assert_eq!(shortfall.verdicts, [(None, Verdict::Refused(RefusalReason::UnknownAuthority))]);
    assert!(world.time() - before < PATIENCE, "it is not worth waiting");
}
