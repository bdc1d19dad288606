//! Local signing: pymavlink's signatures verify, ours are the same bytes, and nothing else passes.

use std::time::Duration;

use proptest::prelude::*;
use quiver_mavlink::{Frame, MavlinkError, Signing, SigningKey};

use crate::vectors::{KEY, TIMESTAMP, frame, frames, signed};

/// The clock at a timestamp.
fn clock(timestamp: u64) -> Option<Duration> {
    Some(Duration::from_secs(1_420_070_400) + Duration::from_micros(timestamp * 10))
}

fn signing() -> Signing {
    Signing::new(SigningKey::from_hex(KEY).unwrap(), 3)
}

#[test]
fn signatures_are_those_of_pymavlink() {
    for (plain, signed) in signed() {
        let ours = signing().sign(clock(TIMESTAMP), Frame::parse(&plain).unwrap()).unwrap();
        assert_eq!(hex::encode(ours), hex::encode(&signed));
        // One that is signed already is signed anew.
        assert_eq!(signing().sign(clock(TIMESTAMP), Frame::parse(&signed).unwrap()), Ok(signed));
    }
}

#[test]
fn signatures_of_pymavlink_verify_and_come_off() {
    for (plain, signed) in signed() {
        assert_eq!(signing().verify(clock(TIMESTAMP), Frame::parse(&signed).unwrap()), Ok(plain));
    }
}

#[test]
fn a_frame_is_taken_once() {
    let mut signing = signing();
    let (_, signed) = signed().remove(0);
    let frame = Frame::parse(&signed).unwrap();
    assert!(signing.verify(clock(TIMESTAMP), frame).is_ok());
    assert_eq!(signing.verify(clock(TIMESTAMP), frame), Err(MavlinkError::OldSignature));
}

#[test]
fn a_stream_that_begins_more_than_a_minute_ago_is_not_taken() {
    let (_, signed) = signed().remove(0);
    let frame = Frame::parse(&signed).unwrap();
    let minute = 6_000_000;
    assert!(signing().verify(clock(TIMESTAMP + minute), frame).is_ok());
    assert_eq!(signing().verify(clock(TIMESTAMP + minute + 1), frame), Err(MavlinkError::OldSignature));
}

#[test]
fn another_key_and_any_changed_byte_are_refused() {
    let (_, signed) = signed().remove(4);
    let other = SigningKey::from_hex(&KEY.replace('9', "8")).unwrap();
    let refused = Signing::new(other, 3).verify(clock(TIMESTAMP), Frame::parse(&signed).unwrap());
    assert_eq!(refused, Err(MavlinkError::WrongSignature));
    // Behind length and flags, which say where the signature stands.
    for at in 3..signed.len() {
        let mut bad = signed.clone();
        bad[at] ^= 1;
        let refused = Frame::parse(&bad).map(|frame| signing().verify(clock(TIMESTAMP), frame));
        assert_eq!(refused, Ok(Err(MavlinkError::WrongSignature)), "byte {at}");
    }
}

#[test]
fn without_a_signature_only_a_radios_status_passes() {
    for vector in frames() {
        let verified = signing().verify(clock(TIMESTAMP), Frame::parse(&vector.bytes).unwrap());
        match vector.name {
            "RADIO_STATUS" => assert_eq!(verified, Ok(vector.bytes)),
            _ => assert_eq!(verified, Err(MavlinkError::Unsigned), "{}", vector.name),
        }
    }
}

#[test]
fn timestamps_grow_even_if_the_clock_goes_back() {
    let mut ours = signing();
    let heartbeat = frame("HEARTBEAT");
    let heartbeat = Frame::parse(&heartbeat).unwrap();
    let mut theirs = signing();
    for at in [TIMESTAMP, TIMESTAMP, TIMESTAMP - 50_000, 0] {
        let signed = ours.sign(clock(at), heartbeat).unwrap();
        assert!(theirs.verify(clock(TIMESTAMP), Frame::parse(&signed).unwrap()).is_ok(), "clock at {at}");
    }
}

#[test]
fn while_the_clock_is_not_set_nothing_recorded_is_new_and_nothing_is_signed() {
    let mut ours = signing();
    for (plain, recorded) in signed() {
        assert_eq!(ours.verify(None, Frame::parse(&recorded).unwrap()), Err(MavlinkError::ClockNotSet));
        assert_eq!(ours.sign(None, Frame::parse(&plain).unwrap()), Err(MavlinkError::ClockNotSet));
    }
    // Nor is anything of it new once the clock is set, years after it was recorded.
    let years = 3 * 365 * 86_400 * 100_000;
    for (_, recorded) in signed() {
        let verified = ours.verify(clock(TIMESTAMP + years), Frame::parse(&recorded).unwrap());
        assert_eq!(verified, Err(MavlinkError::OldSignature));
    }
    // Frames that another key signed are told from these, and a radio's status needs no clock.
    let mut strangers = Signing::new(SigningKey::from_hex(&"ab".repeat(32)).unwrap(), 1);
    let (_, recorded) = signed().remove(0);
    let refused = strangers.verify(None, Frame::parse(&recorded).unwrap());
    assert_eq!(refused, Err(MavlinkError::WrongSignature));
    let radio = frame("RADIO_STATUS");
    assert_eq!(ours.verify(None, Frame::parse(&radio).unwrap()), Ok(radio));
}

#[test]
fn a_clock_that_is_behind_catches_up_with_what_it_receives() {
    let (mut autopilot, minute) = (signing(), 6_000_000);
    let (_, signed) = signed().remove(0);
    assert!(autopilot.verify(clock(TIMESTAMP - 10 * minute), Frame::parse(&signed).unwrap()).is_ok());
    let heartbeat = frame("HEARTBEAT");
    let answer = autopilot.sign(clock(TIMESTAMP - 10 * minute), Frame::parse(&heartbeat).unwrap()).unwrap();
    assert!(signing().verify(clock(TIMESTAMP), Frame::parse(&answer).unwrap()).is_ok());
}

#[test]
fn mavlink_1_frames_are_not_signed() {
    let plain = &frames()[0].bytes;
    assert_eq!(signing().sign(clock(TIMESTAMP), Frame::parse(plain).unwrap()), Ok(plain.clone()));
}

#[test]
fn keys_are_64_hexadecimal_digits_and_shown_nowhere() {
    for bad in ["", &KEY[1..], &format!("{KEY}0"), &KEY.replace('9', "g"), &KEY.replace("9f", "é")] {
        assert_eq!(SigningKey::from_hex(bad).err(), Some(MavlinkError::SigningKey), "{bad}");
    }
    assert!(SigningKey::from_hex(&format!(" {}\n", KEY.to_uppercase())).is_ok());
    assert!(!format!("{:?}", signing()).contains("9f0c"));
    assert!(!format!("{:?}", signing()).contains("159"));
}

proptest! {
    #[test]
    fn what_is_signed_verifies_and_comes_out_as_it_was(bytes in crate::vectors::any_frame()) {
        let frame = Frame::parse(&bytes).unwrap();
        prop_assume!(frame.version() == quiver_mavlink::Version::V2);
        let signed = signing().sign(clock(TIMESTAMP), frame).unwrap();
        let verified = signing().verify(clock(TIMESTAMP), Frame::parse(&signed).unwrap()).unwrap();
        prop_assert_eq!(verified, frame.without_signature());
    }
}
