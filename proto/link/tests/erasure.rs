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
    fn arbitrary_frames_are_refused(frames: Vec<Vec<u8>>) {
        let mut assembler = assembler();
        for frame in frames {
            let _ = assembler.handle_frame(NOW, SOURCE, &frame, |_| false);
        }
    }

    #[test]
    fn what_is_held_is_bounded_whatever_comes(
        frames in proptest::collection::vec((0u64..12, 0u8..4, 1u16..2_000, 0u8..255, 1usize..300), 1..400),
    ) {
        let limits = AssemblerLimits { source_bytes: 1_500, ..AssemblerLimits::new(1_000) };
        let mut assembler = Assembler::new(limits);
        for (source, digest, len, index, piece_len) in frames {
            let piece = vec![index ^ digest; piece_len];
            let frame = CodedFrame { digest: [digest; 4], len, index, piece: &piece }.encode();
            prop_assert_eq!(assembler.handle_frame(NOW, source, &frame, |_| true), None);
            prop_assert!(assembler.held_bytes() <= limits.sources * limits.source_bytes);
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
    assert_eq!(assembler.counters().dropped, 93, "eight at once");
}

/// First frames of false messages, all different.
fn false_frames(rng: &mut StdRng) -> impl FnMut() -> Vec<u8> {
    move || code_broadcast(&message(300, rng), 125, |_| 0).unwrap().swap_remove(0)
}

#[test]
fn prepared_flood_under_the_same_address_needs_as_many_frames_as_there_are_places() {
    for (between, through) in [(3, true), (8, false)] {
        let rng = &mut StdRng::seed_from_u64(6);
        let message = message(700, rng);
        let frames = code_broadcast(&message, 125, |_| 0).unwrap();
        let mut false_frame = false_frames(rng);
        let mut assembler = assembler();
        // Seven messages with two pieces each, before the genuine one.
        for number in 0..7u8 {
            let prepared = code_broadcast(&[number; 700], 125, |_| 0).unwrap();
            assert!(take(&mut assembler, &prepared[..2]).is_empty());
        }
        let jammed: Vec<_> = frames
            .iter()
            .flat_map(|frame| [vec![frame.clone()], (0..between).map(|_| false_frame()).collect()].concat())
            .collect();
        let got = take(&mut assembler, &jammed);
        assert_eq!(got.contains(&message), through, "{between} false frames for each genuine one");
    }
}

#[test]
fn addresses_of_a_flood_displace_no_source_that_was_accepted() {
    let rng = &mut StdRng::seed_from_u64(7);
    let (first, second) = (message(700, rng), message(700, rng));
    let [first_frames, frames] =
        [&first, &second].map(|message| code_broadcast(message, 125, |_| 0).unwrap());
    let mut false_frame = false_frames(rng);
    let mut assembler = assembler();
    assert_eq!(take(&mut assembler, &first_frames), [first]);
    let mut got = Vec::new();
    for (frame, flood) in frames.iter().zip(0u64..) {
        got.extend(take(&mut assembler, std::slice::from_ref(frame)));
        for address in 0..1000 {
            let _ = assembler.handle_frame(NOW, 1000 * (flood + 1) + address, &false_frame(), |_| true);
        }
    }
    assert_eq!(got, [second]);
}

#[test]
fn addresses_of_a_flood_displace_a_new_source_only_if_they_are_many_for_each_frame() {
    for (between, through) in [(7, true), (8, false)] {
        let rng = &mut StdRng::seed_from_u64(8);
        let message = message(700, rng);
        let frames = code_broadcast(&message, 125, |_| 0).unwrap();
        let mut false_frame = false_frames(rng);
        let mut assembler = assembler();
        let mut address = 1000;
        let mut got = Vec::new();
        for frame in &frames {
            got.extend(take(&mut assembler, std::slice::from_ref(frame)));
            for _ in 0..between {
                address += 1;
                let _ = assembler.handle_frame(NOW, address, &false_frame(), |_| true);
            }
        }
        assert_eq!(got.contains(&message), through, "{between} addresses for each genuine frame");
    }
}

#[test]
fn false_pieces_under_another_address_spoil_nothing() {
    let rng = &mut StdRng::seed_from_u64(9);
    let message = message(700, rng);
    let frames = code_broadcast(&message, 125, |_| 0).unwrap();
    let mut assembler = assembler();
    let mut got = Vec::new();
    for frame in &frames {
        let _ = assembler.handle_frame(NOW, SOURCE + 1, &forged(frame, rng), |_| true);
        got.extend(take(&mut assembler, std::slice::from_ref(frame)));
    }
    assert_eq!(got, [message]);
    assert_eq!(assembler.counters().spoilt, 1, "the jammer's own");
}

#[test]
fn retries_are_bounded_by_their_work_and_come_back_with_time() {
    let rng = &mut StdRng::seed_from_u64(10);
    let limits = AssemblerLimits { retry_work: 100_000, ..AssemblerLimits::new(4_000) };
    let mut assembler = Assembler::new(limits);
    let mut false_message = |assembler: &mut Assembler, at| {
        let frames = code_broadcast(&message(3_000, rng), 125, |_| 40).unwrap();
        for frame in &frames[20..] {
            let _ = assembler.handle_frame(at, SOURCE, &forged(frame, rng), |_| true);
        }
        assembler.counters()
    };
    let first = false_message(&mut assembler, NOW);
    assert!(first.skipped > 0 && first.spoilt < 5, "{first:?}");
    // New content is decoded once, however little is left.
    let second = false_message(&mut assembler, NOW);
    assert_eq!(second.spoilt, first.spoilt + 1);
    let later = false_message(&mut assembler, NOW + Duration::from_secs(2));
    assert_eq!(later.spoilt, second.spoilt + first.spoilt);
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
