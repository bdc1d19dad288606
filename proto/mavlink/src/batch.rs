//! Batches of MAVLink frames in a datagram: one frame or several, without what the receiver knows anyway.
//!
//! | field | bytes | |
//! |---|---|---|
//! | kind | 1 | below |
//! | length of the payload | 0 or 1 | only if another frame follows: the last takes what is left |
//! | compatibility flags | 0 or 1 | if not 0 |
//! | sequence, component | 2 | |
//! | message id | 1 to 3 | without zeros at its end |
//! | target system | 0 or 4 | if it stands in the frame's header |
//! | payload | 0 to 255 | |
//! | check sum | 2 | travels, so that damage before the sender's end is found at the receiver's |
//! | signature | 0 or 13 | |
//!
//! Bits of the kind: 7 MAVLink 1, 6 another frame follows, 5 the target stands in the header, 4 the source has
//! 32 bits, 3 and 2 bytes of the message id less one, 1 compatibility flags follow, 0 signed. Of MAVLink 1 all
//! but 7 and 6 are 0. A receiver that does not know bits 5 and 4 takes nothing of a batch in which one is
//! set.
//!
//! Start byte, length and system id do not travel: 3 bytes, or 6 if it has 32 bits; most frames save 3 more by flags
//! of 0 and message ids below 256. The system id is the one granted to the datagram's sender. Frames come out bit for
//! bit as they went in. Each has one encoding only.

use alloc::vec::Vec;

use crate::{
    error::MavlinkError,
    frame::{
        CHECKSUM, Frame, HEADER_V1, HEADER_V2, MAX_NARROW_SYSTEM, SIGNATURE_LEN, SIGNED, STX_V1, STX_V2,
        Version, WIDE_SOURCE, WIDE_TARGET, push_source,
    },
};

const KIND_V1: u8 = 0x80;
const KIND_MORE: u8 = 0x40;
const KIND_ID_SHIFT: u8 = 2;
const KIND_COMPATIBILITY: u8 = 0x02;
const KIND_SIGNED: u8 = 0x01;
const KIND_WIDE_SOURCE: u8 = 0x10;
const KIND_WIDE_TARGET: u8 = 0x20;
/// Incompatibility flags, each with its bit of a kind.
const FLAGS: [(u8, u8); 3] =
    [(SIGNED, KIND_SIGNED), (WIDE_SOURCE, KIND_WIDE_SOURCE), (WIDE_TARGET, KIND_WIDE_TARGET)];

/// Collects frames of one system for a datagram.
#[derive(Clone, Debug, Default)]
pub struct FrameBatch {
    bytes: Vec<u8>,
    /// Offset of the last frame's kind, and the length of its payload.
    last: Option<(usize, u8)>,
    frames: usize,
}

impl FrameBatch {
    /// A batch without frames.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a frame if the batch is then no longer than `max` bytes; says whether it did. All frames of a
    /// batch have to come from one system: its id does not travel.
    pub fn push(&mut self, frame: Frame<'_>, max: usize) -> bool {
        let encoded = encode(frame);
        let payload_len = u8::try_from(frame.payload().len()).unwrap_or(u8::MAX);
        let lengths = usize::from(self.last.is_some());
        if self.bytes.len() + lengths + encoded.len() > max {
            return false;
        }
        if let Some((at, len)) = self.last {
            if let Some(kind) = self.bytes.get_mut(at) {
                *kind |= KIND_MORE;
            }
            self.bytes.insert(at + 1, len);
        }
        self.last = Some((self.bytes.len(), payload_len));
        self.bytes.extend_from_slice(&encoded);
        self.frames += 1;
        true
    }

    /// Number of frames that it holds.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.frames
    }

    /// Returns true if the batch holds no frame.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// The encoding so far; empty without frames.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The encoding; the batch is empty again.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(self).bytes
    }
}

/// Bytes that a frame takes alone in a datagram.
#[must_use]
pub fn encoded_len(frame: Frame<'_>) -> usize {
    let fixed = frame.bytes().len() - 3;
    match frame.version() {
        Version::V1 => fixed + 1,
        Version::V2 => {
            fixed
                - usize::from(frame.compatibility_flags() == 0)
                - (3 - usize::from(id_len(frame.message_id())))
                - if frame.incompatibility_flags() & WIDE_SOURCE == 0 { 0 } else { 3 }
        }
    }
}

/// The frames of a datagram's payload, each as its sender's endpoint received it. `system_id` is that granted
/// to the sender.
///
/// # Errors
/// The payload is not what [`FrameBatch`] writes of frames of that system: then none of its frames is used.
pub fn decode(payload: &[u8], system_id: u32) -> Result<Vec<Vec<u8>>, MavlinkError> {
    if system_id == 0 {
        return Err(MavlinkError::NoSystemId);
    }
    let mut frames = Vec::new();
    let mut left = payload;
    loop {
        let (frame, rest) = decode_one(left, system_id).ok_or(MavlinkError::NotABatch)?;
        frames.push(frame);
        match rest {
            Some(rest) => left = rest,
            None => return Ok(frames),
        }
    }
}

/// The encoding of a frame that stands last.
fn encode(frame: Frame<'_>) -> Vec<u8> {
    let id = frame.message_id();
    let id_len = id_len(id);
    let mut bytes = Vec::with_capacity(frame.bytes().len());
    match frame.version() {
        Version::V1 => bytes.push(KIND_V1),
        Version::V2 => {
            let compatibility = frame.compatibility_flags();
            let flags = FLAGS.iter().filter(|(flag, _)| frame.incompatibility_flags() & flag != 0);
            let kind = flags.fold((id_len - 1) << KIND_ID_SHIFT, |kind, (_, bit)| kind | bit);
            if compatibility == 0 {
                bytes.push(kind);
            } else {
                bytes.extend_from_slice(&[kind | KIND_COMPATIBILITY, compatibility]);
            }
        }
    }
    bytes.extend_from_slice(&[frame.sequence(), frame.component_id()]);
    bytes.extend(id.to_le_bytes().into_iter().take(usize::from(id_len)));
    bytes.extend(frame.header_target().into_iter().flat_map(u32::to_le_bytes));
    bytes.extend_from_slice(frame.payload());
    bytes.extend_from_slice(&frame.checksum().to_le_bytes());
    bytes.extend_from_slice(frame.signature().unwrap_or_default());
    bytes
}

/// A frame, and what follows it if anything does.
fn decode_one(bytes: &[u8], system_id: u32) -> Option<(Vec<u8>, Option<&[u8]>)> {
    let (&kind, mut left) = bytes.split_first()?;
    let mut byte = || {
        let (&byte, rest) = left.split_first()?;
        left = rest;
        Some(byte)
    };
    if kind & KIND_V1 != 0 && kind & !(KIND_V1 | KIND_MORE) != 0 {
        return None;
    }
    // A sender whose system id is above 255 has no frames with room for less.
    if kind & KIND_WIDE_SOURCE == 0 && system_id > MAX_NARROW_SYSTEM {
        return None;
    }
    let given_len = if kind & KIND_MORE != 0 { Some(byte()?) } else { None };
    let compatibility = match kind & KIND_COMPATIBILITY {
        0 => 0,
        _ => byte().filter(|flags| *flags != 0)?,
    };
    let (sequence, component) = (byte()?, byte()?);
    let id_len = ((kind >> KIND_ID_SHIFT) & 3) + 1;
    let mut id = [0; 3];
    for part in id.get_mut(..usize::from(id_len))? {
        *part = byte()?;
    }
    // A message id has one encoding: without zeros at its end, save the only byte.
    if id_len > 1 && *id.get(usize::from(id_len) - 1)? == 0 {
        return None;
    }
    let mut target = [0; 4];
    let target_len = if kind & KIND_WIDE_TARGET != 0 { target.len() } else { 0 };
    for part in target.get_mut(..target_len)? {
        *part = byte()?;
    }
    let behind = CHECKSUM + if kind & KIND_SIGNED != 0 { SIGNATURE_LEN } else { 0 };
    let len = match given_len {
        Some(len) => len,
        None => u8::try_from(left.len().checked_sub(behind)?).ok()?,
    };
    let (content, rest) = left.split_at_checked(usize::from(len) + behind)?;
    let mut frame = Vec::with_capacity(HEADER_V2.max(HEADER_V1) + 7 + content.len());
    if kind & KIND_V1 != 0 {
        let system = u8::try_from(system_id).ok()?;
        frame.extend_from_slice(&[STX_V1, len, sequence, system, component, id[0]]);
    } else {
        let flags = FLAGS.iter().filter(|(_, bit)| kind & bit != 0).fold(0, |flags, (flag, _)| flags | flag);
        frame.extend_from_slice(&[STX_V2, len, flags, compatibility, sequence]);
        push_source(&mut frame, flags, system_id);
        frame.push(component);
        frame.extend_from_slice(&id);
        frame.extend_from_slice(target.get(..target_len)?);
    }
    frame.extend_from_slice(content);
    // A head that says that a frame follows is followed by one; any other ends the payload.
    Some((frame, given_len.map(|_| rest)))
}

const fn id_len(id: u32) -> u8 {
    match id {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 3,
    }
}
