//! Tests of the way from sender to receiver: sizes, signatures, announcements, loss, doubles, reordering.

use std::time::Duration;

use quiver_ainq::{LEADER_SLOT, Label};
use quiver_datagram::{Config, DatagramRefusal, Event, Payload, PayloadOrigin, Priority};

use crate::swarm::{Faults, Swarm, VALIDITY};

#[test]
fn a_payload_arrives_at_everybody_once_and_costs_twelve_bytes() {
    let mut swarm = Swarm::new(3, Config::default());
    swarm.telemetry(1, b"at home");
    swarm.settle();
    for node in [0, 2] {
        assert_eq!(swarm.nodes[node].inbox, [(1, b"at home".to_vec(), PayloadOrigin::Member)], "{node}");
    }
    assert!(swarm.nodes[1].inbox.is_empty());
    // An announcement first, then the datagram.
    let lens: Vec<_> = swarm.air.iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(lens[1], 7 + 12);
    assert_eq!(swarm.nodes[0].datagrams.counters().received_payloads, 1);
}

#[test]
fn announcements_without_a_key_have_41_bytes() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.nodes[1].signs = false;
    swarm.telemetry(1, b"x");
    let sent = swarm.take(1);
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [41, 13]);
}

#[test]
fn a_sender_announces_itself_at_once_with_its_key_and_a_second_later() {
    let mut swarm = Swarm::new(2, Config::default());
    let (begun, mut at) = (swarm.now, Vec::new());
    for _ in 0..400 {
        swarm.now += Duration::from_millis(20);
        swarm.telemetry(1, &[7; 40]);
        // Datagrams asked for when the first one leaves are signed after it. Telemetry has 52 bytes.
        let lens = swarm.take(1).into_iter().map(|datagram| datagram.len());
        let elapsed = (swarm.now - begun).as_millis();
        at.extend(lens.filter(|len| *len != 52).map(|len| (len > 200, elapsed)));
    }
    assert_eq!(at, [(false, 20), (true, 280), (false, 1_020), (false, 6_020)]);
}

#[test]
fn the_leader_sends_from_its_own_slot() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.command(0, b"land", true);
    swarm.settle();
    assert_eq!(swarm.nodes[1].inbox, [(LEADER_SLOT, b"land".to_vec(), swarm.source_of(0))]);
}

#[test]
fn a_signed_payload_names_its_sender_and_costs_64_bytes_more() {
    let mut swarm = Swarm::new(3, Config::default());
    swarm.command(2, b"arm", true);
    swarm.settle();
    let expected = [(2, b"arm".to_vec(), swarm.source_of(2))];
    assert_eq!(swarm.nodes[0].inbox, expected);
    assert_eq!(swarm.nodes[1].inbox, expected);
    let (_, last) = swarm.air.last().unwrap();
    assert_eq!(last.len(), 3 + 12 + 64);
    let status = swarm.nodes[0].datagrams.senders().next().unwrap();
    assert_eq!(status.name.unwrap().to_string(), "drone-2");
}

#[test]
fn what_waits_together_travels_together() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.telemetry(1, b"first");
    swarm.settle();
    let before = swarm.air.len();
    for payload in [&b"one"[..], b"two", b"three"] {
        swarm.telemetry(1, payload);
    }
    swarm.settle();
    assert_eq!(swarm.air.len(), before + 1);
    assert_eq!(swarm.air.last().unwrap().1.len(), 12 + 3 + 11);
    assert_eq!(swarm.nodes[0].payloads(), [&b"first"[..], b"one", b"two", b"three"]);
}

#[test]
fn an_anonymous_member_cannot_sign_but_send() {
    let mut swarm = Swarm::closed(2, Config::default());
    swarm.open(0, None);
    let mut keys = swarm.keys(1, swarm.epoch, None);
    keys.signer = None;
    let now = swarm.now;
    let node = &mut swarm.nodes[1];
    node.datagrams.set_epoch(now, keys, &mut node.rng);
    assert_eq!(swarm.send(1, b"x", Priority::Command, true), Err(DatagramRefusal::NoSigner));
    swarm.telemetry(1, b"y");
    swarm.settle();
    assert_eq!(swarm.nodes[0].payloads(), [b"y"]);
}

#[test]
fn nothing_is_signed_over_a_carrier_whose_datagrams_cannot_carry_the_key() {
    let mut swarm = Swarm::new(2, Config { mtu: 120, ..Config::board() });
    let refused = swarm.send(1, b"x", Priority::Command, true).unwrap_err();
    assert!(
        matches!(refused, DatagramRefusal::AnnouncementTooLong { mtu: 120, needed } if needed > 120),
        "{refused}"
    );
    assert_eq!(
        refused.to_string().split(" needs ").next(),
        Some("nothing can be signed: the announcement of this member's key")
    );
    swarm.telemetry(1, b"y");
    swarm.settle();
    assert_eq!(swarm.nodes[0].payloads(), [b"y"]);
    assert!(swarm.air.iter().all(|(_, datagram)| datagram.len() <= 120));
}

#[test]
fn a_board_signs_over_its_radio() {
    let mut swarm = Swarm::new(3, Config::board());
    for node in 0..3 {
        swarm.command(node, b"land", true);
    }
    swarm.settle();
    swarm.run_for(Duration::from_secs(2), Duration::from_millis(50));
    for node in &swarm.nodes {
        assert_eq!(node.payloads(), [b"land"; 2], "slot {}", node.slot);
    }
    assert!(swarm.air.iter().all(|(_, datagram)| datagram.len() <= 255));
}

#[test]
fn the_longest_payload_is_taken_and_fits_and_no_longer_one() {
    for (priority, sign) in
        [(Priority::Telemetry, false), (Priority::Command, false), (Priority::Command, true)]
    {
        let mut swarm = Swarm::new(2, Config::default());
        let Err(DatagramRefusal::TooLong { max, .. }) = swarm.send(1, &[7; 2_000], priority, sign) else {
            panic!("taken")
        };
        assert_eq!(
            swarm.send(1, &vec![7; max + 1], priority, sign),
            Err(DatagramRefusal::TooLong { len: max + 1, max })
        );
        swarm.send(1, &vec![7; max], priority, sign).unwrap();
        swarm.settle();
        // Sealed again under the next key, it still fits.
        swarm.rekey([0, 1], false);
        swarm.settle();
        assert_eq!(swarm.nodes[0].payloads(), [vec![7; max]]);
        assert!(swarm.air.iter().all(|(_, datagram)| datagram.len() <= 1_200));
    }
}

#[test]
fn loss_doubles_and_reordering_lose_what_they_lose_and_double_nothing() {
    let mut swarm = Swarm::new(4, Config::default());
    swarm.faults = Faults { loss: 20, doubles: 20, reorders: 20 };
    let mut sent = Vec::new();
    for number in 0..500_u32 {
        let payload = number.to_be_bytes();
        swarm.telemetry(1, &payload);
        sent.push(payload.to_vec());
        swarm.run_for(Duration::from_millis(20), Duration::from_millis(20));
    }
    for node in [0, 2, 3] {
        let mut received: Vec<_> = swarm.nodes[node].payloads();
        received.sort_unstable();
        let unique = received.len();
        received.dedup();
        assert_eq!(received.len(), unique, "node {node} received something twice");
        assert!((350..=450).contains(&unique), "node {node} received {unique} of 500");
        assert_eq!(swarm.nodes[node].datagrams.counters().forged, 0);
    }
}

#[test]
fn a_lost_announcement_is_asked_for_and_nothing_held_is_lost() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.telemetry(1, b"first");
    let sent = swarm.take(1);
    // The carrier loses all announcements.
    swarm.deliver(0, sent.last().unwrap());
    assert!(swarm.nodes[0].inbox.is_empty());
    swarm.settle();
    swarm.run_for(Duration::from_millis(300), Duration::from_millis(50));
    assert_eq!(swarm.nodes[0].payloads(), [b"first"]);
}

#[test]
fn what_is_signed_waits_for_the_key_and_for_the_word_of_the_application() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.nodes[0].allows = false;
    swarm.command(1, b"arm", true);
    swarm.settle();
    assert!(swarm.nodes[0].inbox.is_empty());
    let (now, handle) = (swarm.now, swarm.nodes[1].keypair.public().handle());
    swarm.nodes[0].datagrams.allow_signer(now, 1, &handle);
    let deployment = swarm.deployment.clone();
    swarm.nodes[0].drain(&deployment, now);
    assert_eq!(swarm.nodes[0].payloads(), [b"arm"]);
    // And no longer once it is forbidden.
    swarm.nodes[0].datagrams.forbid_signer(&handle);
    swarm.command(1, b"fire", true);
    swarm.settle();
    assert_eq!(swarm.nodes[0].payloads(), [b"arm"]);
    assert_eq!(swarm.nodes[0].datagrams.counters().refused_signer, 1);
}

#[test]
fn what_nobody_signs_in_time_is_dropped_and_counted() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.nodes[1].signs = false;
    swarm.command(1, b"arm", true);
    swarm.settle();
    swarm.run_for(Duration::from_millis(1_100), Duration::from_millis(100));
    assert!(swarm.nodes[0].inbox.is_empty());
    assert_eq!(swarm.nodes[1].datagrams.counters().dropped_commands, 1);
}

#[test]
fn a_sender_that_was_not_heard_for_very_many_datagrams_is_heard_again_after_an_announcement() {
    let config = Config { announce_every: Duration::from_secs(1), ..Config::default() };
    let mut swarm = Swarm::new(2, config);
    swarm.telemetry(1, b"first");
    swarm.settle();
    for _ in 0..70_000 {
        swarm.telemetry(1, b"lost");
        swarm.take(1);
    }
    swarm.run_for(Duration::from_secs(1), Duration::from_millis(100));
    for _ in 0..3 {
        swarm.telemetry(1, b"back");
        swarm.run_for(Duration::from_secs(1), Duration::from_millis(100));
    }
    assert_eq!(swarm.nodes[0].payloads().last(), Some(&&b"back"[..]));
}

#[test]
fn without_a_valid_key_nothing_passes_in_either_direction() {
    let mut swarm = Swarm::closed(2, Config::default());
    assert_eq!(swarm.send(1, b"x", Priority::Command, false), Err(DatagramRefusal::Closed));
    assert!(swarm.take(1).is_empty());
    swarm.open(0, None);
    swarm.open(1, None);
    swarm.telemetry(1, b"one");
    swarm.settle();
    swarm.telemetry(1, b"two");
    let sent = swarm.take(1);
    swarm.nodes[0].datagrams.close();
    swarm.deliver(0, sent.last().unwrap());
    assert_eq!(swarm.nodes[0].payloads(), [b"one"]);
    assert_eq!(swarm.nodes[0].datagrams.counters().closed, 1);
    assert!(!swarm.nodes[0].datagrams.is_open());
    // Open again, the same epoch receives nothing twice.
    swarm.open(0, None);
    for (_, datagram) in swarm.air.clone() {
        swarm.deliver(0, &datagram);
    }
    assert_eq!(swarm.nodes[0].payloads(), [b"one"]);
    swarm.deliver(0, sent.last().unwrap());
    assert_eq!(swarm.nodes[0].payloads(), [&b"one"[..], b"two"]);
}

#[test]
fn an_expired_key_closes_by_itself() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.telemetry(1, b"one");
    swarm.settle();
    swarm.telemetry(1, b"two");
    let sent = swarm.take(1);
    swarm.now += VALIDITY;
    swarm.deliver(0, sent.last().unwrap());
    assert_eq!(swarm.send(1, b"x", Priority::Command, false), Err(DatagramRefusal::Closed));
    swarm.run_for(Duration::from_millis(1), Duration::from_millis(1));
    assert!(!swarm.nodes[0].datagrams.is_open() && !swarm.nodes[1].datagrams.is_open());
    assert_eq!(swarm.nodes[0].payloads(), [b"one"]);
}

#[test]
fn whoever_missed_very_many_signed_commands_receives_those_that_follow() {
    // Node 2 knows the sender and misses them; node 0 hears of it only then.
    let config = Config { announce_every: Duration::from_secs(1), ..Config::default() };
    let mut swarm = Swarm::new(3, config);
    swarm.command(1, b"first", true);
    let first = swarm.take(1);
    first.iter().for_each(|datagram| swarm.deliver(2, datagram));
    assert_eq!(swarm.nodes[2].payloads(), [b"first"]);
    // Nobody hears them, so that one signature does for all.
    let (now, deployment) = (swarm.now, swarm.deployment.clone());
    let node = &mut swarm.nodes[1];
    let signature = node.keypair.sign(&deployment, Label::Datagram, b"missed", &mut node.rng);
    for _ in 0..40_000 {
        let missed = Payload { bytes: b"missed".to_vec(), priority: Priority::Command, sign: true };
        node.datagrams.send(now, missed).unwrap();
        while let Some(event) = node.datagrams.poll_event() {
            let Event::SignatureWanted(request) = event else { panic!("{event:?}") };
            node.datagrams.provide_signature(now, request.id, &signature);
        }
        while node.datagrams.poll_datagram(now).is_some() {}
    }
    for _ in 0..100 {
        swarm.command(1, b"back", true);
        swarm.run_for(Duration::from_millis(100), Duration::from_millis(20));
    }
    let source = swarm.source_of(1);
    for node in [0, 2] {
        let back = |(_, bytes, from): &&crate::swarm::Received| bytes == b"back" && *from == source;
        assert!(swarm.nodes[node].inbox.iter().filter(back).count() > 50, "node {node}");
    }
    // A number is believed that was signed, and a window moves by what was received.
    let replayed: Vec<_> = swarm.air.iter().rev().take(20).map(|(_, datagram)| datagram.clone()).collect();
    let before = swarm.nodes[0].inbox.len();
    replayed.iter().for_each(|datagram| swarm.deliver(0, datagram));
    assert_eq!(swarm.nodes[0].inbox.len(), before);
}
