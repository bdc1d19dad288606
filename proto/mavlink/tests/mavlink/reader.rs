//! Streams: frames come out whole and in order however the bytes are cut, and again behind damage.

use proptest::prelude::*;
use quiver_mavlink::{Frame, FrameReader};

use crate::vectors::{any_frame, frame, frames};

fn read(reader: &mut FrameReader, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    reader.push(bytes, |frame| found.push(frame.bytes().to_vec()));
    found
}

fn all_frames() -> Vec<Vec<u8>> {
    frames().into_iter().map(|vector| vector.bytes).collect()
}

#[test]
fn frames_come_out_however_the_stream_is_cut() {
    let frames = all_frames();
    let stream = frames.concat();
    for size in [1, 2, 7, 64, 1_000, stream.len()] {
        let mut reader = FrameReader::new();
        let found: Vec<_> = stream.chunks(size).flat_map(|chunk| read(&mut reader, chunk)).collect();
        assert_eq!(found, frames, "in pieces of {size}");
        assert_eq!(reader.counters().skipped_bytes, 0);
    }
}

#[test]
fn text_of_a_boot_loader_between_frames_is_skipped() {
    let stream = [&b"ArduPilot V4.5\r\n"[..], &frame("HEARTBEAT"), b"ok\n", &frame("ATTITUDE")].concat();
    let mut reader = FrameReader::new();
    assert_eq!(read(&mut reader, &stream), [frame("HEARTBEAT"), frame("ATTITUDE")]);
    assert_eq!((reader.counters().frames, reader.counters().skipped_bytes), (2, 19));
}

#[test]
fn a_damaged_length_does_not_swallow_the_frames_behind_it() {
    let mut damaged = frame("HEARTBEAT");
    damaged[1] = 60;
    let good = all_frames();
    let stream = [&damaged[..], &good.concat()].concat();
    assert_eq!(read(&mut FrameReader::new(), &stream), good);
}

#[test]
fn bytes_that_begin_a_frame_everywhere_take_bounded_work_and_the_next_frames_are_found() {
    // Long frames of MAVLink 1 and 2 whose check sums are wrong, begun again at every few bytes.
    let patterns: [&[u8]; 4] =
        [&[0xfe], &[0xfe, 255, 0, 1, 1, 253], &[0xfd, 255, 0, 0, 1, 1, 1, 0, 0, 0], &[0xfd, 255, 0, 1, 0]];
    for pattern in patterns {
        for size in [1, 300, 100_000] {
            let hostile: Vec<u8> = pattern.iter().copied().cycle().take(100_000).collect();
            let mut reader = FrameReader::new();
            for piece in hostile.chunks(size) {
                read(&mut reader, piece);
            }
            let checked = reader.counters().checked_bytes;
            assert!(
                checked <= 16 * 100_000 + 5_000,
                "{checked} bytes for {pattern:02x?} in pieces of {size}"
            );
            let good = [vec![0; 600], frame("HEARTBEAT"), frame("ATTITUDE"), vec![0; 300]].concat();
            let found = read(&mut reader, &good);
            assert!(
                found.contains(&frame("HEARTBEAT")) && found.contains(&frame("ATTITUDE")),
                "{pattern:02x?}"
            );
        }
    }
}

#[test]
fn a_start_byte_within_noise_hides_no_frame() {
    let good = [frame("HEARTBEAT"), frame("COMMAND_LONG")];
    for noise in [&[0xfd][..], &[0xfe], &[0xfd, 0], &[0xfe, 3, 0xfd], &[0xfd; 20], &[0xfe; 20]] {
        let stream = [noise, &good.concat(), &vec![0; 300]].concat();
        let found = read(&mut FrameReader::new(), &stream);
        assert!(good.iter().all(|frame| found.contains(frame)), "behind {noise:02x?}");
    }
}

#[test]
fn a_message_of_an_unknown_dialect_passes_between_others() {
    let mut other = frame("COMMAND_LONG");
    (other[7], other[8], other[9]) = (0x11, 0x22, 0x33);
    let stream = [frame("HEARTBEAT"), other.clone(), frame("ATTITUDE")].concat();
    assert_eq!(read(&mut FrameReader::new(), &stream), [frame("HEARTBEAT"), other, frame("ATTITUDE")]);
}

#[test]
fn frames_with_unknown_flags_are_counted_and_dropped() {
    let mut unknown = frame("HEARTBEAT");
    unknown[2] = 0x02;
    let mut reader = FrameReader::new();
    assert_eq!(read(&mut reader, &[unknown, frame("ATTITUDE")].concat()), [frame("ATTITUDE")]);
    assert_eq!(reader.counters().unknown_flags, 1);
}

#[test]
fn a_frame_cut_at_a_datagrams_end_does_not_go_on_in_the_next() {
    let (first, second) = (frame("HEARTBEAT"), frame("ATTITUDE"));
    let mut reader = FrameReader::new();
    let mut found = Vec::new();
    reader.push_datagram(&[&first[..], &second[..9]].concat(), |frame| found.push(frame.bytes().to_vec()));
    reader.push_datagram(&second[9..], |frame| found.push(frame.bytes().to_vec()));
    assert_eq!(found, [first]);
    assert_eq!(reader.counters().skipped_bytes, second.len() as u64);
}

proptest! {
    #[test]
    fn frames_of_any_dialect_pass_in_order(
        frames in prop::collection::vec(any_frame(), 0..6),
        cuts in prop::collection::vec(1..400_usize, 1..40),
    ) {
        let stream = frames.concat();
        let (mut reader, mut found, mut left) = (FrameReader::new(), Vec::new(), &stream[..]);
        for size in cuts.iter().cycle() {
            if left.is_empty() {
                break;
            }
            let (now, later) = left.split_at((*size).min(left.len()));
            found.extend(read(&mut reader, now));
            left = later;
        }
        prop_assert_eq!(found, frames);
    }

    #[test]
    fn no_byte_is_lost_or_doubled(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..30)) {
        let mut reader = FrameReader::new();
        let mut taken = 0;
        for chunk in &chunks {
            reader.push(chunk, |frame: Frame<'_>| taken += frame.bytes().len());
        }
        reader.reset();
        let all: usize = chunks.iter().map(Vec::len).sum();
        prop_assert_eq!(taken + reader.counters().skipped_bytes as usize, all);
    }
}
