//! Frames: what pymavlink packed is read as it was meant, and nothing else is taken for a frame.

use proptest::prelude::*;
use quiver_mavlink::{Frame, MAX_FRAME_LEN, MavlinkError, STX_V2, Target, Version};

use crate::vectors::{any_frame, frame, frames, signed};

#[test]
fn frames_of_pymavlink_say_what_it_put_in() {
    for vector in frames() {
        let frame = Frame::parse(&vector.bytes).unwrap();
        assert_eq!(frame.version(), if vector.version == 1 { Version::V1 } else { Version::V2 });
        assert_eq!(frame.message_id(), vector.message_id, "{}", vector.name);
        assert_eq!(frame.sequence(), vector.sequence);
        assert_eq!((frame.system_id(), frame.component_id()), (42, 191));
        assert_eq!(frame.payload(), vector.payload, "{}", vector.name);
        assert_eq!(frame.checksum(), vector.checksum);
        assert!(frame.is_proven(), "{} {}", vector.version, vector.name);
        assert!(!frame.is_signed() && frame.signature().is_none());
        let (system, component) = vector.target;
        assert_eq!(frame.target(), Some(Target { system, component }), "{}", vector.name);
    }
}

#[test]
fn sizes_are_those_that_programs_count_with() {
    assert_eq!(frame("HEARTBEAT").len(), 21);
    assert_eq!(frame("ATTITUDE").len(), 40);
    assert_eq!(frame("COMMAND_LONG").len(), 44);
    let longest = [&[STX_V2, 255, 7, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0][..], &[7; 274]].concat();
    assert_eq!(Frame::parse(&longest).unwrap().bytes().len(), MAX_FRAME_LEN);
}

#[test]
fn a_signature_is_taken_off_with_the_check_sum_that_pymavlink_would_have_made() {
    for (plain, signed) in signed() {
        let frame = Frame::parse(&signed).unwrap();
        assert!(frame.is_signed() && frame.is_proven());
        assert_eq!(frame.signature().unwrap().len(), 13);
        assert_eq!(frame.without_signature(), plain);
        assert_eq!(Frame::parse(&plain).unwrap().without_signature(), plain);
    }
}

#[test]
fn a_frame_with_one_byte_changed_is_not_proven() {
    let good = frame("COMMAND_LONG");
    for at in 1..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(
            Frame::parse(&bad).is_ok_and(|frame| !frame.is_proven()) || Frame::parse(&bad).is_err(),
            "byte {at}"
        );
    }
}

#[test]
fn what_is_no_frame_is_refused_with_its_reason() {
    let good = frame("HEARTBEAT");
    assert_eq!(Frame::parse(&[]), Err(MavlinkError::Truncated { have: 0, need: 8 }));
    assert_eq!(Frame::parse(b"hello, world"), Err(MavlinkError::NotAFrame));
    for end in 1..good.len() {
        assert!(
            matches!(Frame::parse(&good[..end]), Err(MavlinkError::Truncated { have, .. }) if have == end)
        );
    }
    let longer = [&good[..], &[0xfd]].concat();
    assert_eq!(Frame::parse(&longer), Err(MavlinkError::TrailingBytes(1)));
    let mut unknown = good.clone();
    unknown[2] = 0x08;
    assert_eq!(Frame::parse(&unknown), Err(MavlinkError::UnknownFlags(8)));
    let mut nobody = good;
    nobody[5] = 0;
    assert_eq!(Frame::parse(&nobody), Err(MavlinkError::NoSystemId));
}

#[test]
fn a_message_of_an_unknown_dialect_has_no_target() {
    let mut other = frame("COMMAND_LONG");
    (other[7], other[8], other[9]) = (0x11, 0x22, 0x33);
    let frame = Frame::parse(&other).unwrap();
    assert_eq!((frame.message_id(), frame.target(), frame.is_proven()), (0x33_2211, None, false));
}

proptest! {
    #[test]
    fn every_frame_is_as_long_as_its_header_says(bytes in any_frame(), rest in prop::collection::vec(any::<u8>(), 0..9)) {
        let both = [&bytes[..], &rest].concat();
        let (frame, left) = Frame::split(&both).unwrap();
        prop_assert_eq!(frame.bytes(), &bytes);
        prop_assert_eq!(left, &rest);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok((frame, rest)) = Frame::split(&bytes) {
            prop_assert_eq!([frame.bytes(), rest].concat(), bytes);
        }
    }
}
