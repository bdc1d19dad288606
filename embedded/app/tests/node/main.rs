//! The whole node against a real KGC and a real leader, in virtual time.

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
mod world;

use std::time::Duration;

use crc::{CRC_32_ISO_HDLC, Crc};
use quiver_ainq::StrategyKind;
use quiver_firmware::IndicatorState;
use quiver_group::leader::LeaderTiming;
use quiver_group::{LeaderCommand, LeaderEvent};
use quiver_link::{Counter, encode_line};
use quiver_test_network::name;

use self::world::World;

#[test]
fn board_enrols_joins_and_follows_ten_keys() {
    for strategy in [StrategyKind::Flat, StrategyKind::Tree] {
        let mut world = World::new(1, strategy, LeaderTiming::default());
        world.until("a session", |world| world.said.contains("gateway connected"));
        assert_eq!(world.knobs.state.get(), Some(IndicatorState::Unprovisioned));
        world.provision("board-1");
        world.until("enrolled", |world| world.said.contains("\nenrolled board-1\n"));
        for _ in 0..10 {
            world.until("agreement", World::agree);
            let before = world.epoch();
            world.lead(LeaderCommand::Rekey);
            world.until("another key", |world| world.epoch() != before && world.agree());
        }
        assert_eq!(world.knobs.state.get(), Some(IndicatorState::Member));
        assert!(!world.said.contains("fault") && !world.said.contains("blamed"), "{}", world.said);
    }
}

#[test]
fn messages_go_both_ways() {
    let mut world = World::joined(2);
    world.type_line("send hello from the board");
    world.until("the message", |world| world.leader_events().iter().any(is_message));
    let data = b"hello\x07\nboard \xff".to_vec();
    world.lead(LeaderCommand::Send { channel: name("orders"), data });
    world.until("message", |world| world.last("message").is_some());
    assert_eq!(world.last("message"), Some(r"message orders leader hello\x07\x0aboard \xff"));
}

/// An image that takes broadcasts has tests of its own.
#[cfg(not(feature = "broadcasts"))]
#[test]
fn board_that_takes_no_broadcasts_ignores_their_frames() {
    let mut world = World::joined(2);
    let frames = quiver_link::erasure::code_broadcast(&[7; 500], 116, |_| 3).unwrap();
    world.run(Duration::from_millis(500));
    let before = world.sent.len();
    frames.iter().for_each(|frame| world.line.put(frame));
    world.run(Duration::from_millis(500));
    assert_eq!(world.sent.len(), before, "no answer");
    let epoch = world.epoch();
    world.lead(LeaderCommand::Rekey);
    world.until("another key", |world| world.epoch() != epoch && world.agree());
    assert!(!world.said.contains("fault") && !world.said.contains("blamed"), "{}", world.said);
    assert_eq!(world.said.matches("gateway connected").count(), 1);
}

fn is_message(event: &LeaderEvent) -> bool {
    matches!(event, LeaderEvent::Message { data, .. } if data.as_slice() == b"hello from the board")
}

#[test]
fn reset_keeps_the_state_and_a_missed_key_is_caught_up_with() {
    let mut world = World::joined(3);
    world.type_line("reset");
    world.until("a second start", |world| world.said.matches("start board").count() == 2);
    world.stop_board();
    world.lead(LeaderCommand::Rekey);
    world.run(Duration::from_secs(60));
    assert!(!world.agree());
    world.start_board();
    world.until("agreement", World::agree);
    assert_eq!(world.said.matches("\nenrolled").count(), 1);
}

#[test]
fn power_lost_at_any_step_of_writing_a_key_costs_nothing_but_time() {
    for cut in (0..340).step_by(17) {
        let mut world = World::joined(4);
        let begun = world.flash.chip().steps;
        world.flash.chip().fails_at = Some(begun + cut);
        world.lead(LeaderCommand::Rekey);
        world.run(Duration::from_secs(1));
        world.lead(LeaderCommand::Rekey);
        world.until("agreement", World::agree);
        world.type_line("status");
        world.until("status", |world| world.said.ends_with("end\n"));
        let since = world.said.rsplit("start board").next().unwrap();
        assert!(!since.contains("fault"), "cut {cut}: {}", world.said);
        assert_eq!(world.said.matches("\nenrolled").count(), 1, "cut {cut}");
    }
}

#[test]
fn power_lost_at_any_step_of_enrolment_still_ends_in_a_key() {
    for cut in (0..1_200).step_by(53) {
        let mut world = World::new(5, StrategyKind::Flat, LeaderTiming::default());
        let line = hex::encode(&*world.provisioning("board-1").encode());
        world.flash.chip().fails_at = Some(cut);
        world.run(Duration::from_secs(1));
        world.type_line(&format!("provision {line}"));
        world.run(Duration::from_secs(30));
        world.type_line(&format!("provision {line}"));
        world.until("agreement", World::agree);
    }
}

#[test]
fn wiped_board_is_as_new_and_holds_no_key() {
    for by_button in [false, true] {
        let mut world = World::joined(6);
        if by_button {
            world.knobs.button.set(true);
            world.run(Duration::from_secs(2));
        } else {
            world.type_line("wipe");
        }
        world.until("wiped", |world| world.said.contains("\nwiped\n"));
        assert!(world.flash.chip().bytes.iter().all(|byte| *byte == 0xff));
        assert_eq!(world.knobs.state.get(), Some(IndicatorState::Unprovisioned));
        world.type_line("send anybody?");
        world.until("refused", |world| world.said.ends_with("error not provisioned\n"));
        world.stop_board();
        world.start_board();
        world.until("unprovisioned", |world| world.said.ends_with("unprovisioned\n"));
        world.said.clear();
        world.said.push('\n');
        world.provision("board-2");
        world.until("agreement", World::agree);
    }
}

#[test]
fn garbage_on_both_lines_is_counted_and_keys_go_on() {
    let mut world = World::new(7, StrategyKind::Flat, LeaderTiming::default());
    world.wire.say(&[0xee; 5_000]);
    world.wire.say(&[0x01; 5_000]);
    world.console.say(&[0x9b; 10_000]);
    world.console.say(b"\n\x00\xff\n\n");
    world.provision("board-1");
    world.wire.both().noise = 2_000;
    for _ in 0..20 {
        world.until("agreement", World::agree);
        let before = world.epoch();
        world.lead(LeaderCommand::Rekey);
        world.wire.say(b"\x00\x00garbage\x00more");
        world.until("another key", |world| world.epoch() != before && world.agree());
    }
    world.wire.both().noise = 0;
    world.run(Duration::from_secs(130));
    let report = world.report.expect("a report");
    assert!(report.value(Counter::BadFrames) > 10 && report.value(Counter::TooLong) > 0, "{report}");
    assert!(world.knobs.starved.get() <= Duration::from_secs(1), "{:?}", world.knobs.starved.get());
}

/// A frame in good order, but of this version.
fn frame_of_version(version: u8) -> Vec<u8> {
    let mut body = vec![version, 1, 1];
    body.extend(Crc::<u32>::new(&CRC_32_ISO_HDLC).checksum(&body).to_le_bytes());
    cobs::encode_vec_including_sentinels(&body)
}

#[test]
fn each_bad_input_is_counted_under_its_name_on_the_console_and_over_the_link() {
    let mut world = World::joined(16);
    let told = |world: &mut World, counters: &[Counter]| {
        world.report = None;
        world.until("a report", |world| world.report.is_some());
        let before = world.said.len();
        world.type_line("status");
        world.until("status", |world| world.said[before..].contains("\nend\n"));
        let (report, said) = (world.report.take().unwrap(), world.said[before..].to_string());
        for counter in counters {
            assert!(report.value(*counter) > 0, "{counter:?}: {report}");
            assert!(said.contains(&format!("{}=", counter.name())), "{counter:?}: {said}");
        }
    };
    let nonsense = encode_line(0, b"\xf7nonsense").unwrap();
    let mut changed = nonsense.clone();
    changed[6] ^= 1;
    world.wire.say(&frame_of_version(2));
    world.wire.say(&nonsense);
    world.wire.say(&changed);
    world.wire.say(&[&[0][..], &[1; 5_000], &[0]].concat());
    world.inject_from_leader(b"no message of any version");
    let wrong =
        [Counter::WrongVersion, Counter::Malformed, Counter::BadFrames, Counter::TooLong, Counter::Offences];
    told(&mut world, &wrong);
    world.until("agreement", World::agree);
    // A bit changes in everything that was ever stored and is still there.
    world.stop_board();
    for byte in
        world.flash.chip().bytes[2 * flash::PAGE..].iter_mut().step_by(64).filter(|byte| **byte != 0xff)
    {
        *byte ^= 4;
    }
    world.start_board();
    world.until("fault", |world| world.said.contains("\nfault "));
    told(&mut world, &[Counter::StateDamaged]);
}

#[test]
fn lost_gateway_is_noticed_and_its_successor_taken() {
    let mut world = World::joined(8);
    world.gateway_up = false;
    world.until("noticed", |world| world.said.contains("\ngateway lost\n"));
    assert_eq!(world.knobs.state.get(), Some(IndicatorState::NoGateway));
    world.lead(LeaderCommand::Rekey);
    world.gateway_up = true;
    world.restart_gateway();
    world.until("agreement", World::agree);
}

#[test]
fn board_hears_the_group_of_a_leader_that_began_anew() {
    let mut world = World::joined(17);
    world.restart_leader();
    world.until("agreement", World::agree);
    world.lead(LeaderCommand::Send { channel: name("orders"), data: b"to all".to_vec() });
    world.until("message", |world| world.last("message") == Some("message orders leader to all"));
    assert_eq!(world.said.matches("\nenrolled").count(), 1);
    assert!(!world.said.contains("gateway lost"), "{}", world.said);
}

#[test]
fn leader_that_the_gateway_made_up_is_found_out_while_the_key_is_still_good() {
    let mut world = World::joined(12);
    world.run(Duration::from_secs(1_200));
    assert_eq!(world.knobs.state.get(), Some(IndicatorState::Member), "quiet is not silence");
    assert!(!world.said.contains("gateway lost"), "{}", world.said);

    world.make_up_leader(true);
    let (epoch, since) = (world.board_epoch(), time::now());
    world.until("doubt", |world| world.knobs.state.get() == Some(IndicatorState::NoLeader));
    world.until("another session", |world| world.said.contains("\ngateway lost\n"));
    let taken = time::now() - since;
    assert!(taken < Duration::from_secs(15 * 60), "{taken:?}");
    assert_eq!(world.board_epoch(), epoch, "it still holds its key");

    world.make_up_leader(false);
    world.until("an answer", |world| world.knobs.state.get() == Some(IndicatorState::Member));
    world.until("agreement", World::agree);
}

#[test]
fn stuck_randomness_stops_cryptography_until_it_is_back() {
    let mut world = World::joined(9);
    world.knobs.stuck.set(true);
    world.run(Duration::from_secs(15));
    assert!(world.said.contains("fault randomness"), "{}", world.said);
    assert_eq!(world.knobs.state.get(), Some(IndicatorState::Fault));
    let (stored, before) = (world.flash.chip().steps, world.board_epoch());
    world.lead(LeaderCommand::Rekey);
    world.type_line("send hello");
    world.run(Duration::from_secs(30));
    assert!(world.said.contains("error not now"));
    assert_eq!((world.flash.chip().steps, world.board_epoch()), (stored, before), "nothing was done");
    world.knobs.stuck.set(false);
    world.until("agreement", World::agree);
    assert!(world.said.contains("randomness is back"));
    world.run(Duration::from_secs(61));
    assert!(world.report.expect("a report").value(Counter::RandomFailures) >= 2);
}

#[test]
fn worn_flash_holds_everything_back_and_is_reported() {
    let mut world = World::joined(10);
    let agreed = world.board_epoch();
    world.flash.chip().worn = (0..16).collect();
    world.lead(LeaderCommand::Rekey);
    world.until("fault", |world| world.said.contains("\nfault flash is worn"));
    world.run(Duration::from_secs(20));
    assert_eq!(world.knobs.state.get(), Some(IndicatorState::Fault));
    world.type_line("status");
    world.until("status", |world| world.said.contains("\nend\n"));
    world.flash.chip().worn.clear();
    world.until("agreement", World::agree);
    assert_ne!(world.board_epoch(), agreed);
    let erased: u32 = world.flash.chip().erasures.iter().sum();
    assert!(erased < 200, "trying again wears as well: {erased}");
    world.run(Duration::from_secs(61));
    assert!(world.report.expect("a report").value(Counter::FlashFailures) > 0);
}

#[test]
fn state_that_the_flash_has_no_room_for_is_given_up_and_keys_go_on() {
    let mut world = World::with_flash(13, StrategyKind::Flat, LeaderTiming::default(), 6);
    world.provision("board-1");
    world.until("agreement", World::agree);
    // 4,800 bytes of a list, where a state may have 4,080.
    world.revoke(200);
    world.lead(LeaderCommand::Rekey);
    world.until("fault", |world| world.said.contains("\nfault flash is full: a state of "));
    assert!(world.said.contains("\nfault back to the state before, in 5 s\n"), "{}", world.said);
    assert_eq!(world.knobs.state.get(), Some(IndicatorState::Fault));
    for _ in 0..3 {
        world.lead(LeaderCommand::Rekey);
        world.until("agreement", World::agree);
    }
    assert_eq!(world.said.matches("\nenrolled").count(), 1);
    world.until("a report", |world| {
        world.report.as_ref().is_some_and(|report| report.value(Counter::FlashFull) > 0)
    });
    let stored = world.flash.chip().erasures.iter().sum::<u32>();
    world.run(Duration::from_secs(24 * 3_600));
    let day = world.flash.chip().erasures.iter().sum::<u32>() - stored;
    assert!(day < 400, "trying again wears as well: {day}");
}

#[test]
fn header_that_the_flash_has_no_room_for_is_given_up_and_a_later_key_taken() {
    let mut world = World::with_flash(14, StrategyKind::Flat, LeaderTiming::default(), 6);
    world.provision("board-1");
    world.until("agreement", World::agree);
    world.add_companions(1_100);
    world.silence_every_second();
    // Their spare points are used up by the first start, so that the second opens a term without them, and
    // names each in its header: 550 runs of 8 bytes, where a state may have 4,080.
    world.restart_leader();
    world.until("agreement", World::agree);
    // The board publishes its next one.
    world.run(Duration::from_secs(10));
    assert!(!world.said.contains("\nfault"), "{}", world.said);
    world.restart_leader();
    world.until("fault", |world| world.said.contains("\nfault flash is full: a state of "));
    assert!(world.said.contains("\nfault back to the state before, in 5 s\n"), "{}", world.said);
    world.until("agreement", World::agree);
    world.lead(LeaderCommand::Rekey);
    world.until("agreement", World::agree);
    world.until("a report", |world| {
        world.report.as_ref().is_some_and(|report| report.value(Counter::FlashFull) > 0)
    });
    assert_eq!(world.said.matches("\nenrolled").count(), 1, "nobody enrolled anew");
}

#[test]
fn re_key_longer_than_a_board_takes_is_refused_counted_and_caught_up_with() {
    let mut world = World::new(15, StrategyKind::Tree, LeaderTiming::default());
    world.provision("board-1");
    world.until("agreement", World::agree);
    world.add_companions(700);
    world.until("agreement", World::agree);
    let refused = world.gateway.counters().too_long;
    // Every second leaf of the tree goes: nearly all of its keys are new, and the message has a wrap of each.
    world.revoke_every_second();
    world.until("refusal", |world| world.gateway.counters().too_long > refused);
    world.until("agreement", World::agree);
    world.lead(LeaderCommand::Rekey);
    world.until("agreement", World::agree);
    assert_eq!(world.said.matches("\nenrolled").count(), 1, "nobody enrolled anew");
    assert!(!world.said.contains("fault") && !world.said.contains("blamed"), "{}", world.said);
}

#[test]
fn bad_provisioning_is_refused_in_words() {
    let mut world = World::new(11, StrategyKind::Flat, LeaderTiming::default());
    let good = hex::encode(&*world.provisioning("board-1").encode());
    let cases = [
        ("provision", "error this command takes something"),
        ("provision zz", "error not hexadecimal"),
        ("provision 0102", "error cut or changed"),
        (&format!("provision {}", &good[..good.len() - 2]), "error cut or changed"),
        (&format!("provision {good}00"), "error cut or changed"),
        (&format!("provision {}", "00".repeat(2_060)), "error line is too long"),
        (&format!("provision {good}"), "provisioned"),
        (&format!("provision {good}"), "error provisioned already; wipe first"),
    ];
    for (line, answer) in cases {
        assert_answer(&mut world, line, answer);
    }
}

#[cfg(not(feature = "quorum"))]
#[test]
fn settings_of_a_quorum_are_refused_by_a_board_that_enrols_with_one_kgc() {
    let mut world = World::new(11, StrategyKind::Flat, LeaderTiming::default());
    let good = hex::encode(&*world.provisioning("board-1").encode());
    let mut settings = world.provisioning("board-1");
    settings.kgcs = vec![1, 2, 3];
    let of_quorum = hex::encode(&*settings.encode());
    let answer = "error this image enrols with a single KGC, not with a quorum";
    assert_answer(&mut world, &format!("provision {of_quorum}"), answer);
    assert_answer(&mut world, &format!("provision {good}"), "provisioned");
}

/// Types a line, and looks for a line of the answer that begins like this.
fn assert_answer(world: &mut World, line: &str, answer: &str) {
    world.said.clear();
    world.type_line(line);
    world.run(Duration::from_millis(10));
    assert!(world.said.lines().any(|said| said.starts_with(answer)), "{answer}: {}", world.said);
}
