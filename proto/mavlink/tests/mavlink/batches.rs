//! Batches: frames travel without what the receiver knows, and come out bit for bit.

use proptest::prelude::*;
use quiver_mavlink::{Frame, FrameBatch, MavlinkError, batch::decode, batch::encoded_len};

use crate::vectors::{any_frame, frame, frames, signed};

/// The frame as if it came from another system.
fn of_system(frame: &[u8], system: u32) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if frame[0] == 0xfe {
        frame[3] = system as u8;
    } else if frame[2] & 2 == 0 {
        frame[5] = system as u8;
    } else {
        frame[5..9].copy_from_slice(&system.to_le_bytes());
    }
    frame
}

fn batch_of(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut batch = FrameBatch::new();
    for bytes in frames {
        assert!(batch.push(Frame::parse(bytes).unwrap(), usize::MAX));
    }
    batch.take()
}

#[test]
fn frames_of_pymavlink_come_out_as_they_went_in() {
    let all: Vec<_> = frames().into_iter().map(|vector| vector.bytes).collect();
    for bytes in &all {
        assert_eq!(decode(&batch_of(std::slice::from_ref(bytes)), 42).unwrap(), std::slice::from_ref(bytes));
    }
    assert_eq!(decode(&batch_of(&all), 42).unwrap(), all);
    let signed: Vec<_> = signed().into_iter().map(|(_, signed)| signed).collect();
    assert_eq!(decode(&batch_of(&signed), 42).unwrap(), signed);
}

#[test]
fn a_heartbeat_saves_six_bytes_and_says_what_it_is() {
    let heartbeat = frame("HEARTBEAT");
    // Kind, sequence, component, message id, payload, check sum.
    let encoded = batch_of(std::slice::from_ref(&heartbeat));
    assert_eq!(hex::encode(&encoded), format!("0000bf00{}7f0a", "070000000203510403"));
    assert_eq!(encoded.len(), heartbeat.len() - 6);
    // Two: the first says that another follows, and how long its payload is.
    let encoded = batch_of(&[heartbeat.clone(), heartbeat]);
    assert_eq!(hex::encode(encoded), format!("400900bf00{0}7f0a0000bf00{0}7f0a", "070000000203510403"));
}

#[test]
fn every_frame_saves_three_bytes_at_least_but_those_of_mavlink_1_two() {
    for vector in frames() {
        let frame = Frame::parse(&vector.bytes).unwrap();
        let saved = vector.bytes.len() - encoded_len(frame);
        assert_eq!(encoded_len(frame), batch_of(std::slice::from_ref(&vector.bytes)).len());
        let expected = if vector.version == 1 {
            2
        } else if vector.message_id > 255 {
            5
        } else {
            6
        };
        assert_eq!(saved, expected, "{}", vector.name);
    }
}

#[test]
fn a_batch_takes_no_frame_that_makes_it_too_long() {
    let heartbeat = frame("HEARTBEAT");
    let heartbeat = Frame::parse(&heartbeat).unwrap();
    let mut batch = FrameBatch::new();
    assert!(!batch.push(heartbeat, 14));
    assert!(batch.is_empty() && batch.bytes().is_empty());
    assert!(batch.push(heartbeat, 15));
    // The first needs a byte for its length when another follows.
    assert!(!batch.push(heartbeat, 30));
    assert!(batch.push(heartbeat, 31));
    assert_eq!((batch.len(), batch.bytes().len()), (2, 31));
}

#[test]
fn the_system_id_is_the_one_granted_to_the_sender() {
    let encoded = batch_of(&[frame("HEARTBEAT")]);
    let frames = decode(&encoded, 7).unwrap();
    let other = Frame::parse(&frames[0]).unwrap();
    assert_eq!(other.system_id(), 7);
    // The check sum covers the system id: whoever speaks as another is found out at the receiver as well.
    assert!(!other.is_proven());
    assert_eq!(decode(&encoded, 0), Err(MavlinkError::NoSystemId));
}

#[test]
fn what_is_no_batch_is_refused_whole() {
    let good = batch_of(&[frame("HEARTBEAT"), frame("ATTITUDE")]);
    for bad in [
        vec![],
        good[..good.len() - 40].to_vec(),
        // Bits of the kind that MAVLink 1 has not: wide ids, signed.
        [&[0x90], &good[1..]].concat(),
        [&[0xa0], &good[1..]].concat(),
        [&[0xc1], &good[1..]].concat(),
        // Compatibility flags that are 0; a message id with a zero at its end.
        vec![0x02, 0, 1, 1, 0, 9, 9, 9],
        vec![0x04, 1, 1, 5, 0, 9, 9, 9],
        // More bytes than a payload can have.
        [&[0, 1, 1, 0][..], &[5; 258]].concat(),
    ] {
        assert_eq!(decode(&bad, 1), Err(MavlinkError::NotABatch), "{bad:02x?}");
    }
}

#[test]
fn a_wide_source_does_not_travel_and_a_wide_target_does() {
    for vector in crate::vectors::wide() {
        let frame = Frame::parse(&vector.bytes).unwrap();
        let one = batch_of(std::slice::from_ref(&vector.bytes));
        assert_eq!(one.len(), encoded_len(frame), "{}", vector.name);
        // As many bytes as the frame takes with ids of 8 bits, and four for a target that is in the header.
        let target = if vector.target.is_some() { 4 } else { 0 };
        assert_eq!(one.len(), 1 + 2 + 1 + target + vector.payload.len() + 2, "{}", vector.name);
        assert_eq!(decode(&one, vector.system).unwrap(), std::slice::from_ref(&vector.bytes));
        let signed = batch_of(std::slice::from_ref(&vector.signed));
        assert_eq!(decode(&signed, vector.system).unwrap(), std::slice::from_ref(&vector.signed));
    }
}

#[test]
fn a_frame_without_room_for_its_senders_id_is_refused() {
    let encoded = batch_of(&[frame("HEARTBEAT")]);
    assert_eq!(decode(&encoded, 256), Err(MavlinkError::NotABatch));
    let version_1 = batch_of(&[frames()[0].bytes.clone()]);
    assert_eq!(decode(&version_1, 70_000), Err(MavlinkError::NotABatch));
    // A frame that says that the source has 32 bits may be of a system below 256.
    let wide = batch_of(&[crate::vectors::wide_frame(9, None, 0, 50, &[1; 9])]);
    assert_eq!(Frame::parse(&decode(&wide, 9).unwrap()[0]).unwrap().system_id(), 9);
    // A target that is cut.
    let target = batch_of(&[crate::vectors::wide_frame(300, Some(7), 0, 50, &[])]);
    for end in 0..target.len() {
        assert_eq!(decode(&target[..end], 300), Err(MavlinkError::NotABatch), "{end} bytes");
    }
}

proptest! {
    #[test]
    fn frames_of_any_dialect_come_out_bit_for_bit(frames in prop::collection::vec(any_frame(), 1..8)) {
        // All of one system: the first's, with frames that have no room for more than 8 bits, or one of 32.
        let system = Frame::parse(&frames[0]).unwrap().system_id();
        let frames: Vec<_> = if system > 255 {
            let is_wide = |frame: &&Vec<u8>| frame[0] == 0xfd && frame[2] & 2 != 0;
            frames.iter().filter(is_wide).map(|frame| of_system(frame, system)).collect()
        } else {
            frames.iter().map(|frame| of_system(frame, system)).collect()
        };
        prop_assert_eq!(decode(&batch_of(&frames), system).unwrap(), frames);
    }

    #[test]
    fn any_bytes_are_a_batch_of_one_encoding_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for system in [9, 70_000] {
            if let Ok(frames) = decode(&bytes, system) {
                prop_assert_eq!(&batch_of(&frames), &bytes);
            }
        }
    }
}
