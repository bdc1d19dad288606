//! Bounds of queues and bit rates.

use std::time::Duration;

use quiver_datagram::{Config, Priority};

use crate::swarm::Swarm;

const STEP: Duration = Duration::from_millis(20);

#[test]
fn the_carriers_bit_rate_is_kept_and_commands_go_first() {
    let config = Config { bit_rate: Some(57_600), framing: 2, ..Config::board() };
    let mut swarm = Swarm::new(2, config);
    // Twice of what the carrier takes, for ten seconds.
    let (mut bytes, mut commands, mut telemetry) = (0, 0, 0);
    for round in 0..500_u32 {
        swarm.now += STEP;
        for _ in 0..3 {
            swarm.telemetry(1, &[7; 80]);
        }
        if round % 10 == 0 {
            swarm.command(1, &[8; 40], false);
        }
        for datagram in swarm.take(1) {
            bytes += datagram.len() + 2;
            swarm.deliver(0, &datagram);
        }
    }
    for (_, payload, _) in &swarm.nodes[0].inbox {
        if payload[0] == 8 { commands += 1 } else { telemetry += 1 }
    }
    assert!((70_000..=73_500).contains(&bytes), "{bytes} bytes in ten seconds");
    assert_eq!(commands, 50);
    assert!((700..900).contains(&telemetry), "{telemetry}");
    let counters = *swarm.nodes[1].datagrams.counters();
    assert_eq!(counters.dropped_commands, 0);
    assert!(counters.dropped_telemetry > 500);
}

#[test]
fn a_machine_that_waits_for_its_carrier_says_when_it_may_go_on() {
    let config = Config { bit_rate: Some(8_000), burst: 100, ..Config::default() };
    let mut swarm = Swarm::new(2, config);
    for _ in 0..20 {
        swarm.command(1, &[7; 200], false);
    }
    let first = swarm.take(1);
    let ready = swarm.nodes[1].datagrams.timeout().unwrap();
    // A hundred bytes in a tenth of a second.
    let sent: usize = first.iter().map(Vec::len).sum();
    assert_eq!(ready, swarm.now + Duration::from_millis(sent as u64 - 100));
    swarm.now = ready;
    assert_eq!(swarm.take(1).len(), 1);
}

#[test]
fn a_full_queue_drops_the_oldest_telemetry_first_and_commands_last() {
    let config = Config { queue_bytes: 100, ..Config::default() };
    let mut swarm = Swarm::new(2, config);
    for number in 0..20_u8 {
        swarm.send(1, &[number; 10], Priority::Telemetry, false).unwrap();
    }
    for number in 20..25_u8 {
        swarm.send(1, &[number; 10], Priority::Command, false).unwrap();
    }
    swarm.settle();
    let mut numbers: Vec<u8> = swarm.nodes[0].payloads().iter().map(|payload| payload[0]).collect();
    assert_eq!(numbers[..5], [20, 21, 22, 23, 24]);
    numbers.sort_unstable();
    assert_eq!(numbers, [15, 16, 17, 18, 19, 20, 21, 22, 23, 24]);
    assert_eq!(swarm.nodes[1].datagrams.counters().dropped_telemetry, 15);
}

/// Of a swarm that begins together, a receiver verifies 256 announcements at once, and then 50 a second.
#[test]
fn telemetry_of_more_than_are_verified_passes_and_their_orders_once_the_key_was_asked_for() {
    const MEMBERS: usize = 300;
    let mut swarm = Swarm::new(MEMBERS + 1, Config::default());
    let telemetry_of = |swarm: &mut Swarm, node: usize| {
        swarm.telemetry(node, &(node as u16).to_be_bytes());
        swarm.take(node)
    };
    // The announcements that go first have no key yet: all are lost.
    for node in 1..=MEMBERS {
        telemetry_of(&mut swarm, node);
    }
    swarm.now += Duration::from_millis(300);
    for node in 1..=MEMBERS {
        let sent = telemetry_of(&mut swarm, node);
        assert!(sent[0].len() > 200, "an announcement with the key");
        sent.iter().for_each(|datagram| swarm.deliver(0, datagram));
    }
    let heard: Vec<usize> = swarm.nodes[0].inbox.iter().map(|(slot, ..)| *slot as usize).collect();
    assert_eq!(heard, (1..=MEMBERS).collect::<Vec<_>>());
    assert_eq!(swarm.nodes[0].datagrams.counters().unverified, MEMBERS as u64 - 256);
    // One that is known starts anew: unsigned, its new start takes nobody's place.
    swarm.restart(1, Config::default());
    swarm.open(1, None);
    swarm.command(1, b"anew", true);
    swarm.take(1).iter().for_each(|datagram| swarm.deliver(0, datagram));
    assert_eq!(swarm.nodes[0].datagrams.counters().unverified, MEMBERS as u64 - 255);
    assert_eq!(swarm.nodes[0].inbox.len(), MEMBERS);
    // The signature that an order needs is asked for.
    swarm.now += Duration::from_secs(1);
    swarm.command(MEMBERS, b"order", true);
    for _ in 0..40 {
        swarm.now += Duration::from_millis(20);
        for (from, to) in [(MEMBERS, 0), (0, MEMBERS)] {
            swarm.take(from).iter().for_each(|datagram| swarm.deliver(to, datagram));
        }
    }
    let (slot, order, source) = swarm.nodes[0].inbox.last().unwrap();
    assert_eq!(
        (*slot as usize, order.as_slice(), source),
        (MEMBERS, &b"order"[..], &swarm.source_of(MEMBERS))
    );
}

#[test]
fn telemetry_that_is_too_old_does_not_leave() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.telemetry(1, b"old");
    swarm.command(1, b"command", false);
    swarm.now += Duration::from_secs(1);
    swarm.settle();
    assert_eq!(swarm.nodes[0].payloads(), [b"command"]);
}

/// An ordinary stream of telemetry: 18 frames and 744 bytes a second.
#[test]
fn a_stream_of_744_bytes_a_second_stays_below_a_thousand() {
    let mut swarm = Swarm::new(2, Config::board());
    let seconds = 60;
    for round in 0..18 * seconds {
        // Frames of 21 to 63 bytes, 41 and a third on average.
        let frame = [21, 40, 63][round % 3];
        swarm.telemetry(1, &vec![7; frame]);
        swarm.run_for(Duration::from_micros(1_000_000 / 18), Duration::from_micros(1_000_000 / 18));
    }
    let bytes: usize = swarm.air.iter().map(|(_, datagram)| datagram.len()).sum();
    let payload: usize = swarm.nodes[0].inbox.iter().map(|(_, bytes, _)| bytes.len()).sum();
    assert_eq!(payload / seconds, 744);
    assert!(bytes / seconds < 1_000, "{} bytes a second", bytes / seconds);
    assert_eq!(swarm.nodes[1].datagrams.counters().dropped_telemetry, 0);
}
