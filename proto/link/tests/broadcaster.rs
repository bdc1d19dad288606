//! Broadcasts of a gateway: one for all boards that take it, with parity as the loss demands, and in their
//! sessions for those who did not confirm it.

use std::time::Duration;

use proptest::prelude::*;
use quiver_link::erasure::{
    Assembler, AssemblerLimits, Broadcaster, BroadcasterLimits, CodedFrame, Missed, parity_for,
};

const LIMITS: BroadcasterLimits = BroadcasterLimits::radio();
const START: Duration = Duration::ZERO;

fn message(number: u8) -> Vec<u8> {
    vec![number; 500]
}

/// A broadcaster with so many boards, from 1 on.
fn broadcaster(boards: u16) -> Broadcaster {
    let mut broadcaster = Broadcaster::new(LIMITS);
    (1..=boards).for_each(|board| broadcaster.add(board, 4_096));
    broadcaster
}

/// All frames that the medium would be given now.
fn frames(broadcaster: &mut Broadcaster, now: Duration) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| broadcaster.poll_frame(now)).collect()
}

fn digest(frame: &[u8]) -> [u8; 4] {
    CodedFrame::decode(frame).unwrap().digest
}

/// Sends a message that nobody confirms to these boards, and lets its time pass.
fn miss(broadcaster: &mut Broadcaster, now: &mut Duration, number: u8, boards: &[u16]) {
    for board in boards {
        assert!(broadcaster.publish(*now, *board, &message(number)));
    }
    assert!(!frames(broadcaster, *now).is_empty());
    *now = broadcaster.timeout().unwrap();
    broadcaster.handle_timeout(*now);
    assert_eq!(broadcaster.poll_missed(), Some(Missed { boards: boards.into(), message: message(number) }));
}

#[test]
fn boards_share_one_broadcast_and_none_is_sent_more_once_all_confirm() {
    let mut broadcaster = broadcaster(3);
    for board in 1..=3 {
        assert!(broadcaster.publish(START, board, &message(1)));
    }
    let sent = frames(&mut broadcaster, START);
    assert_eq!(sent.len(), 5, "500 bytes, and no loss seen");
    let mut assembler = Assembler::new(AssemblerLimits::new(4_096));
    let whole = sent.iter().find_map(|frame| assembler.handle_frame(START, 0, frame, |_| true));
    assert_eq!(whole, Some(message(1)));
    for board in 1..=3 {
        assert!(broadcaster.timeout().is_some(), "waits for {board}");
        broadcaster.confirm(START, board, digest(&sent[0]));
    }
    assert_eq!((broadcaster.timeout(), broadcaster.poll_missed()), (None, None));
    // Published again: they have it.
    assert!(broadcaster.publish(START, 1, &message(1)));
    assert_eq!(broadcaster.poll_frame(START), None);
    let counters = broadcaster.counters();
    assert_eq!((counters.broadcasts, counters.frames, counters.confirmed, counters.missed), (1, 5, 3, 0));
}

#[test]
fn parity_follows_from_the_repeats_of_sessions() {
    for (sent, repeated, loss) in [(100, 0, 0.0), (1_000, 200, 0.2), (100, 90, 0.5), (31, 20, 0.0)] {
        let mut broadcaster = broadcaster(2);
        broadcaster.note_fragments(sent, repeated);
        assert!((broadcaster.loss() - loss).abs() < 1e-9);
        assert!(broadcaster.publish(START, 1, &message(1)));
        let frames = frames(&mut broadcaster, START);
        assert_eq!(frames.len(), 5 + parity_for(5, loss), "{sent} sent, {repeated} repeated");
        assert_eq!(broadcaster.counters().parity, parity_for(5, loss) as u64);
        assert!(frames.iter().all(|frame| frame.len() <= LIMITS.mtu));
    }
}

#[test]
fn parity_stops_when_every_board_has_the_message() {
    let mut broadcaster = broadcaster(2);
    broadcaster.note_fragments(100, 30);
    assert!(broadcaster.publish(START, 1, &message(1)));
    let first: Vec<_> = (0..5).map(|_| broadcaster.poll_frame(START).unwrap()).collect();
    broadcaster.confirm(START, 1, digest(&first[0]));
    assert!(broadcaster.poll_frame(START).is_some(), "the other may yet be sent it");
    broadcaster.confirm(START, 2, digest(&first[0]));
    assert_eq!(broadcaster.poll_frame(START), None);
    assert!(broadcaster.publish(START, 2, &message(1)), "it has it");
    assert_eq!(broadcaster.poll_missed(), None);
}

#[test]
fn who_does_not_confirm_is_sent_the_message_in_its_session_at_once_when_the_time_is_over() {
    let mut broadcaster = broadcaster(3);
    for board in 1..=3 {
        assert!(broadcaster.publish(START, board, &message(1)));
    }
    let sent = frames(&mut broadcaster, START);
    broadcaster.confirm(START, 2, digest(&sent[0]));
    broadcaster.confirm(START, 9, digest(&sent[0]));
    broadcaster.confirm(START, 3, [0; 4]);
    let until = broadcaster.timeout().unwrap();
    assert_eq!(until, LIMITS.confirm_within);
    broadcaster.handle_timeout(until - Duration::from_millis(1));
    assert_eq!(broadcaster.poll_missed(), None);
    broadcaster.handle_timeout(until);
    assert_eq!(broadcaster.poll_missed(), Some(Missed { boards: vec![1, 3], message: message(1) }));
    assert!(!broadcaster.publish(until, 1, &message(1)), "no broadcast for one who lost it");
    // Its confirmation came late.
    broadcaster.confirm(until, 1, digest(&sent[0]));
    assert!(broadcaster.publish(until, 1, &message(1)));
    // It is forgotten, and so another broadcast.
    assert!(broadcaster.publish(until + LIMITS.remember, 3, &message(1)));
    assert_eq!(frames(&mut broadcaster, until + LIMITS.remember).len(), 5);
}

#[test]
fn board_that_confirms_nothing_is_left_out_until_it_does() {
    let (mut broadcaster, mut now) = (broadcaster(3), START);
    for number in 0..3 {
        miss(&mut broadcaster, &mut now, number, &[1]);
    }
    assert!(!broadcaster.publish(now, 1, &message(3)), "three in vain");
    // It hears one that is for others.
    assert!(broadcaster.publish(now, 2, &message(3)));
    let sent = frames(&mut broadcaster, now);
    broadcaster.confirm(now, 1, digest(&sent[0]));
    assert!(broadcaster.publish(now, 1, &message(4)), "it takes them");
    // If all of them confirm nothing, as behind a radio that sends no broadcasts, there are none.
    let (mut broadcaster, mut now) = (self::broadcaster(2), START);
    for number in 0..3 {
        miss(&mut broadcaster, &mut now, number, &[1, 2]);
    }
    assert!((1..=2).all(|board| !broadcaster.publish(now, board, &message(9))));
    assert_eq!(broadcaster.poll_frame(now), None);
    // A new session is a new beginning.
    (1..=2).for_each(|board| broadcaster.remove(now, board));
    (1..=2).for_each(|board| broadcaster.add(board, 4_096));
    assert!(broadcaster.publish(now, 1, &message(9)));
}

#[test]
fn what_is_no_broadcast_goes_into_sessions() {
    let mut one = broadcaster(1);
    assert!(!one.publish(START, 1, &message(1)), "alone");
    let mut two = broadcaster(2);
    assert!(!two.publish(START, 3, &message(1)), "takes none");
    assert!(!two.publish(START, 1, &[1; 100]), "one frame");
    assert!(!two.publish(START, 1, &[]), "none");
    assert!(!two.publish(START, 1, &[1; 4_097]), "longer than it takes");
    two.add(2, 100);
    assert!(!two.publish(START, 1, &message(1)), "too long for the other");
    let mut few = Broadcaster::new(BroadcasterLimits { boards: 2, ..LIMITS });
    (1..=3).for_each(|board| few.add(board, 4_096));
    assert!(!few.publish(START, 3, &message(1)), "too many boards");
    // More frames than a code has.
    let mut broadcaster = Broadcaster::new(LIMITS);
    (1..=2).for_each(|board| broadcaster.add(board, usize::MAX));
    assert!(broadcaster.publish(START, 1, &[1; 20_000]));
    assert_eq!(broadcaster.poll_frame(START), None);
    assert_eq!(broadcaster.poll_missed(), Some(Missed { boards: vec![1], message: vec![1; 20_000] }));
}

#[test]
fn messages_wait_their_turn_within_bounds() {
    let mut broadcaster = broadcaster(2);
    for number in 0..LIMITS.queued as u8 {
        assert!(broadcaster.publish(START, 1, &message(number)));
    }
    assert!(!broadcaster.publish(START, 1, &message(99)), "too many wait");
    assert!(broadcaster.publish(START, 2, &message(0)), "one that waits already");
    let sent = frames(&mut broadcaster, START);
    assert_eq!(sent.len(), 5, "one at a time");
    broadcaster.confirm(START, 1, digest(&sent[0]));
    assert_eq!(broadcaster.poll_frame(START), None, "the other has not confirmed it");
    // It is gone, and nothing is kept for it.
    broadcaster.remove(START, 2);
    assert!(broadcaster.poll_frame(START).is_some());
    broadcaster.remove(START, 1);
    frames(&mut broadcaster, START);
    assert_eq!((broadcaster.timeout(), broadcaster.poll_missed()), (None, None));
}

proptest! {
    /// A message that is published to a board is confirmed by it, or given back for its session, once,
    /// whatever boards do.
    #[test]
    fn nothing_is_lost(steps in proptest::collection::vec((0u8..5, 1u16..5, 0u8..4), 1..200)) {
        let mut broadcaster = broadcaster(4);
        let (mut now, mut last) = (START, None);
        let (mut taken, mut confirmed) = (std::collections::BTreeMap::new(), std::collections::BTreeSet::new());
        let mut missed = Vec::new();
        for (step, board, number) in steps {
            match step {
                0 if !taken.contains_key(&(board, number)) => {
                    if broadcaster.publish(now, board, &message(number)) {
                        taken.insert((board, number), ());
                    }
                }
                1 => if let Some(frame) = broadcaster.poll_frame(now) {
                    let decoded = CodedFrame::decode(&frame).unwrap();
                    last = Some((decoded.digest, decoded.piece[0]));
                },
                2 => if let Some((digest, number)) = last {
                    broadcaster.confirm(now, board, digest);
                    confirmed.insert((board, number));
                },
                3 => { now += Duration::from_millis(700); broadcaster.handle_timeout(now) }
                _ => while let Some(one) = broadcaster.poll_missed() { missed.push(one) },
            }
        }
        for _ in 0..20 {
            frames(&mut broadcaster, now);
            now += LIMITS.confirm_within;
            broadcaster.handle_timeout(now);
            while let Some(one) = broadcaster.poll_missed() { missed.push(one) }
        }
        let given_back: Vec<_> =
            missed.iter().flat_map(|one| one.boards.iter().map(|board| (*board, one.message[0]))).collect();
        for pair in taken.keys() {
            prop_assert!(confirmed.contains(pair) || given_back.contains(pair), "{pair:?} is lost");
            prop_assert!(given_back.iter().filter(|back| *back == pair).count() <= 1);
        }
    }
}
