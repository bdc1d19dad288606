//! Trickle against the rules of RFC 6206, section 4.2, and members that repeat a broadcast by it.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use quiver_link::erasure::{
    Assembler, AssemblerLimits, CodedFrame, Repeater, RepeaterLimits, code_broadcast,
};
use quiver_link::{LinkError, Trickle, TrickleConfig};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};

const SECOND: Duration = Duration::from_secs(1);
const MTU: usize = 100;
const PARITY: usize = 5;

fn config(imin: u64, doublings: u8, k: u8) -> TrickleConfig {
    TrickleConfig::new(Duration::from_millis(imin), doublings, k).unwrap()
}

proptest! {
    #[test]
    fn transmits_in_the_second_half_of_each_interval_unless_k_were_heard(
        imin in 1u64..100_000, doublings in 0u8..6, k in 1u8..5,
        intervals in proptest::collection::vec((any::<u64>(), 0u8..8, any::<bool>()), 1..12), first: u64,
    ) {
        let config = config(imin, doublings, k);
        let mut begun = SECOND;
        let mut trickle = Trickle::new(config, begun, first);
        // Rule 1, for news: the interval is Imin.
        let mut expected = Duration::from_millis(imin);
        for (random, heard, before) in intervals {
            prop_assert_eq!(trickle.interval(), expected);
            // Rule 2: t in [I/2, I).
            let t = trickle.timeout();
            prop_assert!(t >= begun + expected / 2 && t < begun + expected, "{:?} of {:?}", t - begun, expected);
            prop_assert_eq!(trickle.handle_timeout(t - Duration::from_nanos(1), random), Default::default());
            // Rules 3 and 4: what is heard before t counts, what is heard after it does not.
            if before {
                (0..heard).for_each(|_| trickle.handle_consistent());
            }
            let step = trickle.handle_timeout(t, random);
            prop_assert_eq!(step.transmit, !before || heard < k);
            prop_assert!(!step.expired);
            if !before {
                (0..heard).for_each(|_| trickle.handle_consistent());
            }
            prop_assert_eq!(trickle.handle_timeout(t, random), Default::default(), "once");
            // Rule 5: at its end the interval doubles, up to Imax.
            let end = begun + expected;
            prop_assert_eq!(trickle.timeout(), end);
            let step = trickle.handle_timeout(end, random);
            prop_assert!(step.expired && !step.transmit);
            (begun, expected) = (end, (expected * 2).min(config.imax()));
        }
    }

    #[test]
    fn inconsistency_begins_again_with_imin_unless_it_is_that(doublings in 1u8..6, random: u64, later: u64) {
        let config = config(100, doublings, 1);
        let mut trickle = Trickle::new(config, SECOND, random);
        let fresh = trickle;
        // Rule 6: nothing if I is Imin.
        trickle.handle_inconsistent(SECOND * 2, later);
        prop_assert_eq!(trickle, fresh);
        trickle.handle_timeout(trickle.timeout(), random);
        trickle.handle_timeout(trickle.timeout(), random);
        trickle.handle_consistent();
        prop_assert_eq!(trickle.interval(), config.imin() * 2);
        trickle.handle_inconsistent(SECOND * 9, later);
        prop_assert_eq!(trickle, Trickle::new(config, SECOND * 9, later));
    }

    #[test]
    fn late_callers_do_not_catch_up(late in 1u64..1_000_000, random: u64) {
        let mut trickle = Trickle::new(config(100, 3, 1), SECOND, random);
        let now = SECOND * 2 + Duration::from_millis(late);
        let step = trickle.handle_timeout(now, random);
        prop_assert!(step.transmit && step.expired);
        prop_assert!(trickle.timeout() > now);
    }
}

#[test]
fn impossible_parameters_are_refused() {
    let made = |imin, doublings, k| TrickleConfig::new(imin, doublings, k);
    for (imin, doublings, k) in [
        (Duration::ZERO, 1, 1),
        (Duration::from_micros(999), 1, 1),
        (SECOND, 1, 0),
        (SECOND, 17, 1),
        (SECOND, 32, 1),
        (SECOND, 255, 1),
        (Duration::MAX, 1, 1),
    ] {
        assert_eq!(made(imin, doublings, k), Err(LinkError::InvalidTrickle), "{imin:?} {doublings} {k}");
    }
    assert_eq!(made(SECOND, 16, 1).unwrap().imax(), SECOND * 65_536);
}

/// A member that has a message, and its frames.
fn repeater(k: u8) -> (Repeater, Vec<Vec<u8>>) {
    let message: Vec<u8> = (0..700u16).map(|number| number as u8).collect();
    let mut repeater = Repeater::new(RepeaterLimits::new(config(1_000, 2, k)));
    repeater.repeat(Duration::ZERO, &message, (MTU, PARITY), 0).unwrap();
    (repeater, code_broadcast(&message, MTU, |_| PARITY).unwrap())
}

#[test]
fn member_repeats_all_frames_once_an_interval_and_ceases() {
    let (mut repeater, frames) = repeater(1);
    let (mut now, mut sent) = (Duration::ZERO, Vec::new());
    while let Some(at) = repeater.timeout() {
        assert!(at > now);
        now = at;
        repeater.handle_timeout(now, || 0);
        if let Some(repeated) = repeater.poll_frames() {
            assert_eq!(repeated, frames);
            sent.push(now.as_millis());
        }
        assert_eq!(repeater.poll_frames(), None);
    }
    assert_eq!(sent, [500, 2_000, 5_000], "halves of 1, 2 and 4 s");
    assert_eq!(now.as_millis(), 7_000);
}

#[test]
fn member_keeps_silent_when_others_repeated_the_whole_message() {
    let (mut repeater, frames) = repeater(2);
    for source in [1, 2] {
        frames.iter().skip(4).for_each(|frame| repeater.handle_frame(source, frame));
    }
    repeater.handle_timeout(Duration::from_millis(999), || 0);
    assert_eq!(repeater.poll_frames(), None);
    // In the next interval they count anew.
    repeater.handle_timeout(SECOND, || 0);
    repeater.handle_timeout(SECOND * 2, || 0);
    assert!(repeater.poll_frames().is_some());
}

#[test]
fn member_that_waits_for_the_medium_keeps_silent_if_others_had_it() {
    let (mut repeater, frames) = repeater(1);
    repeater.handle_timeout(Duration::from_millis(999), || 0);
    frames.iter().for_each(|frame| repeater.handle_frame(1, frame));
    assert_eq!(repeater.poll_frames(), None);
}

#[test]
fn false_frames_silence_no_member() {
    let (mut repeater, frames) = repeater(1);
    let data = CodedFrame::decode(&frames[0]).unwrap().data();
    let mut rng = StdRng::seed_from_u64(1);
    for source in 0..100 {
        // One frame less than the message, again and again; and false ones.
        for frame in frames.iter().take(data - 1).chain(&frames[..2]) {
            repeater.handle_frame(source, frame);
        }
        for frame in &frames {
            let mut forged = frame.clone();
            *forged.last_mut().unwrap() ^= rng.gen_range(1..=255);
            repeater.handle_frame(source, &forged);
            repeater.handle_frame(source, &forged[..9]);
        }
        let other = code_broadcast(&[source as u8; 700], MTU, |_| PARITY).unwrap();
        other.iter().for_each(|frame| repeater.handle_frame(source, frame));
    }
    repeater.handle_timeout(Duration::from_millis(999), || 0);
    assert!(repeater.poll_frames().is_some());
}

#[test]
fn the_newest_messages_are_repeated_and_one_only_once() {
    let mut repeater = Repeater::new(RepeaterLimits::new(config(1_000, 2, 1)));
    for number in 0..9u8 {
        for _ in 0..2 {
            repeater.repeat(Duration::ZERO, &[number; 300], (MTU, PARITY), 0).unwrap();
        }
    }
    repeater.handle_timeout(Duration::from_millis(999), || 0);
    let mut repeated = Vec::new();
    while let Some(frames) = repeater.poll_frames() {
        repeated.push(CodedFrame::decode(&frames[0]).unwrap().piece[0]);
    }
    assert_eq!(repeated, [5, 6, 7, 8]);
}

/// A member in a line of cells: it hears its own cell and the next ones.
struct Member {
    assembler: Assembler,
    repeater: Repeater,
    has: bool,
    hostile: bool,
}

/// Lets members repeat a broadcast that the leader sends to the first of three cells, with 10 % loss on each
/// link, until nobody has anything to do. Says how many honest ones have it, and how often it was repeated.
fn three_cells(each: usize, hostile: usize, seed: u64) -> (usize, usize) {
    let mut rng = StdRng::seed_from_u64(seed);
    let message: Vec<u8> = (0..600).map(|_| rng.r#gen()).collect();
    let trickle = config(2_000, 3, 2);
    let mut members: Vec<Member> = (0..3 * each)
        .map(|number| Member {
            assembler: Assembler::new(AssemblerLimits::new(2_048)),
            repeater: Repeater::new(RepeaterLimits::new(trickle)),
            has: false,
            hostile: number % each < hostile,
        })
        .collect();
    let frames = code_broadcast(&message, MTU, |_| PARITY).unwrap();
    let (mut now, mut repeated) = (Duration::ZERO, 0);
    // Sender, frames, and the cell from which they are sent.
    let mut air = vec![(u64::MAX, frames, 0usize)];
    loop {
        for (source, frames, cell) in std::mem::take(&mut air) {
            now += Duration::from_millis(70);
            for (number, member) in members.iter_mut().enumerate() {
                let near = if source == u64::MAX { number < each } else { cell.abs_diff(number / each) <= 1 };
                if !near || number as u64 == source {
                    continue;
                }
                for frame in &frames {
                    if rng.gen_bool(0.1) {
                        continue;
                    }
                    member.repeater.handle_frame(source, frame);
                    let got = member.assembler.handle_frame(now, source, frame, |bytes| bytes == message);
                    if let Some(got) = got.filter(|_| !member.has) {
                        member.has = true;
                        member.repeater.repeat(now, &got, (MTU, PARITY), rng.next_u64()).unwrap();
                    }
                }
            }
        }
        let due = members.iter().filter_map(|member| member.repeater.timeout()).min();
        let Some(due) = due else { break };
        now = now.max(due);
        for (number, member) in members.iter_mut().enumerate() {
            member.repeater.handle_timeout(now, || rng.next_u64());
            let Some(frames) = member.repeater.poll_frames() else { continue };
            let mut frames = frames.to_vec();
            repeated += usize::from(!member.hostile);
            for frame in frames.iter_mut().filter(|_| member.hostile) {
                // The right header, another piece.
                frame.iter_mut().skip(8).for_each(|byte| *byte = rng.r#gen());
            }
            air.push((number as u64, frames, number / each));
            // The medium is taken; the next one asks again.
            break;
        }
    }
    (members.iter().filter(|member| member.has && !member.hostile).count(), repeated)
}

#[test]
fn members_carry_a_broadcast_over_three_hops_with_few_repetitions() {
    for seed in 0..2 {
        let (have, repeated) = three_cells(16, 0, seed);
        assert_eq!(have, 48, "seed {seed}");
        assert!(repeated < 36, "{repeated} repetitions by 48 members in three intervals");
    }
}

#[test]
fn members_carry_a_broadcast_past_those_who_repeat_false_frames() {
    for seed in 0..2 {
        let (have, _) = three_cells(16, 6, seed);
        assert_eq!(have, 30, "seed {seed}");
    }
}

#[test]
fn sources_are_told_apart_within_bounds() {
    let (mut repeater, frames) = repeater(255);
    let sources: BTreeSet<u64> = (0..1_000).collect();
    for source in sources {
        repeater.handle_frame(source, &frames[0]);
    }
    // Those who began first are forgotten, and begin again.
    frames.iter().for_each(|frame| repeater.handle_frame(0, frame));
    repeater.handle_timeout(Duration::from_millis(999), || 0);
    assert!(repeater.poll_frames().is_some());
}
