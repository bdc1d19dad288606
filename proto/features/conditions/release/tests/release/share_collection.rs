//! Collecting from t of n honest KGCs, and with some of them absent.

use std::time::Duration;

use quiver_key_release::{CollectEvent, CollectTiming, Verdict};

use crate::world::verdict;
use crate::world::{Node, START, World, condition, not_before};

#[test]
fn any_three_of_five_make_the_key_and_two_do_not() {
    let mut world = World::new(1, 3, 5);
    let phase = condition("mission/alpha/phase-2");
    let drone = world.add_drone();
    world.approve(&[2, 5], &phase, true);
    let shortfall = world.collect(drone, &phase).unwrap_err();
    assert_eq!(shortfall.needed, Some(3));
    for kgc in [2, 5] {
        assert_ne!(verdict(&shortfall, kgc), Some(Verdict::NotApproved));
    }
    assert!(shortfall.verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::NotApproved).count() == 3);
    world.approve(&[4], &phase, true);
    let key = world.collect(drone, &phase).unwrap();
    assert!(world.opens(&key, &phase));
    assert!(!world.opens(&key, &condition("mission/alpha/phase-3")));
    assert_eq!(world.drone(drone).key(&phase), Some(&key));
}

#[test]
fn every_quorum_makes_the_same_key() {
    let mut world = World::new(2, 2, 4);
    let mut keys = Vec::new();
    for (number, quorum) in [[1, 2], [1, 3], [2, 4], [3, 4]].into_iter().enumerate() {
        world.set_mute((1..=4).filter(|kgc| !quorum.contains(kgc)).collect());
        let drone = world.add_drone();
        keys.push(world.collect(drone, &not_before(50)).unwrap());
        assert_eq!(world.drone_events(drone).len(), 2, "statement and key, drone {number}");
    }
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn in_waves_no_more_are_asked_than_are_needed() {
    let (mut world, drone) = World::with_drone(3, 3, 7);
    // The first of all is asked alone, because it is not known how many are needed.
    world.collect(drone, &not_before(1)).unwrap();
    assert_eq!(world.released(), 3);
    world.collect(drone, &not_before(2)).unwrap();
    assert_eq!(world.released(), 6);
}

#[test]
fn all_at_once_asks_everybody() {
    let mut world = World::new(4, 3, 7);
    world.timing = CollectTiming { ahead: u16::MAX, ..CollectTiming::default() };
    let drone = world.add_drone();
    let before = world.time();
    // Four of the seven are silent, and none is waited for.
    world.set_mute([1, 3, 5, 7].into());
    let key = world.collect(drone, &not_before(1)).unwrap();
    assert!(world.opens(&key, &not_before(1)));
    assert_eq!(world.time(), before);
}

#[test]
fn silent_kgcs_are_made_up_for() {
    let mut world = World::new(5, 3, 5);
    world.set_mute([1, 2].into());
    let drone = world.add_drone();
    let key = world.collect(drone, &not_before(1)).unwrap();
    assert!(world.opens(&key, &not_before(1)));
    assert!(world.culprits(drone).is_empty());
}

#[test]
fn with_fewer_than_t_it_says_who_did_not_answer() {
    let mut world = World::new(6, 3, 5);
    world.set_mute([1, 2, 4].into());
    let drone = world.add_drone();
    let shortfall = world.collect(drone, &not_before(1)).unwrap_err();
    assert_eq!((shortfall.needed, &shortfall.silent[..]), (Some(3), &[1, 2, 4][..]));
    assert_eq!(
        (verdict(&shortfall, 3), verdict(&shortfall, 5)),
        (Some(Verdict::Released), Some(Verdict::Released))
    );
    let words = shortfall.to_string();
    assert_eq!(words, "got 2 of 3 required key shares; not heard until then: KGC 1, 2, 4");
    // Once one of them is back, the same drone gets the key.
    world.set_mute([1, 2].into());
    world.collect(drone, &not_before(1)).unwrap();
}

#[test]
fn nobody_there_is_said_after_the_patience_alone() {
    let (mut world, drone) = World::with_drone(7, 2, 3);
    for kgc in 1..=3 {
        world.stop(Node::Kgc(kgc));
    }
    let before = world.time();
    let shortfall = world.collect(drone, &not_before(1)).unwrap_err();
    assert_eq!(world.time() - before, crate::world::PATIENCE);
    assert_eq!((shortfall.needed, shortfall.verdicts.len()), (None, 0));
    // Connections that come while one waits are used.
    world.begin(drone, Some(&not_before(1)), crate::world::PATIENCE, false);
    world.run_for(Duration::from_secs(10));
    for kgc in 1..=3 {
        world.start_kgc(kgc);
    }
    world.finish(drone);
    world.outcome(drone, &not_before(1)).unwrap();
}

#[test]
fn kgc_that_crashes_while_it_is_asked_is_made_up_for() {
    let (mut world, drone) = World::with_drone(8, 3, 5);
    for victim in [1, 2] {
        world.begin(drone, Some(&not_before(u64::from(victim))), crate::world::PATIENCE, false);
        world.stop(Node::Kgc(victim));
        world.finish(drone);
        world.outcome(drone, &not_before(u64::from(victim))).unwrap();
    }
    world.stop(Node::Kgc(3));
    let shortfall = world.collect(drone, &not_before(3)).unwrap_err();
    assert_eq!(shortfall.silent, [1, 2, 3]);
    world.start_kgc(1);
    world.collect(drone, &not_before(3)).unwrap();
}

#[test]
fn too_early_is_refused_with_the_time_and_waiting_brings_it_when_it_comes() {
    let mut world = World::new(9, 3, 5);
    let dawn = not_before(1_000);
    let drone = world.add_drone();
    let shortfall = world.collect(drone, &dawn).unwrap_err();
    assert_eq!(shortfall.not_before(), Some(START + 1_000));
    let words = shortfall.to_string();
    assert!(words.contains("opens at 2027-01-01T00:16:40Z, in 15 min by its clock"), "{words}");
    world.begin(drone, Some(&dawn), Duration::from_secs(2_000), true);
    world.finish(drone);
    let key = world.outcome(drone, &dawn).unwrap();
    assert!(world.opens(&key, &dawn));
    let late = world.time() - Duration::from_secs(1_000);
    assert!(late < Duration::from_secs(5), "{late:?} after it came");
    // Each time 30 s at least pass: about as many questions as times three KGCs.
    let asked = world.recorded.iter().filter(|packet| matches!(packet.to, Node::Kgc(_))).count();
    assert!(asked < 400, "{asked}");
}

#[test]
fn clocks_that_are_ahead_release_nothing_as_long_as_they_are_fewer_than_t() {
    let (mut world, drone) = World::with_drone(10, 3, 5);
    for kgc in [2, 4] {
        *world.faults(Node::Kgc(kgc)).skew = 10_000;
    }
    let shortfall = world.collect(drone, &not_before(1_000)).unwrap_err();
    assert_eq!(
        shortfall.verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::NotYet { .. })).count(),
        3
    );
}

#[test]
fn approval_given_while_one_waits_is_noticed() {
    let mut world = World::new(11, 2, 3);
    let phase = condition("mission/alpha/phase-2");
    let (drone, other) = (world.add_drone(), world.add_drone());
    for drone in [drone, other] {
        world.begin(drone, Some(&phase), Duration::from_secs(600), true);
    }
    world.run_for(Duration::from_secs(120));
    assert!(!world.drone(drone).is_idle());
    world.approve(&[1, 2, 3], &phase, true);
    let before = world.time();
    for drone in [drone, other] {
        world.finish(drone);
        world.outcome(drone, &phase).unwrap();
    }
    assert!(world.time() - before < Duration::from_secs(5));
}

#[test]
fn many_keys_are_collected_at_a_time() {
    let (mut world, drone) = World::with_drone(12, 2, 3);
    let wanted: Vec<_> = (1..=12).map(not_before).collect();
    for condition in &wanted {
        world.begin(drone, Some(condition), crate::world::PATIENCE, false);
    }
    // More than the allowance of one drone: the rest comes as it is renewed.
    world.finish(drone);
    for condition in &wanted {
        let key = world.outcome(drone, condition).unwrap();
        assert!(world.opens(&key, condition));
    }
}

#[test]
fn key_that_is_kept_is_not_asked_for_again_and_memory_is_bounded() {
    let (mut world, drone) = World::with_drone(13, 1, 1);
    let first = not_before(1);
    world.collect(drone, &first).unwrap();
    let asked = world.recorded.len();
    world.collect(drone, &first).unwrap();
    assert_eq!(world.recorded.len(), asked);
    for number in 0..=quiver_key_release::collector::MAX_COLLECTIONS as u64 {
        world.begin(drone, Some(&not_before(1_000_000 + number)), crate::world::PATIENCE, true);
    }
    assert!(matches!(world.drone_events(drone).last(), Some(CollectEvent::TooMany(Some(_)))));
}

#[test]
fn statement_alone_can_be_asked_for() {
    let mut world = World::without_policies(14, 2, 3);
    let drone = world.add_drone();
    world.begin(drone, None, crate::world::PATIENCE, false);
    world.finish(drone);
    let bytes = world.authority.statement().bytes();
    assert_eq!(
        world.drone_events(drone),
        [CollectEvent::Statement { statement: bytes }, CollectEvent::UpToDate]
    );
    assert_eq!(world.drone(drone).authority(), Some(&world.authority));
}
