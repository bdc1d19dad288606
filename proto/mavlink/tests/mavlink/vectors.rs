//! Frames that pymavlink wrote into `vectors/frames.txt`, and frames to test with.

use proptest::prelude::*;

const TEXT: &str = include_str!("../vectors/frames.txt");

/// A frame, and what pymavlink says of it.
pub(crate) struct FrameVector {
    pub(crate) version: u8,
    pub(crate) name: &'static str,
    pub(crate) sequence: u8,
    pub(crate) message_id: u32,
    pub(crate) target: (u32, u8),
    pub(crate) payload: Vec<u8>,
    pub(crate) checksum: u16,
    pub(crate) bytes: Vec<u8>,
}

fn lines(kind: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    TEXT.lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .filter(move |line| line[0] == kind)
        .map(|line| line[1..].to_vec())
}

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    hex::decode(hex).unwrap()
}

pub(crate) fn frames() -> Vec<FrameVector> {
    let vector = |line: Vec<&'static str>| FrameVector {
        version: line[0].parse().unwrap(),
        name: line[1],
        sequence: line[2].parse().unwrap(),
        message_id: line[3].parse().unwrap(),
        target: (line[4].parse().unwrap(), line[5].parse().unwrap()),
        payload: bytes(line[6]),
        checksum: u16::from_str_radix(line[7], 16).unwrap(),
        bytes: bytes(line[8]),
    };
    let frames: Vec<_> = lines("frame").map(vector).collect();
    assert_eq!(frames.len(), 25, "the file is not the one that was made");
    frames
}

/// The frame of a message as MAVLink 2.
pub(crate) fn frame(name: &str) -> Vec<u8> {
    frames().into_iter().find(|vector| vector.version == 2 && vector.name == name).unwrap().bytes
}

/// A frame with system and component of another; proven, because the check sum is made anew.
pub(crate) fn frame_from(name: &str, system: u8, component: u8) -> Vec<u8> {
    let mut frame = frame(name);
    let plain = crc(&frame, system, component);
    (frame[5], frame[6]) = (system, component);
    let end = frame.len();
    frame[end - 2..].copy_from_slice(&plain.to_le_bytes());
    frame
}

/// The frame's check sum if it came from another: the frame's own seed is found by trying all 256.
fn crc(frame: &[u8], system: u8, component: u8) -> u16 {
    let covered = &frame[1..frame.len() - 2];
    let told = u16::from_le_bytes([frame[frame.len() - 2], frame[frame.len() - 1]]);
    let seed = (0..=255).find(|seed| checksum(covered, *seed) == told).unwrap();
    let mut changed = covered.to_vec();
    (changed[4], changed[5]) = (system, component);
    checksum(&changed, seed)
}

/// CRC-16/MCRF4XX, bit by bit.
fn checksum(bytes: &[u8], seed: u8) -> u16 {
    bytes.iter().chain([&seed]).fold(0xffff_u16, |mut crc, byte| {
        crc ^= u16::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x8408 } else { crc >> 1 };
        }
        crc
    })
}

/// A frame of MAVLink 2 of a message whose check sum has this seed; proven if it is the message's.
pub(crate) fn frame_of(id: u32, seed: u8, payload: &[u8]) -> Vec<u8> {
    let [id0, id1, id2, _] = id.to_le_bytes();
    let mut frame = vec![0xfd, payload.len() as u8, 0, 0, 1, 255, 190, id0, id1, id2];
    frame.extend_from_slice(payload);
    frame.extend([0, 0]);
    seal(&mut frame, seed);
    frame
}

/// Number and name of each message of the standard's definitions.
pub(crate) fn messages() -> Vec<(u32, &'static str)> {
    let text = include_str!("../vectors/messages.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let messages: Vec<_> = lines.filter_map(|line| line.split_once(' ')).collect();
    assert_eq!(messages.len(), 385, "the file is not the one that was made");
    messages.into_iter().map(|(id, name)| (id.parse().unwrap(), name)).collect()
}

/// Makes the check sum of a frame that was changed anew.
pub(crate) fn seal(frame: &mut [u8], seed: u8) {
    let end = frame.len();
    let sum = checksum(&frame[1..end - 2], seed);
    frame[end - 2..].copy_from_slice(&sum.to_le_bytes());
}

/// Unsigned frames and what pymavlink made of them with [`key`], link 3 and [`TIMESTAMP`].
pub(crate) fn signed() -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs: Vec<_> = lines("signed").map(|line| (bytes(line[1]), bytes(line[2]))).collect();
    assert_eq!(pairs.len(), 12);
    pairs
}

/// The timestamp of every signature in the file.
pub(crate) const TIMESTAMP: u64 = 20_015_998_343_868;
/// The key of every signature in the file.
pub(crate) const KEY: &str = "9f0cb2a9a5692a5ac007acb3db3d7b8d5eaf68e0ab4f671af3aaf102e9c31b10";

/// Datagrams and the `TUNNEL` frames that carry them.
pub(crate) fn tunnels() -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs: Vec<_> = lines("tunnel").map(|line| (bytes(line[0]), bytes(line[1]))).collect();
    assert_eq!(pairs.len(), 4);
    pairs
}

/// `TUNNEL` frames that carry no datagram.
pub(crate) fn other_tunnels() -> Vec<Vec<u8>> {
    let frames: Vec<_> = lines("other").map(|line| bytes(line[0])).collect();
    assert_eq!(frames.len(), 3);
    frames
}

/// A frame with ids of 32 bits, and what the program that made it says of it.
pub(crate) struct WideVector {
    pub(crate) name: &'static str,
    pub(crate) flags: u8,
    pub(crate) system: u32,
    /// Target in the header.
    pub(crate) target: Option<u32>,
    pub(crate) message_id: u32,
    pub(crate) payload: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
    /// The same signed with [`WIDE_KEY`], link 3, timestamp 1000.
    pub(crate) signed: Vec<u8>,
}

/// The key of every signature in `wide.txt`: 32 times 42.
pub(crate) const WIDE_KEY: &str = "2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a";

/// Frames with ids of 32 bits.
pub(crate) fn wide() -> Vec<WideVector> {
    let lines = include_str!("../vectors/wide.txt").lines().filter(|line| !line.starts_with('#'));
    let vector = |line: &'static str| {
        let fields: Vec<_> = line.split(' ').collect();
        WideVector {
            name: fields[0],
            flags: fields[1].parse().unwrap(),
            system: fields[2].parse().unwrap(),
            target: (fields[3] != "-").then(|| fields[3].parse().unwrap()),
            message_id: fields[4].parse().unwrap(),
            payload: bytes(fields[5]),
            bytes: bytes(fields[6]),
            signed: bytes(fields[7]),
        }
    };
    let frames: Vec<_> = lines.map(vector).collect();
    assert_eq!(frames.len(), 24, "the file is not the one that was made");
    frames
}

/// An unsigned frame of MAVLink 2 with a source above 255, and a target in its header if there is one; proven if the
/// seed is the message's.
pub(crate) fn wide_frame(system: u32, target: Option<u32>, id: u32, seed: u8, payload: &[u8]) -> Vec<u8> {
    let flags = 2 | if target.is_some() { 4 } else { 0 };
    let mut frame = vec![0xfd, payload.len() as u8, flags, 0, 1];
    frame.extend(system.to_le_bytes());
    frame.push(190);
    frame.extend(&id.to_le_bytes()[..3]);
    frame.extend(target.into_iter().flat_map(u32::to_le_bytes));
    frame.extend_from_slice(payload);
    frame.extend([0, 0]);
    seal(&mut frame, seed);
    frame
}

/// Frames of any dialect: every field is anything, so that check sums are mostly wrong.
pub(crate) fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let header = (any::<bool>(), 0..8_u8, any::<u8>(), any::<u8>(), 1..=255_u8, any::<u8>());
    let id = prop_oneof![0..=255_u32, 0..=0xffff_u32, 0..=0xff_ffff_u32];
    let payload = prop::collection::vec(any::<u8>(), 0..=255);
    (header, id, payload, any::<[u8; 15]>(), any::<[u8; 7]>()).prop_map(
        |(header, id, payload, tail, wide)| {
            let (is_v1, incompatible, flags, sequence, system, component) = header;
            let is_signed = incompatible & 1 != 0;
            let [id0, id1, id2, _] = id.to_le_bytes();
            let len = payload.len() as u8;
            let mut frame = if is_v1 {
                vec![0xfe, len, sequence, system, component, id0]
            } else {
                // Compatibility flags are nearly always 0.
                let flags = if flags < 200 { 0 } else { flags };
                let mut header = vec![0xfd, len, incompatible, flags, sequence, system];
                header.extend(&wide[..if incompatible & 2 == 0 { 0 } else { 3 }]);
                header.extend([component, id0, id1, id2]);
                header.extend(&wide[3..if incompatible & 4 == 0 { 3 } else { 7 }]);
                header
            };
            frame.extend(payload);
            frame.extend(&tail[..if is_signed && !is_v1 { 15 } else { 2 }]);
            frame
        },
    )
}
