//! Coded broadcasts: any k of k + m frames make the message, whatever order they come in and whoever forges
//! others.

use std::time::Duration;

use proptest::prelude::*;
use quiver_link::LinkError;
use quiver_link::erasure::{
    Assembler, AssemblerLimits, CODED_OVERHEAD, CodedFrame, MAX_PIECES, code_broadcast, parity_for,
};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

const NOW: Duration = Duration::ZERO;
const SOURCE: u64 = 7;

fn message(len: usize, rng: &mut StdRng) -> Vec<u8> {
    (0..len).map(|_| rng.r#gen()).collect()
}

fn assembler() -> Assembler {
    Assembler::new(AssemblerLimits::new(65_535))
}

fn take(assembler: &mut Assembler, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    frames.iter().filter_map(|frame| assembler.handle_frame(NOW, SOURCE, frame, |_| true)).collect()
}

/// The same frame with another piece.
fn forged(frame: &[u8], rng: &mut StdRng) -> Vec<u8> {
    let (header, piece) = frame.split_at(CODED_OVERHEAD);
    let mut forged = header.to_vec();
    forged.extend(piece.iter().map(|byte| byte ^ rng.gen_range(1..=255)));
    forged
}

proptest! {
    #[test]
    fn any_k_frames_suffice_in_any_order_and_fewer_do_not(
        len in 1usize..3_000, mtu in 48usize..127, parity in 0usize..40, seed: u64,
    ) {
        let rng = &mut StdRng::seed_from_u64(seed);
        let message = message(len, rng);
        let mut frames = code_broadcast(&message, mtu, |_| parity).unwrap();
        let data = CodedFrame::decode(&frames[0]).unwrap().data();
        prop_assert_eq!(frames.len(), data + parity);
        prop_assert!(frames.iter().all(|frame| frame.len() <= mtu));
        frames.shuffle(rng);
        let mut assembler = assembler();
        let repeated: Vec<_> = frames[..data - 1].iter().flat_map(|frame| [frame.clone(), frame.clone()]).collect();
        prop_assert!(take(&mut assembler, &repeated).is_empty());
        prop_assert_eq!(take(&mut assembler, &frames[data - 1..]), [message]);
        prop_assert_eq!(assembler.counters().spoilt, 0);
    }

    #[test]
    fn one_forged_frame_costs_one_frame_more_and_k_attempts(len in 200usize..1_500, seed: u64) {
        let rng = &mut StdRng::seed_from_u64(seed);
        let message = message(len, rng);
        let mut frames = code_broadcast(&message, 125, |data| parity_for(data, 0.1)).unwrap();
        let data = CodedFrame::decode(&frames[0]).unwrap().data();
        frames.shuffle(rng);
        let at = rng.gen_range(0..data);
        frames[at] = forged(&frames[at], rng);
        let mut assembler = assembler();
        prop_assert_eq!(take(&mut assembler, &frames[..=data]), [message]);
        prop_assert!(assembler.counters().spoilt <= data as u64);
    }

    #[test]
    fn arbitrary_frames_are_refused_or_held_within_bounds(frames: Vec<Vec<u8>>) {
        let mut assembler = assembler();
        for frame in frames {
            let _ = assembler.handle_frame(NOW, SOURCE, &frame, |_| false);
        }
    }
}

#[test]
fn frames_are_those_of_the_vectors() {
    let vectors = include_str!("vectors/erasure.txt");
    for line in vectors.lines() {
        let mut words = line.split(' ');
        let message = hex::decode(words.next().unwrap()).unwrap();
        let mtu: usize = words.next().unwrap().parse().unwrap();
        let parity: usize = words.next().unwrap().parse().unwrap();
        let expected: Vec<Vec<u8>> = words.map(|word| hex::decode(word).unwrap()).collect();
        assert_eq!(code_broadcast(&message, mtu, |_| parity).unwrap(), expected);
        let data = expected.len() - parity;
        let last = &expected[expected.len() - data..];
        assert_eq!(take(&mut assembler(), last), [message], "parity first");
    }
    assert_eq!(vectors.lines().count(), 5);
}

#[test]
fn forged_frame_beside_the_genuine_one_of_its_index_is_left_out() {
    let rng = &mut StdRng::seed_from_u64(1);
    let message = message(700, rng);
    let frames = code_broadcast(&message, 125, |_| 5).unwrap();
    let mut assembler = assembler();
    let mut received: Vec<_> = frames[..4].iter().map(|frame| forged(frame, rng)).take(2).collect();
    received.extend_from_slice(&frames);
    assert_eq!(take(&mut assembler, &received), [message]);
    assert_eq!(assembler.counters().assembled, 1);
}

#[test]
fn jammed_message_is_given_up_within_its_attempts() {
    let rng = &mut StdRng::seed_from_u64(2);
    let message = message(700, rng);
    let frames = code_broadcast(&message, 125, |_| 12).unwrap();
    let limits = AssemblerLimits::new(1_000);
    let mut assembler = Assembler::new(limits);
    // A false one, with an index of its own, before every genuine one.
    let jammed: Vec<_> = (0..9).flat_map(|at| [forged(&frames[9 + at], rng), frames[at].clone()]).collect();
    assert!(take(&mut assembler, &jammed).is_empty());
    let counters = assembler.counters();
    assert_eq!(counters.given_up, 1);
    assert!(counters.spoilt <= limits.attempts.into(), "{counters:?}");
    // Later, as it is repeated, it comes through.
    let later = NOW + limits.keep;
    let got = frames.iter().find_map(|frame| assembler.handle_frame(later, SOURCE, frame, |_| true));
    assert_eq!(got, Some(message));
}

#[test]
fn message_that_the_caller_refuses_is_not_given() {
    let rng = &mut StdRng::seed_from_u64(3);
    let frames = code_broadcast(&message(300, rng), 125, |_| 0).unwrap();
    let mut assembler = assembler();
    for frame in &frames {
        assert_eq!(assembler.handle_frame(NOW, SOURCE, frame, |_| false), None);
    }
    assert_eq!(assembler.counters().spoilt, 1);
}

#[test]
fn flood_of_other_messages_leaves_the_one_that_has_pieces() {
    let rng = &mut StdRng::seed_from_u64(4);
    let message = message(700, rng);
    let frames = code_broadcast(&message, 125, |_| 0).unwrap();
    let mut assembler = assembler();
    assert!(take(&mut assembler, &frames[..2]).is_empty());
    for number in 0..100u8 {
        let false_message = [number; 300];
        let flood = code_broadcast(&false_message, 125, |_| 0).unwrap();
        assert!(take(&mut assembler, &flood[..1]).is_empty());
    }
    assert_eq!(take(&mut assembler, &frames[2..]), [message]);
    assert_eq!(assembler.counters().dropped, 97, "four at once");
}

#[test]
fn frames_that_disagree_in_length_belong_to_other_messages() {
    let rng = &mut StdRng::seed_from_u64(5);
    let message = message(700, rng);
    let frames = code_broadcast(&message, 125, |_| 0).unwrap();
    let frame = CodedFrame::decode(&frames[0]).unwrap();
    let others = [
        CodedFrame { len: 699, ..frame },
        CodedFrame { len: 100, ..frame },
        CodedFrame { len: 0, ..frame },
        CodedFrame { len: u16::MAX, ..frame },
        CodedFrame { piece: &frame.piece[..99], ..frame },
        CodedFrame { piece: &frame.piece[..1], ..frame },
        CodedFrame { piece: &[], ..frame },
        CodedFrame { index: 255, ..frame },
    ];
    let mut assembler = assembler();
    let mut frames: Vec<_> = others.iter().map(CodedFrame::encode).chain(frames.iter().cloned()).collect();
    frames.insert(0, Vec::new());
    assert_eq!(take(&mut assembler, &frames), [message]);
    assert!(assembler.counters().refused >= 6, "{:?}", assembler.counters());
    assert_eq!(assembler.counters().spoilt, 0);
}

#[test]
fn messages_without_room_are_refused() {
    assert_eq!(code_broadcast(&[], 125, |_| 1), Err(LinkError::InvalidCode));
    assert_eq!(code_broadcast(&[1], CODED_OVERHEAD, |_| 1), Err(LinkError::InvalidCode));
    let max = 128 * 10;
    assert_eq!(
        code_broadcast(&vec![1; max + 1], 18, |_| 1),
        Err(LinkError::MessageTooLong { len: max + 1, max })
    );
    assert_eq!(code_broadcast(&vec![1; max], 18, |_| usize::MAX).unwrap().len(), MAX_PIECES);
}
