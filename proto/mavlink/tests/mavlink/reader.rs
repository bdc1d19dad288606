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
                checked <= 32 * 100_000 + 5_000,
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

/// A frame whose payload is frames: of a log that is downloaded, or a tunnel.
fn around(inner: &[u8], flags: u8, system: u8) -> Vec<u8> {
    let longer: usize =
        [(2, 3), (4, 4)].iter().filter(|(flag, _)| flags & flag != 0).map(|(_, more)| more).sum();
    let mut frame = vec![0xfd, inner.len() as u8, flags, 0, 1, system, 1, 0x78, 0, 0];
    frame.extend(vec![0; longer]);
    frame.extend_from_slice(inner);
    // The check sum of LOG_DATA is another.
    frame.extend([1, 2]);
    frame.extend(vec![7; if flags & 1 == 0 { 0 } else { 13 }]);
    frame
}

#[test]
fn a_frame_that_is_not_taken_is_dropped_with_all_that_is_in_it() {
    let inner = [frame("COMMAND_LONG"), frame("HEARTBEAT")].concat();
    let rejected = [(8, 1), (0x80, 1), (9, 1), (0x0a, 1), (0x0c, 1), (0x4e, 1), (0xff, 1), (0, 0), (1, 0)];
    for (flags, system) in rejected {
        let outer = around(&inner, flags, system);
        let stream = [&frame("ATTITUDE")[..], &outer, &frame("HEARTBEAT"), &outer].concat();
        for size in [1, 7, 50, stream.len()] {
            let mut reader = FrameReader::new();
            let found: Vec<_> = stream.chunks(size).flat_map(|piece| read(&mut reader, piece)).collect();
            assert_eq!(
                found,
                [frame("ATTITUDE"), frame("HEARTBEAT")],
                "flags {flags:#x}, in pieces of {size}"
            );
            let counters = reader.counters();
            assert_eq!(counters.unknown_flags, if system == 0 { 0 } else { 2 });
            assert_eq!(counters.no_system_id, if system == 0 { 2 } else { 0 });
            assert_eq!(counters.skipped_bytes as usize, 2 * outer.len());
        }
        let mut found = Vec::new();
        FrameReader::new().push_datagram(&outer, |frame| found.push(frame.bytes().to_vec()));
        assert_eq!(found, [[0; 0]; 0], "flags {flags:#x}");
    }
}

#[test]
fn a_frame_of_no_system_is_dropped_as_a_whole_in_noise_too_if_its_check_sum_proves_it() {
    let inner = frame("COMMAND_LONG");
    let mut outer = around(&inner, 0, 0);
    crate::vectors::seal(&mut outer, 134);
    let mut reader = FrameReader::new();
    let found = read(&mut reader, &[&outer[..], b"noise", &vec![0; 300]].concat());
    assert_eq!((found, reader.counters().no_system_id), (vec![], 1));
}

#[test]
fn a_damaged_frame_that_seems_whole_is_not_searched() {
    let outer = around(&frame("COMMAND_LONG"), 0, 1);
    let stream = [&outer[..], &frame("ATTITUDE")].concat();
    assert_eq!(read(&mut FrameReader::new(), &stream), [outer, frame("ATTITUDE")]);
}

#[test]
fn a_damaged_header_swallows_no_frame_behind_it() {
    let good = [frame("HEARTBEAT"), frame("ATTITUDE")];
    for flag in 1..=255 {
        let mut damaged = frame("COMMAND_LONG");
        damaged[1] = damaged[1].wrapping_add(11);
        damaged[2] = flag;
        let stream = [&damaged[..], &good.concat(), &vec![0; 300]].concat();
        assert_eq!(read(&mut FrameReader::new(), &stream), good, "flags {flag:#x}");
    }
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
