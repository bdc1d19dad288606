//! Coded broadcasts to a board by a radio that loses frames, against a real KGC and a real leader, in virtual
//! time.

#[path = "../board/flash.rs"]
#[allow(dead_code, reason = "some of it is for the tests of storage alone")]
mod flash;
#[path = "../board/uncounted.rs"]
mod meter;
#[path = "../board/time.rs"]
mod time;
#[path = "../board/wire.rs"]
mod wire;
#[path = "../board/world.rs"]
#[allow(dead_code, reason = "some of it is for the tests of the node alone")]
mod world;

use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_group::LeaderCommand;
use quiver_group::leader::LeaderTiming;
use quiver_link::erasure::{CodedFrame, code_broadcast};
use quiver_link::{MAX_DATAGRAM, MAX_RADIO_DATAGRAM};
use quiver_test_network::TestNetwork;

use self::world::World;

/// Pages of the flash region.
const PAGES: usize = 16;
/// Keys in a row.
const KEYS: usize = 20;

/// A board and other members of a group with key tree, by a radio that loses so many of a hundred frames.
fn by_radio(seed: u64, mtu: usize, (loss, codes, parity): (u32, bool, bool)) -> World {
    let mut network = TestNetwork::new(seed, StrategyKind::Tree, LeaderTiming::default(), time::now());
    network.use_radio(loss, codes, parity);
    let mut world = World::with_network(seed, network, mtu, PAGES);
    world.provision("board-1");
    world.until("a key", |world| world.said.contains("\nkey "));
    world.add_companions(7);
    world.until("agreement", World::agree);
    world.run(Duration::from_secs(20));
    world
}

fn rekey(world: &mut World) {
    let before = world.epoch();
    world.lead(LeaderCommand::Rekey);
    world.until("another key", |world| world.epoch() != before && world.agree());
    world.run(Duration::from_secs(3));
}

/// The number behind a counter's name in the board's status.
fn counter(world: &mut World, name: &str) -> u64 {
    let before = world.said.len();
    world.type_line("status");
    world.until("status", |world| world.said[before..].contains("\nend\n"));
    let line = world.last("broadcasts ").expect("a line about broadcasts");
    let value = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.expect("a counter").parse().expect("a number")
}

/// Broadcasts and how many of these the board missed, in a row of new keys.
fn missed_of(world: &mut World) -> (u64, usize) {
    let (broadcasts, missed) = (world.line.broadcast_counters().broadcasts, world.line.missed_broadcasts());
    (0..KEYS).for_each(|_| rekey(world));
    (world.line.broadcast_counters().broadcasts - broadcasts, world.line.missed_broadcasts() - missed)
}

#[test]
fn board_that_loses_every_fifth_frame_has_every_key_without_asking_and_without_parity_it_asks() {
    let mut coded = by_radio(1, MAX_RADIO_DATAGRAM, (20, true, true));
    let (joined, assembled) = (coded.said.len(), counter(&mut coded, "assembled"));
    let (broadcasts, missed) = missed_of(&mut coded);
    assert_eq!((broadcasts, missed), (KEYS as u64, 0));
    assert_eq!(counter(&mut coded, "assembled") - assembled, KEYS as u64);
    let since = &coded.said[joined..];
    assert!(!since.contains("fault") && !since.contains("blamed"), "{since}");

    let mut plain = by_radio(1, MAX_RADIO_DATAGRAM, (20, true, false));
    let (broadcasts, missed) = missed_of(&mut plain);
    // Of k frames all arrive with a probability of 0.8 to the k-th. After three in a row that it did not
    // confirm the board is sent everything in its session.
    assert!(missed >= 3 && missed as u64 * 2 > broadcasts, "{missed} of {broadcasts}");
    assert_eq!(plain.line.broadcast_counters().parity, 0);
}

#[test]
fn board_that_takes_broadcasts_follows_a_gateway_that_sends_none() {
    let mut world = by_radio(2, MAX_RADIO_DATAGRAM, (20, false, false));
    (0..KEYS).for_each(|_| rekey(&mut world));
    assert!(world.line.coded_frames().is_empty());
}

#[test]
fn board_on_a_line_takes_no_broadcasts() {
    let mut world = by_radio(3, MAX_DATAGRAM, (0, true, true));
    rekey(&mut world);
    assert!(world.line.coded_frames().is_empty());
}

#[test]
fn false_and_repeated_frames_and_those_of_another_message_spoil_no_broadcast() {
    let mut world = by_radio(4, MAX_RADIO_DATAGRAM, (20, true, true));
    world.line.jam(2, 1);
    let missed = missed_of(&mut world);
    assert_eq!(missed, (KEYS as u64, 0));
    assert!(counter(&mut world, "spoilt") >= KEYS as u64, "the false ones were decoded first");
    // So many that the board gives up: it has the key in its session.
    world.line.jam(u8::MAX, 3);
    let (_, missed) = missed_of(&mut world);
    assert!(missed > 0 && counter(&mut world, "given_up") > 0);
    world.line.jam(0, 0);
    world.stop_board();
    world.start_board();
    world.run(Duration::from_secs(60));
    let missed = missed_of(&mut world);
    assert_eq!(missed, (KEYS as u64, 0), "afterwards it takes them again");
    assert!(!world.said.contains("fault") && !world.said.contains("blamed"), "{}", world.said);
}

#[test]
fn frames_that_claim_too_much_and_messages_of_strangers_are_dropped() {
    let mut world = by_radio(5, MAX_RADIO_DATAGRAM, (0, true, true));
    let epoch = world.epoch();
    let piece = [7; 108];
    // Longer than the board takes, or than there are pieces.
    for len in [8_193, 13_824, 20_000, u16::MAX] {
        let frame = CodedFrame { digest: [1; 4], len, index: 0, piece: &piece };
        world.line.put(&frame.encode());
    }
    world.line.put(&[10]);
    world.line.put(&[10; 9]);
    world.run(Duration::from_secs(1));
    assert_eq!(counter(&mut world, "refused"), 6);
    // Many messages at once, whole ones that are none, and an epoch again.
    for number in 0..2_000_u16 {
        let [high, low] = number.to_be_bytes();
        let frame = CodedFrame { digest: [high, low, 0, 0], len: 8_100, index: low, piece: &piece };
        world.line.put(&frame.encode());
    }
    code_broadcast(&[9; 700], MAX_RADIO_DATAGRAM, |_| 3)
        .unwrap()
        .iter()
        .for_each(|frame| world.line.put(frame));
    world.run(Duration::from_secs(30));
    rekey(&mut world);
    let replayed = world.line.coded_frames().to_vec();
    assert!(!replayed.is_empty());
    world.run(Duration::from_secs(30));
    replayed.iter().for_each(|frame| world.line.put(frame));
    world.run(Duration::from_secs(30));
    assert!(world.agree() && world.epoch() != epoch);
    assert!(counter(&mut world, "dropped") >= 1_990);
    let missed = missed_of(&mut world);
    assert_eq!(missed, (KEYS as u64, 0));
    assert!(!world.said.contains("fault") && !world.said.contains("gateway lost"), "{}", world.said);
}
