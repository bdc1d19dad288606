//! Datagrams while the key changes.

use std::time::Duration;

use quiver_ainq::Epoch;
use quiver_datagram::Config;

use crate::swarm::{Faults, Swarm};

const STEP: Duration = Duration::from_millis(20);

#[test]
fn a_datagram_under_the_former_key_opens_in_the_overlap_and_not_after_it() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.telemetry(1, b"one");
    swarm.settle();
    swarm.telemetry(1, b"two");
    swarm.telemetry(1, b"three");
    let sent = swarm.take(1);
    swarm.rekey([0], false);
    swarm.deliver(0, &sent[0]);
    assert_eq!(swarm.nodes[0].payloads(), [&b"one"[..], b"two", b"three"]);
    // Not twice either.
    swarm.deliver(0, &sent[0]);
    assert_eq!(swarm.nodes[0].datagrams.counters().replayed, 1);
    swarm.telemetry(1, b"four");
    let late = swarm.take(1);
    swarm.run_for(Duration::from_secs(2), STEP);
    swarm.deliver(0, &late[0]);
    assert_eq!(swarm.nodes[0].inbox.len(), 3);
    assert_eq!(swarm.nodes[0].datagrams.counters().old_epoch, 1);
}

#[test]
fn after_a_removal_the_former_key_opens_nothing() {
    let mut swarm = Swarm::new(3, Config::default());
    for node in [1, 2] {
        swarm.telemetry(node, b"one");
    }
    swarm.settle();
    // Node 2 is removed and goes on with the key that it has.
    swarm.rekey([0, 1], true);
    swarm.telemetry(2, b"as 2");
    for datagram in swarm.take(2) {
        swarm.deliver(0, &datagram);
        swarm.deliver(1, &datagram);
    }
    for node in [0, 1] {
        assert!(!swarm.nodes[node].payloads().contains(&&b"as 2"[..]));
        assert_eq!(swarm.nodes[node].datagrams.counters().old_epoch, 1);
    }
    // And reads nothing.
    swarm.nodes[2].inbox.clear();
    swarm.telemetry(1, b"two");
    swarm.command(1, b"three", true);
    swarm.settle();
    assert!(swarm.nodes[2].inbox.is_empty());
    assert_eq!(swarm.nodes[0].payloads()[2..], [&b"two"[..], b"three"]);
}

#[test]
fn a_skipped_epoch_ends_the_overlap_because_it_may_have_removed_somebody() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.telemetry(1, b"one");
    swarm.settle();
    swarm.telemetry(1, b"two");
    let sent = swarm.take(1);
    swarm.next_epoch();
    swarm.rekey([0], false);
    swarm.deliver(0, &sent[0]);
    assert_eq!(swarm.nodes[0].payloads(), [b"one"]);
}

#[test]
fn what_comes_under_a_newer_key_waits_for_it() {
    let mut swarm = Swarm::new(3, Config::default());
    swarm.telemetry(1, b"zero");
    swarm.settle();
    swarm.rekey([0, 1], true);
    swarm.telemetry(1, b"one");
    swarm.command(1, b"two", true);
    swarm.settle();
    assert_eq!(swarm.nodes[2].payloads(), [b"zero"]);
    assert_eq!(swarm.nodes[2].epoch_wanted, 0);
    swarm.run_for(Duration::from_millis(100), STEP);
    swarm.open(2, None);
    let mut received = swarm.nodes[2].payloads();
    received.sort_unstable();
    assert_eq!(received, [&b"one"[..], b"two", b"zero"]);
    assert_eq!(swarm.nodes[2].datagrams.counters().unknown, 0);
}

#[test]
fn a_member_that_misses_an_epoch_asks_for_it_and_drops_what_it_held() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.telemetry(1, b"zero");
    swarm.settle();
    swarm.rekey([1], true);
    for _ in 0..200 {
        swarm.telemetry(1, b"one");
        swarm.run_for(STEP, STEP);
    }
    // Four seconds: at once half the time that datagrams are held, then every two seconds.
    assert_eq!(swarm.nodes[0].epoch_wanted, 2);
    assert!(swarm.nodes[0].datagrams.counters().unknown >= 170);
    assert_eq!(swarm.nodes[0].payloads(), [b"zero"]);
}

#[test]
fn member_that_receives_only_what_is_of_another_epoch_knows_it_until_it_has_that_or_is_alone() {
    let mut swarm = Swarm::new(3, Config::default());
    let lacks = |swarm: &Swarm| swarm.nodes[0].datagrams.lacks_epoch(swarm.now);
    for _ in 0..100 {
        swarm.telemetry(1, b"zero");
        swarm.run_for(STEP, STEP);
        assert!(!lacks(&swarm));
    }
    let before = swarm.next_epoch();
    swarm.open(1, None);
    // While others are where it is, it may be the sender that is behind.
    for _ in 0..300 {
        swarm.telemetry(1, b"one");
        swarm.telemetry(2, b"zero");
        swarm.run_for(STEP, STEP);
        assert!(!lacks(&swarm));
    }
    for _ in 0..300 {
        swarm.telemetry(1, b"one");
        swarm.run_for(STEP, STEP);
    }
    assert!(lacks(&swarm));
    let alone = swarm.now;
    swarm.open(0, Some(before));
    assert!(!lacks(&swarm));
    assert!(!swarm.nodes[2].datagrams.lacks_epoch(alone + Duration::from_secs(11)), "nobody sends any more");
    assert!(swarm.nodes[2].datagrams.lacks_epoch(alone));
}

#[test]
fn commands_of_the_last_moment_are_sealed_again_and_received_once() {
    for sign in [false, true] {
        let mut swarm = Swarm::new(4, Config::default());
        swarm.command(1, b"hello", sign);
        swarm.settle();
        swarm.telemetry(1, b"lost");
        swarm.command(1, b"arm", sign);
        let sent = swarm.take(1);
        // It arrives at 0 in time, at 2 when the former key is no more, at 3 not at all.
        sent.iter().for_each(|datagram| swarm.deliver(0, datagram));
        swarm.rekey(0..4, true);
        sent.iter().for_each(|datagram| swarm.deliver(2, datagram));
        swarm.settle();
        let count = |swarm: &Swarm, node: usize, payload: &[u8]| {
            swarm.nodes[node].payloads().iter().filter(|one| **one == payload).count()
        };
        for node in [0, 2, 3] {
            assert_eq!(count(&swarm, node, b"arm"), 1, "node {node}, signed: {sign}");
            assert_eq!(count(&swarm, node, b"hello"), 1, "node {node}, signed: {sign}");
        }
        assert_eq!(count(&swarm, 2, b"lost"), 0);
        // Both commands of the last moments came again.
        assert_eq!(swarm.nodes[0].datagrams.counters().repeated, 2);
        assert_eq!(swarm.nodes[1].datagrams.counters().sealed_again, 2);
    }
}

#[test]
fn a_command_sealed_again_is_received_once_by_who_has_the_former_key_yet() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.command(1, b"hello", false);
    swarm.settle();
    swarm.run_for(Duration::from_secs(1), STEP);
    swarm.command(1, b"arm", false);
    let sent = swarm.take(1);
    swarm.rekey([0, 1], false);
    let again = swarm.take(1);
    // The later one first.
    again.iter().for_each(|datagram| swarm.deliver(0, datagram));
    sent.iter().for_each(|datagram| swarm.deliver(0, datagram));
    assert_eq!(swarm.nodes[0].payloads(), [&b"hello"[..], b"arm"]);
    assert_eq!(swarm.nodes[0].datagrams.counters().replayed, 1);
}

#[test]
fn commands_older_than_the_hold_are_not_sealed_again() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.command(1, b"arm", false);
    swarm.settle();
    swarm.run_for(Duration::from_millis(500), STEP);
    swarm.rekey([0, 1], true);
    swarm.settle();
    assert_eq!(swarm.nodes[1].datagrams.counters().sealed_again, 0);
}

#[test]
fn senders_known_before_need_no_announcement_under_the_next_key() {
    let mut swarm = Swarm::new(3, Config::default());
    for node in 0..3 {
        swarm.command(node, b"hello", true);
    }
    swarm.settle();
    swarm.run_for(Duration::from_secs(1), STEP);
    swarm.rekey(0..3, true);
    // The first datagram under the new key, and nothing else.
    for node in 1..3 {
        swarm.telemetry(node, b"telemetry");
        swarm.command(node, b"command", true);
    }
    let announcements = |swarm: &Swarm| swarm.nodes[0].datagrams.counters().announcements;
    let before = announcements(&swarm);
    swarm.settle();
    assert_eq!(announcements(&swarm), before);
    assert_eq!(swarm.nodes[0].inbox.iter().filter(|(_, bytes, _)| bytes == b"telemetry").count(), 2);
    assert_eq!(swarm.nodes[0].inbox.iter().filter(|(_, bytes, _)| bytes == b"command").count(), 2);
}

#[test]
fn a_slot_that_goes_to_another_drone_is_announced_anew() {
    let mut swarm = Swarm::new(4, Config::default());
    swarm.command(2, b"as 2", true);
    swarm.settle();
    swarm.rekey([0, 1], true);
    // Drone 3 joins and gets the slot; its boot number is lower.
    swarm.nodes[2].boot_no = 9;
    swarm.nodes[3].slot = 2;
    swarm.open(3, None);
    swarm.command(3, b"as 3", true);
    swarm.telemetry(3, b"telemetry");
    swarm.settle();
    swarm.run_for(Duration::from_millis(600), STEP);
    let source = swarm.source_of(3);
    for node in [0, 1] {
        assert!(swarm.nodes[node].inbox.contains(&(2, b"as 3".to_vec(), source.clone())), "{node}");
        assert!(swarm.nodes[node].payloads().contains(&&b"telemetry"[..]), "{node}");
        assert_eq!(swarm.nodes[node].impostors, []);
    }
}

#[test]
fn a_new_term_opens_nothing_of_the_one_before() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.telemetry(1, b"one");
    swarm.settle();
    swarm.telemetry(1, b"two");
    let sent = swarm.take(1);
    swarm.epoch = Epoch { term: Epoch::term_of(2, 0), counter: 1 };
    for node in 0..2 {
        swarm.open(node, None);
    }
    sent.iter().for_each(|datagram| swarm.deliver(0, datagram));
    swarm.telemetry(1, b"three");
    swarm.settle();
    assert_eq!(swarm.nodes[0].payloads(), [&b"one"[..], b"three"]);
}

/// Requirement of the group: eviction under way, the others lose no command, and telemetry only for a moment.
#[test]
fn members_that_get_the_key_at_different_times_lose_no_command() {
    const NODES: usize = 12;
    let mut swarm = Swarm::new(NODES, Config::default());
    for node in 0..NODES {
        swarm.command(node, b"hello", true);
    }
    swarm.settle();
    swarm.run_for(Duration::from_secs(2), STEP);
    for node in &mut swarm.nodes {
        node.inbox.clear();
    }
    swarm.faults = Faults { loss: 0, doubles: 10, reorders: 10 };
    // Node 11 is evicted. The others get the key over 200 ms, and send a command each every 20 ms.
    swarm.next_epoch();
    let mut sent = 0;
    for round in 0..30 {
        if let Some(node) = Some(round).filter(|round| *round < NODES - 1) {
            swarm.open(node, None);
        }
        for node in 0..NODES - 1 {
            swarm.command(node, &[node as u8, round as u8], node % 2 == 0);
        }
        sent += 1;
        swarm.run_for(STEP, STEP);
    }
    swarm.faults = Faults::default();
    swarm.run_for(Duration::from_secs(1), STEP);
    for node in 0..NODES - 1 {
        let mut received = swarm.nodes[node].payloads();
        received.sort_unstable();
        let all = received.len();
        received.dedup();
        assert_eq!((all, received.len()), (sent * (NODES - 2), sent * (NODES - 2)), "node {node}");
    }
    // The evicted one read what was sealed under the former key, and nothing else.
    let last = swarm.nodes[NODES - 1].payloads().iter().map(|payload| payload[1]).max();
    assert!(last < Some(NODES as u8), "{last:?}");
}

#[test]
fn a_command_is_received_once_however_often_the_key_changes_at_once() {
    let mut swarm = Swarm::new(4, Config::default());
    swarm.command(1, b"hello", false);
    swarm.settle();
    swarm.run_for(Duration::from_secs(1), STEP);
    swarm.command(1, b"arm", false);
    let sent = swarm.take(1);
    sent.iter().for_each(|datagram| swarm.deliver(0, datagram));
    let mut again = Vec::new();
    for round in 0..3 {
        swarm.rekey(0..4, false);
        if round == 0 {
            // Late, in the overlap.
            sent.iter().for_each(|datagram| swarm.deliver(2, datagram));
        }
        again.extend(swarm.take(1));
        if round == 1 {
            again.iter().for_each(|datagram| swarm.deliver(3, datagram));
        }
    }
    for node in [0, 2, 3] {
        again.iter().for_each(|datagram| swarm.deliver(node, datagram));
        assert_eq!(swarm.nodes[node].payloads(), [&b"hello"[..], b"arm"], "node {node}");
    }
}
