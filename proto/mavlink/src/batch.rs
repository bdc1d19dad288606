//! What a datagram carries of MAVLink: one frame or several, without what the receiver knows anyway.
//!
//! | field | bytes | |
//! |---|---|---|
//! | kind | 1 | below |
//! | length of the payload | 0 or 1 | only if another frame follows: the last takes what is left |
//! | compatibility flags | 0 or 1 | if not 0 |
//! | sequence, component | 2 | |
//! | message id | 1 to 3 | without zeros at its end |
//! | payload | 0 to 255 | |
//! | check sum | 2 | travels, so that damage before the sender's end is found at the receiver's |
//! | signature | 0 or 13 | |
//!
//! Bits of the kind: 7 MAVLink 1, 6 another frame follows, 3 and 2 bytes of the message id less one, 1
//! compatibility flags follow, 0 signed; the others are 0.
//!
//! Start byte, length and system id do not travel: 3 bytes; most frames save 3 more by flags of 0 and message
//! ids below 256. The system id is the one granted to the datagram's sender. Frames come out bit for bit as
//! they went in. Each has one encoding only.

use alloc::vec::Vec;

use crate::{
    error::MavlinkError,
    frame::{CHECKSUM, Frame, HEADER_V1, HEADER_V2, SIGNATURE_LEN, SIGNED, STX_V1, STX_V2, Version},
};

const KIND_V1: u8 = 0x80;
const KIND_MORE: u8 = 0x40;
const KIND_ID_SHIFT: u8 = 2;
const KIND_COMPATIBILITY: u8 = 0x02;
const KIND_SIGNED: u8 = 0x01;
/// Bits that are set in no kind.
const KIND_UNUSED: u8 = 0x30;

/// Collects frames of one system for a datagram.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Where the last frame's kind stands, and the length of its payload.
    last: Option<(usize, u8)>,
    frames: usize,
}

impl Batch {
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

    /// How many frames it holds.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.frames
    }

    /// Whether it holds no frame.
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
        }
    }
}

/// The frames of a datagram's payload, each as its sender's endpoint received it. `system_id` is that granted
/// to the sender.
///
/// # Errors
/// The payload is not what [`Batch`] writes: then none of its frames is used.
pub fn decode(payload: &[u8], system_id: u8) -> Result<Vec<Vec<u8>>, MavlinkError> {
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
            let signed = if frame.is_signed() { KIND_SIGNED } else { 0 };
            let kind = signed | (id_len - 1) << KIND_ID_SHIFT;
            if compatibility == 0 {
                bytes.push(kind);
            } else {
                bytes.extend_from_slice(&[kind | KIND_COMPATIBILITY, compatibility]);
            }
        }
    }
    bytes.extend_from_slice(&[frame.sequence(), frame.component_id()]);
    bytes.extend(id.to_le_bytes().into_iter().take(usize::from(id_len)));
    bytes.extend_from_slice(frame.payload());
    bytes.extend_from_slice(&frame.checksum().to_le_bytes());
    bytes.extend_from_slice(frame.signature().unwrap_or_default());
    bytes
}

/// One frame, and what follows it if anything does.
fn decode_one(bytes: &[u8], system_id: u8) -> Option<(Vec<u8>, Option<&[u8]>)> {
    let (&kind, mut left) = bytes.split_first()?;
    let mut byte = || {
        let (&byte, rest) = left.split_first()?;
        left = rest;
        Some(byte)
    };
    if kind & KIND_UNUSED != 0 || (kind & KIND_V1 != 0 && kind & !(KIND_V1 | KIND_MORE) != 0) {
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
    let behind = CHECKSUM + if kind & KIND_SIGNED != 0 { SIGNATURE_LEN } else { 0 };
    let len = match given_len {
        Some(len) => len,
        None => u8::try_from(left.len().checked_sub(behind)?).ok()?,
    };
    let (content, rest) = left.split_at_checked(usize::from(len) + behind)?;
    let mut frame = Vec::with_capacity(HEADER_V2.max(HEADER_V1) + content.len());
    if kind & KIND_V1 != 0 {
        frame.extend_from_slice(&[STX_V1, len, sequence, system_id, component, id[0]]);
    } else {
        let flags = if kind & KIND_SIGNED != 0 { SIGNED } else { 0 };
        frame.extend_from_slice(&[STX_V2, len, flags, compatibility, sequence, system_id, component]);
        frame.extend_from_slice(&id);
    }
    frame.extend_from_slice(content);
    // What says that a frame follows is followed by one; what does not say so ends the payload.
    Some((frame, given_len.map(|_| rest)))
}

const fn id_len(id: u32) -> u8 {
    match id {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 3,
    }
}
