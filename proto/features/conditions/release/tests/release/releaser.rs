//! The releaser of one KGC: releases, rates and records.

use std::time::Duration;

use quiver_crypto::Zeroizing;
use quiver_key_release::{CollectEvent, ReleaseEvent, ShareQuery, ShareResponse, Verdict};

use crate::world::verdict;
use crate::world::{Node, PATIENCE, RATE, START, World, condition, name, not_before};

#[test]
fn nothing_is_released_without_a_policy() {
    let mut world = World::without_policies(1, 1, 1);
    let drone = world.add_drone();
    let phase = condition("mission/alpha/phase-2");
    world.approve(&[1], &phase, true);
    let own = condition(&format!("drone/{}", "01".repeat(16)));
    for wanted in [phase, own, not_before(1)] {
        let shortfall = world.collect(drone, &wanted).unwrap_err();
        assert_eq!(verdict(&shortfall, 1), Some(Verdict::NoPolicy));
    }
    assert_eq!(world.released(), 0);
}

#[test]
fn policy_lets_only_its_audience_have_keys() {
    let mut world = World::without_policies(2, 1, 1);
    world.allow("mission/alpha", Some(&["alpha"]));
    let phase = condition("mission/alpha/phase-2");
    world.approve(&[1], &phase, true);
    let member = world.add_drone();
    let stranger = world.keypair(9, &["bravo"], START + 1_000_000);
    let stranger = world.add_drone_with(stranger);
    world.collect(member, &phase).unwrap();
    let shortfall = world.collect(stranger, &phase).unwrap_err();
    assert_eq!(verdict(&shortfall, 1), Some(Verdict::NoPolicy));
    // Withdrawn, it goes to no drone that does not have it already.
    world.allow("mission/alpha", None);
    let other = world.add_drone();
    assert!(world.collect(other, &phase).is_err());
    assert!(world.collect(member, &phase).is_ok());
}

#[test]
fn withdrawn_approval_releases_no_more() {
    let mut world = World::new(3, 1, 1);
    let (early, late) = (world.add_drone(), world.add_drone());
    let phase = condition("mission/alpha/phase-2");
    world.approve(&[1], &phase, true);
    world.collect(early, &phase).unwrap();
    world.approve(&[1], &phase, false);
    assert_eq!(verdict(&world.collect(late, &phase).unwrap_err(), 1), Some(Verdict::NotApproved));
}

#[test]
fn policies_and_approvals_outlive_a_restart() {
    let mut world = World::new(4, 1, 1);
    let phase = condition("mission/alpha/phase-2");
    world.approve(&[1], &phase, true);
    world.stop(Node::Kgc(1));
    world.start_kgc(1);
    let drone = world.add_drone();
    world.collect(drone, &phase).unwrap();
}

#[test]
fn time_counts_from_the_second_that_is_named() {
    let (mut world, drone) = World::with_drone(5, 1, 1);
    let at = world.time().as_secs() + 10;
    world.run_for(Duration::from_millis(9_999));
    let shortfall = world.collect(drone, &not_before(at)).unwrap_err();
    assert_eq!(verdict(&shortfall, 1), Some(Verdict::NotYet { at: START + at, now: START + at - 1 }));
    world.run_for(Duration::from_millis(1));
    world.collect(drone, &not_before(at)).unwrap();
}

#[test]
fn who_asks_too_often_waits() {
    let (mut world, drone) = World::with_drone(6, 1, 1);
    let before = world.time();
    for number in 1..=u64::from(RATE.burst) {
        world.collect(drone, &not_before(number)).unwrap();
    }
    assert_eq!(world.time(), before);
    world.collect(drone, &not_before(20)).unwrap();
    assert!(world.time() - before >= RATE.refill);
    let other = world.add_drone();
    let before = world.time();
    world.collect(other, &not_before(20)).unwrap();
    assert_eq!(world.time(), before, "nobody waits for another");
}

#[test]
fn share_is_noted_before_it_leaves_and_refusals_are_not() {
    let (mut world, drone) = World::with_drone(7, 1, 1);
    world.collect(drone, &not_before(1)).unwrap();
    assert!(world.collect(drone, &not_before(1_000)).is_err());
    let [record] = world.kgc_records(1) else { panic!("{:?}", world.kgc_records(1)) };
    assert_eq!((record.condition.clone(), record.serial), (not_before(1), [1; 16]));
    assert_eq!((record.name.clone(), record.master), (name("drone-1"), world.authority.fingerprint()));
    assert_eq!(record.handle, *world.publics[drone].handle().as_bytes());
    assert!(matches!(
        world.kgc_events(1)[..],
        [ReleaseEvent::Released { .. }, ReleaseEvent::Denied { why: "its time has not come", .. }]
    ));
}

#[test]
fn same_swarm_of_questions_makes_each_share_once() {
    let mut world = World::new(8, 1, 1);
    let drones: Vec<_> = (0..20).map(|_| world.add_drone()).collect();
    for drone in &drones {
        world.begin(*drone, Some(&not_before(1)), PATIENCE, false);
    }
    for drone in &drones {
        world.finish(*drone);
        let collected = |event: &CollectEvent| matches!(event, CollectEvent::Collected { .. });
        assert!(world.drone_events(*drone).iter().any(collected));
    }
    assert_eq!(world.released(), 20);
}

#[test]
fn question_and_answer_have_one_encoding_each() {
    let questions = [
        ShareQuery { kgc: 1, statement: false, condition: None },
        ShareQuery { kgc: 300, statement: true, condition: Some(condition("mission/alpha")) },
        ShareQuery { kgc: 2, statement: false, condition: Some(not_before(1)) },
    ];
    for question in questions {
        let bytes = question.encode();
        assert_eq!(ShareQuery::decode(&bytes), Ok(question));
        for length in 0..bytes.len() {
            assert!(ShareQuery::decode(&bytes[..length]).is_err());
        }
    }
    let mut unknown =
        ShareQuery { kgc: 1, statement: false, condition: Some(condition("mission/a")) }.encode();
    let place = unknown.len() - 2;
    unknown[place] = b'_';
    assert!(ShareQuery::decode(&unknown).is_err(), "an unknown kind is refused");
    let answers = [
        ShareResponse::Statement,
        ShareResponse::Share { version: 7, share: Zeroizing::new([0xab; 98]) },
        ShareResponse::NotYet { at: 9, now: 8 },
        ShareResponse::NotApproved,
        ShareResponse::NotItsDrone,
        ShareResponse::NoPolicy,
    ];
    for answer in answers {
        let bytes = answer.encode();
        assert_eq!(ShareResponse::decode(&bytes), Ok(answer.clone()));
        assert!(!format!("{answer:?}").contains("171"), "the share is not printed");
        for length in 0..bytes.len() {
            assert!(ShareResponse::decode(&bytes[..length]).is_err());
        }
        for place in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[place] ^= 1;
            if let Ok(other) = ShareResponse::decode(&changed) {
                assert_eq!(*other.encode(), changed);
            }
        }
    }
}
