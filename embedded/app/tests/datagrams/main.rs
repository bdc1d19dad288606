//! The group's datagrams between a board and other members, against a real KGC and a real leader, in virtual
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

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_group::LeaderCommand;
use quiver_test_network::name;

use self::world::World;

/// The member that the board talks with, and another.
const MEMBER: usize = 0;
const OTHER: usize = 1;

/// A board and two other members, which hear each other.
fn in_range(seed: u64) -> World {
    let mut world = World::joined(seed);
    world.add_companions(2);
    world.listen(MEMBER);
    world.listen(OTHER);
    world.until("agreement", |world| world.agree() && world.companions_agree());
    world
}

/// The board says something, and the member receives it from this source.
fn board_says(world: &mut World, command: &str, text: &str, source: &str) {
    world.type_line(&format!("{command} {text}"));
    world.until("the board's datagram", |world| received(world, MEMBER, text) > 0);
    let last = world.datagrams_received(MEMBER).last().cloned();
    assert_eq!(last, Some((source.into(), text.into())));
}

/// Number of times that a companion received a text.
fn received(world: &World, companion: usize, text: &str) -> usize {
    world.datagrams_received(companion).iter().filter(|(_, data)| data == text).count()
}

/// The member says something, and the board prints it as of this source.
fn member_says(world: &mut World, text: &str, sign: bool, source: &str) {
    assert!(world.send_datagram(MEMBER, text, sign));
    let line = format!("datagram {source} {text}");
    world.until("the member's datagram", |world| world.last("datagram ") == Some(&*line));
}

/// The board's slot, as its console says.
fn slot(world: &World) -> String {
    let words: Vec<_> = world.last("key ").expect("a key").split(' ').collect();
    format!("slot:{}", words[3])
}

/// The number behind a counter's name in the board's status; 0 if it is left out.
fn counter(world: &mut World, name: &str) -> u64 {
    let before = world.said.len();
    world.type_line("status");
    world.until("status", |world| world.said[before..].contains("\nend\n"));
    let line = world.last("datagrams ").expect("a line about datagrams");
    let value = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.map_or(0, |value| value.parse().expect("a number"))
}

/// Boot numbers and salts that the board announced: behind a header of one byte and a slot below 127.
fn starts(world: &World) -> BTreeSet<(u32, Vec<u8>)> {
    let announcements = world.board_datagrams.iter().filter(|bytes| bytes[0] >> 3 & 7 == 7);
    announcements
        .map(|bytes| (u32::from_be_bytes(bytes[2..6].try_into().unwrap()), bytes[6..14].to_vec()))
        .collect()
}

fn rekey(world: &mut World, command: LeaderCommand) {
    let before = world.epoch();
    world.lead(command);
    world.until("another key", |world| world.epoch() != before && world.agree());
}

#[test]
fn board_and_member_exchange_datagrams() {
    let mut world = in_range(21);
    let board = slot(&world);
    board_says(&mut world, "datagram", "all quiet", &board);
    board_says(&mut world, "datagram-signed", "turning back", "board-1");
    member_says(&mut world, "go north", true, "companion-0");
    assert!(world.send_datagram(OTHER, "telemetry", false));
    world.until("telemetry", |world| world.last("datagram slot:").is_some());
    assert_eq!((received(&world, OTHER, "all quiet"), received(&world, OTHER, "turning back")), (1, 1));
    assert_eq!(counter(&mut world, "received_payloads"), 2);
    assert_eq!(counter(&mut world, "sent_payloads"), 2);
    assert_eq!(counter(&mut world, "senders"), 2);
    assert!(!world.said.contains("fault") && !world.said.contains("blamed"), "{}", world.said);
}

#[test]
fn restarted_board_goes_on_under_another_start_and_what_it_said_before_is_not_received_again() {
    let mut world = in_range(22);
    let board = slot(&world);
    board_says(&mut world, "datagram", "before", &board);
    board_says(&mut world, "datagram-signed", "signed before", "board-1");
    let old = world.board_datagrams.clone();
    let first = starts(&world);
    assert_eq!(first.len(), 1);
    for restart in 1..4 {
        world.stop_board();
        world.start_board();
        world.until("agreement", |world| {
            let since = world.said.split("start board").nth(1 + restart);
            since.is_some_and(|since| since.contains("\nkey ")) && world.agree()
        });
        board_says(&mut world, "datagram-signed", &format!("signed after {restart}"), "board-1");
        board_says(&mut world, "datagram", &format!("after {restart}"), &board);
        member_says(&mut world, &format!("welcome back {restart}"), true, "companion-0");
        let starts = starts(&world);
        let boots: BTreeSet<_> = starts.iter().map(|(boot, _)| *boot).collect();
        let salts: BTreeSet<_> = starts.iter().map(|(_, salt)| salt.clone()).collect();
        assert_eq!((boots.len(), salts.len()), (1 + restart, 1 + restart), "each start has its own");
    }
    for datagram in &old {
        world.broadcast(datagram);
    }
    world.run(Duration::from_secs(5));
    assert_eq!((received(&world, MEMBER, "before"), received(&world, MEMBER, "signed before")), (1, 1));
    assert_eq!(world.said.matches("\nenrolled").count(), 1);
}

#[test]
fn datagrams_go_on_across_keys_and_none_comes_twice() {
    let mut world = in_range(23);
    for key in 0..4 {
        let board = slot(&world);
        board_says(&mut world, "datagram", &format!("telemetry {key}"), &board);
        board_says(&mut world, "datagram-signed", &format!("command {key}"), "board-1");
        member_says(&mut world, &format!("order {key}"), true, "companion-0");
        let said = world.board_datagrams.clone();
        rekey(&mut world, LeaderCommand::Rekey);
        for datagram in &said {
            world.broadcast(datagram);
        }
    }
    world.run(Duration::from_secs(10));
    for key in 0..4 {
        for text in [format!("telemetry {key}"), format!("command {key}")] {
            assert_eq!((received(&world, MEMBER, &text), received(&world, OTHER, &text)), (1, 1), "{text}");
        }
        assert_eq!(world.said.matches(&format!("order {key}\n")).count(), 1);
    }
    // Nobody announced itself anew for another key of the same start.
    assert_eq!(starts(&world).len(), 1);
    assert!(counter(&mut world, "own") > 0, "the board's own, come back");
}

#[test]
fn evicted_member_with_its_former_key_is_neither_heard_nor_hears() {
    let mut world = in_range(24);
    assert!(world.send_datagram(OTHER, "still a member", true));
    world.until("its datagram", |world| world.last("datagram companion-1 still a member").is_some());
    world.capture(OTHER);
    rekey(&mut world, LeaderCommand::Evict(name("companion-1")));
    let (refused, before) = (counter(&mut world, "old_epoch"), world.datagrams_received(OTHER).len());
    for sign in [false, true] {
        assert!(world.send_datagram(OTHER, "listen to me", sign), "it has its former key");
    }
    let board = slot(&world);
    board_says(&mut world, "datagram", "among us", &board);
    world.run(Duration::from_secs(5));
    assert!(!world.said.contains("listen to me"), "{}", world.said);
    assert!(counter(&mut world, "old_epoch") > refused);
    assert_eq!(world.datagrams_received(OTHER).len(), before);
    member_says(&mut world, "we go on", true, "companion-0");
}

#[test]
fn evicted_board_sends_and_receives_nothing() {
    let mut world = in_range(25);
    let board = slot(&world);
    board_says(&mut world, "datagram", "while a member", &board);
    let sent = world.board_datagrams.len();
    world.lead(LeaderCommand::Evict(name("board-1")));
    world.until("evicted", |world| world.said.contains("\nevicted\n"));
    world.type_line("datagram and now?");
    world.until("refused", |world| world.said.ends_with("error there is no valid group key\n"));
    assert!(world.send_datagram(MEMBER, "not for it", false));
    world.run(Duration::from_secs(5));
    assert_eq!(world.board_datagrams.len(), sent);
    assert!(!world.said.contains("not for it"));
    assert!(counter(&mut world, "closed") > 0);
}

#[test]
fn forged_and_foreign_datagrams_are_counted_by_reason_and_never_answered() {
    let mut world = in_range(26);
    member_says(&mut world, "known", true, "companion-0");
    world.type_line("datagram-signed known too");
    world.run(Duration::from_secs(20));
    let sent = world.board_datagrams.len();
    let good = world.member_datagrams.last().cloned().expect("one was sent");
    for bit in 0..8 {
        let mut forged = good.clone();
        // Another number, so that it is no replay, and another tag.
        forged[3] = forged[3].wrapping_add(1 + bit);
        *forged.last_mut().unwrap() ^= 1 << bit;
        world.broadcast(&forged);
        world.broadcast(&good);
    }
    world.broadcast(&[0x41]);
    world.run(Duration::from_secs(1));
    assert_eq!(counter(&mut world, "forged"), 8);
    assert_eq!(counter(&mut world, "replayed"), 8);
    assert_eq!(counter(&mut world, "malformed"), 1);
    let answers = world.board_datagrams.len() - sent;
    assert!(answers <= 2, "at most a question at a time: {answers}");
}

#[test]
fn what_cannot_be_sent_is_refused_in_words() {
    let mut world = World::new(27, quiver_ainq::StrategyKind::Flat, Default::default());
    let cases = [
        ("datagram", "error this command takes something"),
        ("datagram hello", "error not in step with a group"),
        ("datagram-signed hello", "error not in step with a group"),
    ];
    for (line, answer) in cases {
        world.said.clear();
        world.type_line(line);
        world.run(Duration::from_millis(10));
        assert!(world.said.lines().any(|said| said == answer), "{line}: {}", world.said);
    }
    world.provision("board-1");
    world.until("a key", |world| world.said.contains("\nkey "));
    world.type_line(&format!("datagram {}", "x".repeat(256)));
    world.until("refused", |world| world.said.contains("error payload of 256 bytes is longer than the "));
}
