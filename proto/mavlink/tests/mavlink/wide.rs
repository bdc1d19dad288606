//! System ids of 32 bits: frames with longer headers are read, checked, routed and signed as others are.

use std::time::Duration;

use proptest::prelude::*;
use quiver_mavlink::message::{Severity, status_text};
use quiver_mavlink::{
    Dropped, Filters, Frame, FrameReader, MavlinkError, Origin, Router, Signing, SigningKey, Target,
    TunnelReader, TunnelWriter, Version,
};

use crate::vectors::{WIDE_KEY, frame_from, seal, wide, wide_frame};

/// The clock when the vectors were signed: 1,000 times 10 µs after the begin of 2015.
const CLOCK: Option<Duration> = Some(Duration::from_millis(1_420_070_400_010));
const HEARTBEAT: (u32, u8) = (0, 50);
const COMMAND_LONG: (u32, u8) = (76, 152);

fn signing() -> Signing {
    Signing::new(SigningKey::from_hex(WIDE_KEY).unwrap(), 3)
}

fn heartbeat(system: u32) -> Vec<u8> {
    wide_frame(system, None, HEARTBEAT.0, HEARTBEAT.1, &[7, 0, 0, 0, 2, 3, 0x51, 4, 3])
}

/// A command of system 70,000 whose payload says that it is for this system, and its header perhaps another.
fn command(target: Option<u32>, in_payload: u8) -> Vec<u8> {
    let mut payload = [0; 33];
    (payload[30], payload[31], payload[32]) = (in_payload, 1, 9);
    wide_frame(70_000, target, COMMAND_LONG.0, COMMAND_LONG.1, &payload)
}

#[test]
fn frames_say_what_was_put_in() {
    for vector in wide() {
        for (bytes, is_signed) in [(&vector.bytes, false), (&vector.signed, true)] {
            let frame = Frame::parse(bytes).unwrap();
            let flags = vector.flags | u8::from(is_signed);
            assert_eq!((frame.version(), frame.incompatibility_flags()), (Version::V2, flags));
            assert_eq!((frame.system_id(), frame.component_id()), (vector.system, 11), "{}", vector.name);
            assert_eq!((frame.message_id(), frame.header_target()), (vector.message_id, vector.target));
            assert_eq!(frame.payload(), vector.payload, "{}", vector.name);
            assert_eq!(frame.is_wide(), vector.flags & 6 != 0);
            assert!(frame.is_proven() && !frame.is_damaged() && frame.is_signed() == is_signed);
            let header = bytes.len() - vector.payload.len() - 2 - if is_signed { 13 } else { 0 };
            assert_eq!(header, [10, 13, 14, 17][usize::from(vector.flags / 2)]);
        }
    }
}

#[test]
fn signatures_cover_the_longer_header_and_are_those_of_the_vectors() {
    for vector in wide() {
        let (plain, signed) = (Frame::parse(&vector.bytes).unwrap(), Frame::parse(&vector.signed).unwrap());
        assert_eq!(hex::encode(signing().sign(CLOCK, plain).unwrap()), hex::encode(&vector.signed));
        assert_eq!(signing().verify(CLOCK, signed), Ok(vector.bytes.clone()), "{}", vector.name);
        // Behind length and flags, which say where the signature stands.
        for at in 3..vector.signed.len() {
            let mut bad = vector.signed.clone();
            bad[at] ^= 1;
            let refused = Frame::parse(&bad).map(|frame| signing().verify(CLOCK, frame));
            let is_nobody = refused == Err(MavlinkError::NoSystemId);
            assert!(is_nobody || refused == Ok(Err(MavlinkError::WrongSignature)), "byte {at}");
        }
    }
}

#[test]
fn streams_of_signatures_are_told_apart_by_all_32_bits() {
    let (mut ours, mut theirs) = (signing(), signing());
    // The low bytes of all are the same.
    for system in [44, 300, 0x0001_002c, u32::MAX - 211] {
        assert_eq!(system & 0xff, 44);
        let signed = ours.sign(CLOCK, Frame::parse(&heartbeat(system)).unwrap()).unwrap();
        let frame = Frame::parse(&signed).unwrap();
        assert!(theirs.verify(CLOCK, frame).is_ok(), "{system}");
        assert_eq!(theirs.verify(CLOCK, frame), Err(MavlinkError::OldSignature), "{system}");
    }
}

#[test]
fn the_check_sum_covers_every_byte_of_the_longer_header() {
    for vector in wide() {
        for at in 1..vector.bytes.len() {
            let mut bad = vector.bytes.clone();
            bad[at] ^= 0x40;
            assert!(Frame::parse(&bad).map_or(true, |frame| !frame.is_proven()), "{} byte {at}", vector.name);
        }
    }
}

#[test]
fn a_frame_of_system_0_is_refused_however_long_its_id_is() {
    assert_eq!(Frame::parse(&heartbeat(0)), Err(MavlinkError::NoSystemId));
    assert!(Frame::parse(&heartbeat(0x0100)).is_ok());
}

#[test]
fn the_target_in_the_header_counts_and_not_what_the_payload_says() {
    let of = |frame: &[u8]| Frame::parse(frame).unwrap().target().unwrap();
    assert_eq!(of(&command(Some(70_001), 255)), Target { system: 70_001, component: 1 });
    assert_eq!(of(&command(Some(70_001), 7)), Target { system: 70_001, component: 1 });
    assert_eq!(of(&command(Some(0), 255)), Target { system: 0, component: 1 });
    assert_eq!(of(&command(None, 255)), Target { system: 255, component: 1 });
    // A dialect that is not known: nothing proves whose it is.
    let other = wide_frame(70_000, Some(7), 0x33_2211, 1, &[1]);
    assert_eq!(Frame::parse(&other).unwrap().target(), None);
}

#[test]
fn a_reader_finds_wide_frames_however_the_stream_is_cut() {
    let frames: Vec<_> = wide().into_iter().flat_map(|vector| [vector.bytes, vector.signed]).collect();
    let stream = frames.concat();
    for size in [1, 2, 7, 64, stream.len()] {
        let (mut reader, mut found) = (FrameReader::new(), Vec::new());
        for piece in stream.chunks(size) {
            reader.push(piece, |frame| found.push(frame.bytes().to_vec()));
        }
        assert_eq!(found, frames, "in pieces of {size}");
        assert_eq!(reader.counters().skipped_bytes, 0);
    }
}

#[test]
fn a_command_for_a_wide_system_goes_where_that_is_and_not_to_system_255() {
    let mut router = Router::new(Duration::ZERO, None);
    let [station, group, other] = [(); 3].map(|()| router.add(Filters::default(), None));
    router.grant(group, [70_001, 70_002]);
    let mut route = |from, bytes: &[u8]| router.route(Duration::ZERO, from, Frame::parse(bytes).unwrap());
    // System 255 is heard at the other: the number that stands in the payload of what is for a wide one.
    assert!(route(other, &frame_from("HEARTBEAT", 255, 190)).is_ok());
    assert_eq!(route(station, &command(Some(70_001), 255)), Ok(vec![group]));
    assert_eq!(route(station, &command(None, 255)), Ok(vec![other]));
    // Of which the low byte alone is a granted system's.
    assert_eq!(route(station, &command(Some(70_001 + 0x0100_0000), 255)), Err(Dropped::NoReceiver));
    assert_eq!(route(other, &command(Some(70_001), 255)), Ok(vec![group]));
}

#[test]
fn a_wide_source_is_known_by_all_32_bits() {
    let mut router = Router::new(Duration::ZERO, None);
    let [one, two, three] = [(); 3].map(|()| router.add(Filters::default(), None));
    let heard = |router: &mut Router, at, system| {
        router.route(Duration::ZERO, at, Frame::parse(&heartbeat(system)).unwrap())
    };
    assert_eq!(heard(&mut router, one, 0x0001_0007), Ok(vec![two, three]));
    assert_eq!(heard(&mut router, two, 0x0002_0007), Ok(vec![one, three]));
    assert_eq!((router.systems(one), router.systems(two)), (vec![0x0001_0007], vec![0x0002_0007]));
    assert!(router.hears(one, 0x0001_0007) && !router.hears(one, 7) && !router.hears(two, 0x0001_0007));
    let for_it = command(Some(0x0002_0007), 255);
    assert_eq!(router.route(Duration::ZERO, three, Frame::parse(&for_it).unwrap()), Ok(vec![two]));
}

#[test]
fn as_many_systems_as_a_table_grants_are_remembered_besides_what_programs_invent() {
    let mut router = Router::new(Duration::ZERO, None);
    let [group, station] = [(); 2].map(|()| router.add(Filters::default(), None));
    router.grant(group, 1_000..11_000);
    for system in 1_000..11_000 {
        let frame = heartbeat(system);
        let routed = router.route(Duration::from_micros(system.into()), group, Frame::parse(&frame).unwrap());
        assert_eq!(routed, Ok(vec![station]));
    }
    assert_eq!(router.systems(group).len(), 10_000);
    // A program that invents systems displaces its own.
    for system in 100_000..110_000 {
        let frame = heartbeat(system);
        router.route(Duration::from_millis(system.into()), station, Frame::parse(&frame).unwrap()).unwrap();
    }
    assert_eq!((router.systems(group).len(), router.systems(station).len()), (10_000, 4_096));
    assert!(router.hears(station, 109_999) && !router.hears(station, 100_000));
}

#[test]
fn messages_of_an_end_with_a_wide_id_come_from_it() {
    let origin = |system| Origin { system, component: 240, sequence: 5 };
    for system in [1, 255, 256, 70_000, u32::MAX] {
        let text = status_text(origin(system), Severity::Notice, "up");
        let frame = Frame::parse(&text).unwrap();
        assert!(frame.is_proven());
        assert_eq!((frame.system_id(), frame.is_wide(), frame.sequence()), (system, system > 255, 5));
        let datagram = [9; 300];
        let mut line = Vec::new();
        for _ in 0..2 {
            line.extend(TunnelWriter::new(origin(system)).write(&datagram).unwrap());
        }
        let (mut reader, mut datagrams) = (TunnelReader::new(), Vec::new());
        FrameReader::new().push(&line, |frame| datagrams.extend(reader.read(frame)));
        assert_eq!(datagrams, [datagram.to_vec(), datagram.to_vec()]);
    }
}

#[test]
fn parts_of_tunnels_are_told_apart_by_all_32_bits() {
    let of = |system| {
        let line = TunnelWriter::new(Origin { system, component: 1, sequence: 0 })
            .write(&[system as u8; 200])
            .unwrap();
        let mut frames = Vec::new();
        FrameReader::new().push(&line, |frame| frames.push(frame.bytes().to_vec()));
        frames
    };
    // Both have the low byte 44.
    let (one, other) = (of(300), of(0x0001_012c));
    let mut reader = TunnelReader::new();
    let mut read = |frame: &[u8]| reader.read(Frame::parse(frame).unwrap());
    assert_eq!((read(&one[0]), read(&other[0])), (None, None));
    assert_eq!(read(&one[1]), Some(vec![44; 200]));
    assert_eq!(read(&other[1]), Some(vec![44; 200]));
}

/// A frame with a flag that nobody knows, in which another frame is; the check sum is right.
fn around(flags: u8, inner: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xfd, inner.len() as u8, flags, 0, 1, 255];
    frame.extend(vec![1; if flags & 2 == 0 { 0 } else { 3 }]);
    // LOG_DATA.
    frame.extend([190, 120, 0, 0]);
    frame.extend(vec![0; if flags & 4 == 0 { 0 } else { 4 }]);
    frame.extend_from_slice(inner);
    frame.extend([0, 0]);
    seal(&mut frame, 134);
    frame.extend(vec![7; if flags & 1 == 0 { 0 } else { 13 }]);
    frame
}

#[test]
fn an_unknown_flag_does_not_open_a_frame_whatever_follows() {
    let inner = command(Some(70_001), 255);
    let nested = around(0x20, &inner);
    for flags in 8..=255_u8 {
        for inner in [&inner, &nested] {
            let outer = around(flags, inner);
            // Noise, which no frame begins with, follows: the check sum says where the frame ends.
            let follows = [&b"noise"[..], &heartbeat(70_000), &[]];
            for (index, follows) in follows.iter().enumerate() {
                let stream = [&outer[..], follows, &vec![0; 300]].concat();
                let (mut reader, mut found) = (FrameReader::new(), Vec::new());
                for piece in stream.chunks(11) {
                    reader.push(piece, |frame| found.push(frame.bytes().to_vec()));
                }
                assert!(!found.contains(inner), "flags {flags:#x}, {index}");
                assert_eq!(reader.counters().unknown_flags, 1, "flags {flags:#x}, {index}");
            }
        }
    }
}

#[test]
fn a_wide_frame_that_is_cut_hides_none_behind_it() {
    let whole = command(Some(70_001), 255);
    let good = [heartbeat(70_000), heartbeat(70_001)];
    // A frame that lacks as many bytes as the next one has seems whole.
    for end in (1..whole.len()).filter(|end| whole.len() - end != good[0].len()) {
        let stream = [&whole[..end], &good.concat(), &vec![0; 300]].concat();
        let mut found = Vec::new();
        FrameReader::new().push(&stream, |frame| found.push(frame.bytes().to_vec()));
        assert!(good.iter().all(|frame| found.contains(frame)), "cut behind {end} bytes");
        // The cut frame ends a datagram: it does not go on in the next.
        let (mut reader, mut found) = (FrameReader::new(), Vec::new());
        reader.push_datagram(&whole[..end], |frame| found.push(frame.bytes().to_vec()));
        reader.push_datagram(&good[0], |frame| found.push(frame.bytes().to_vec()));
        assert_eq!(found, [good[0].clone()], "cut behind {end} bytes");
    }
}

proptest! {
    #[test]
    fn a_wide_frame_is_read_back(
        system in 1..=u32::MAX, target in any::<Option<u32>>(), id in 0..=0xff_ffff_u32,
        payload in prop::collection::vec(any::<u8>(), 0..=255),
    ) {
        let bytes = wide_frame(system, target, id, 0, &payload);
        let frame = Frame::parse(&bytes).unwrap();
        prop_assert_eq!((frame.system_id(), frame.header_target()), (system, target));
        prop_assert_eq!((frame.message_id(), frame.payload()), (id, &payload[..]));
        let signed = signing().sign(CLOCK, frame).unwrap();
        let verified = signing().verify(CLOCK, Frame::parse(&signed).unwrap()).unwrap();
        prop_assert_eq!(verified, bytes);
    }
}
