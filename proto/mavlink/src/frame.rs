//! A MAVLink frame, version 1 or 2, of any dialect, with system ids of 8 or 32 bits.
//!
//! Two incompatibility flags of MAVLink 2 make its header longer: 10, 13, 14 or 17 bytes.
//!
//! | bytes | | |
//! |---|---|---|
//! | 1 | start byte | |
//! | 1 | length of the payload | |
//! | 1, 1 | incompatibility and compatibility flags | |
//! | 1 | sequence number | |
//! | 1 or 4 | source system, little-endian | 4 with `SYSID32`, 0x02 |
//! | 1 | source component | |
//! | 3 | message id | |
//! | 0 or 4 | target system, little-endian | 4 with `TARGET32`, 0x04 |
//!
//! The check sum covers the whole header but for the start byte, then the payload and the message's seed; the
//! signature covers everything before it, start byte included. The target component stays in the payload. So
//! does the field of the target system, which then says 255 and is not looked at.

use crate::{
    checksum::{change, checksum},
    error::MavlinkError,
    layout::MessageLayout,
};
use alloc::vec::Vec;

/// Start byte of a MAVLink 1 frame.
pub const STX_V1: u8 = 0xfe;
/// Start byte of a MAVLink 2 frame.
pub const STX_V2: u8 = 0xfd;
/// Bytes of the longest frame: MAVLink 2, source and target of 32 bits, payload of 255, signed.
pub const MAX_FRAME_LEN: usize = HEADER_V2 + 3 + 4 + 255 + CHECKSUM + SIGNATURE_LEN;
/// Bytes of a MAVLink 2 signature: link id, timestamp (6), and the first 6 of a SHA-256.
pub const SIGNATURE_LEN: usize = 13;

pub(crate) const HEADER_V1: usize = 6;
pub(crate) const HEADER_V2: usize = 10;
pub(crate) const CHECKSUM: usize = 2;
/// The incompatibility flag that says that a signature follows.
pub(crate) const SIGNED: u8 = 0x01;
/// The incompatibility flag that says that the source system has 4 bytes: `SYSID32`.
pub(crate) const WIDE_SOURCE: u8 = 0x02;
/// The incompatibility flag that says that the target system stands in the header, with 4 bytes: `TARGET32`.
pub(crate) const WIDE_TARGET: u8 = 0x04;
/// The incompatibility flags that are understood here.
const KNOWN_FLAGS: u8 = SIGNED | WIDE_SOURCE | WIDE_TARGET;
/// The greatest system id that programs know which were written before `SYSID32`.
pub const MAX_NARROW_SYSTEM: u32 = 255;

/// Version of a frame's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// MAVLink 1.
    V1,
    /// MAVLink 2.
    V2,
}

/// Target of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The addressed system; 0 is everybody.
    pub system: u32,
    /// The addressed component; 0 is each of the system's.
    pub component: u8,
}

/// A frame, borrowed: its length fits its header, its flags are known, its system id is not 0. Its check
/// sum may be wrong ([`Frame::is_proven`]), because that of an unknown dialect cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame that `bytes` begin with, and what follows it.
    ///
    /// # Errors
    /// No start byte, too few bytes, unknown incompatibility flags, system id 0.
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), MavlinkError> {
        // A receiver that does not know an incompatibility flag discards the frame: it may change the format.
        if let [STX_V2, _, flags, ..] = bytes
            && flags & !KNOWN_FLAGS != 0
        {
            return Err(MavlinkError::UnknownFlags(*flags));
        }
        let (declared, rest) = split_declared(bytes)?;
        let frame = Self { bytes: declared };
        if frame.system_id() == 0 { Err(MavlinkError::NoSystemId) } else { Ok((frame, rest)) }
    }

    /// The one frame that `bytes` are.
    ///
    /// # Errors
    /// As [`Frame::split`], or bytes follow it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, MavlinkError> {
        let (frame, rest) = Self::split(bytes)?;
        if rest.is_empty() { Ok(frame) } else { Err(MavlinkError::TrailingBytes(rest.len())) }
    }

    /// Tells whether a check sum proves that the bytes that a header declares are one frame, of whatever system
    /// and with whatever flags besides.
    pub(crate) fn proves(declared: &[u8]) -> bool {
        Frame { bytes: declared }.is_proven()
    }

    /// The whole frame, from start byte to check sum or signature: 8 to 287 bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Version of the frame's format.
    #[must_use]
    pub fn version(&self) -> Version {
        if self.byte(0) == STX_V1 { Version::V1 } else { Version::V2 }
    }

    /// Incompatibility flags: 1 if signed, 2 if the source has 32 bits, 4 if the target does.
    #[must_use]
    pub fn incompatibility_flags(&self) -> u8 {
        self.of_version(None, Some(2))
    }

    /// Compatibility flags; 0 in MAVLink 1.
    #[must_use]
    pub fn compatibility_flags(&self) -> u8 {
        self.of_version(None, Some(3))
    }

    /// The sender's sequence number.
    #[must_use]
    pub fn sequence(&self) -> u8 {
        self.of_version(Some(2), Some(4))
    }

    /// The sender's system id, not 0; above 255 only if the header has room for it.
    #[must_use]
    pub fn system_id(&self) -> u32 {
        if self.has(WIDE_SOURCE) { self.four_bytes(5) } else { self.of_version(Some(3), Some(5)).into() }
    }

    /// The sender's component id.
    #[must_use]
    pub fn component_id(&self) -> u8 {
        self.of_version(Some(4), Some(6 + self.wider_source()))
    }

    /// Id of the frame's message: 8 bits in MAVLink 1, 24 in MAVLink 2.
    #[must_use]
    pub fn message_id(&self) -> u32 {
        match self.version() {
            Version::V1 => u32::from(self.byte(5)),
            Version::V2 => self.four_bytes(7 + self.wider_source()) & 0x00ff_ffff,
        }
    }

    /// The target system that stands in the header, if one does. A check sum proves it as all else
    /// ([`Frame::target`]).
    #[must_use]
    pub fn header_target(&self) -> Option<u32> {
        self.has(WIDE_TARGET).then(|| self.four_bytes(HEADER_V2 + self.wider_source()))
    }

    /// Tells whether the header is longer than that of MAVLink 2 as it was: a program that knows system ids of
    /// 8 bits alone drops such a frame.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.has(WIDE_SOURCE | WIDE_TARGET)
    }

    /// The payload, 0 to 255 bytes. MAVLink 2 leaves zeros at its end away.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        let start = self.header_len();
        self.bytes.get(start..start + usize::from(self.byte(1))).unwrap_or_default()
    }

    /// The check sum that the frame carries.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        let at = self.header_len() + usize::from(self.byte(1));
        u16::from_le_bytes([self.byte(at), self.byte(at + 1)])
    }

    /// The signature, if there is one: [`SIGNATURE_LEN`] bytes.
    #[must_use]
    pub fn signature(&self) -> Option<&'a [u8]> {
        self.is_signed().then(|| self.bytes.get(self.signature_start()..).unwrap_or_default())
    }

    /// Returns true if a signature is attached. Nobody has verified it.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.incompatibility_flags() & SIGNED != 0
    }

    /// Returns true if the message is known and the check sum right. Any other frame may be damaged, or of
    /// another dialect.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.layout().is_some()
    }

    /// Tells whether the message is known and the check sum wrong: the frame was damaged on its way, or is of a
    /// dialect that gives the message's number to another.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        MessageLayout::of(self.message_id()).is_some() && !self.is_proven()
    }

    /// Target of the frame: everybody if its message has no such field, `None` if its dialect is not known. A
    /// target in the header is the frame's, whatever the payload says.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        let layout = self.layout()?;
        // MAVLink 2 leaves zeros at the payload's end away: a field that is not there is 0.
        let field = |at: Option<usize>| at.and_then(|at| self.payload().get(at).copied()).unwrap_or(0);
        let system = self.header_target().unwrap_or_else(|| field(layout.target_system).into());
        Some(Target { system, component: field(layout.target_component) })
    }

    /// The frame without its signature. One without stays as it is.
    #[must_use]
    pub fn without_signature(&self) -> Vec<u8> {
        let mut bytes = self.bytes.to_vec();
        if self.is_signed() {
            bytes.truncate(self.signature_start());
            set_flags(&mut bytes, self.incompatibility_flags() & !SIGNED);
        }
        bytes
    }

    /// The frame's unsigned bytes with the flag that announces a signature set and the check sum to match.
    pub(crate) fn announcing_signature(&self) -> Vec<u8> {
        let mut bytes = self.without_signature();
        set_flags(&mut bytes, self.incompatibility_flags() | SIGNED);
        bytes
    }

    /// Layout of the message, if the check sum proves that this is it.
    fn layout(&self) -> Option<MessageLayout> {
        let layout = MessageLayout::of(self.message_id())?;
        let covered = self.bytes.get(1..self.header_len() + usize::from(self.byte(1)))?;
        (checksum(covered, layout.crc_extra) == self.checksum()).then_some(layout)
    }

    fn header_len(&self) -> usize {
        match self.version() {
            Version::V1 => HEADER_V1,
            Version::V2 => header_len_v2(self.byte(2)),
        }
    }

    /// Bytes of the source system beyond the first.
    fn wider_source(&self) -> usize {
        if self.has(WIDE_SOURCE) { 3 } else { 0 }
    }

    /// Tells whether one of these incompatibility flags is set.
    fn has(&self, flags: u8) -> bool {
        self.incompatibility_flags() & flags != 0
    }

    fn four_bytes(&self, at: usize) -> u32 {
        u32::from_le_bytes([self.byte(at), self.byte(at + 1), self.byte(at + 2), self.byte(at + 3)])
    }

    fn signature_start(&self) -> usize {
        self.header_len() + usize::from(self.byte(1)) + CHECKSUM
    }

    fn of_version(&self, v1: Option<usize>, v2: Option<usize>) -> u8 {
        let at = match self.version() {
            Version::V1 => v1,
            Version::V2 => v2,
        };
        at.map_or(0, |at| self.byte(at))
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }
}

/// The bytes of the frame that `bytes` begin with, as its header declares them, and what follows. Nothing else
/// of it is looked at.
///
/// # Errors
/// No start byte, or too few bytes.
pub(crate) fn split_declared(bytes: &[u8]) -> Result<(&[u8], &[u8]), MavlinkError> {
    let need = declared_len(bytes)?;
    bytes.split_at_checked(need).ok_or(MavlinkError::Truncated { have: bytes.len(), need })
}

/// Bytes that the frame at the start of `bytes` has, by its header.
///
/// # Errors
/// No start byte, or too few bytes to tell; then `need` is how many tell more.
fn declared_len(bytes: &[u8]) -> Result<usize, MavlinkError> {
    let truncated = |need| MavlinkError::Truncated { have: bytes.len(), need };
    let start = *bytes.first().ok_or(truncated(HEADER_V1 + CHECKSUM))?;
    if start != STX_V1 && start != STX_V2 {
        return Err(MavlinkError::NotAFrame);
    }
    let payload = usize::from(*bytes.get(1).ok_or(truncated(HEADER_V1 + CHECKSUM))?);
    if start == STX_V1 {
        return Ok(HEADER_V1 + payload + CHECKSUM);
    }
    let flags = *bytes.get(2).ok_or(truncated(HEADER_V2 + CHECKSUM))?;
    let signature = if flags & SIGNED == 0 { 0 } else { SIGNATURE_LEN };
    Ok(header_len_v2(flags) + payload + CHECKSUM + signature)
}

/// Bytes of a MAVLink 2 header with these incompatibility flags.
const fn header_len_v2(flags: u8) -> usize {
    let source = if flags & WIDE_SOURCE == 0 { 0 } else { 3 };
    let target = if flags & WIDE_TARGET == 0 { 0 } else { 4 };
    HEADER_V2 + source + target
}

/// Sets the incompatibility flags of an unsigned MAVLink 2 frame. The check sum covers them; it is changed by
/// what the difference makes of it, so that no dialect need be known.
fn set_flags(unsigned: &mut [u8], flags: u8) {
    let len = unsigned.len();
    let [_, _, old, .., low, high] = unsigned else { return };
    // From behind the flags to before the check sum, and the seed.
    let correction = change(*old ^ flags, len - 3 - CHECKSUM + 1).to_le_bytes();
    *old = flags;
    *low ^= correction[0];
    *high ^= correction[1];
}

/// Builds an unsigned MAVLink 2 frame of a known message to everybody; zeros at the payload's end are left
/// away. A source above 255 makes the header longer.
pub(crate) fn build(id: u32, crc_extra: u8, origin: Origin, payload: &[u8]) -> Vec<u8> {
    let used = payload.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    let payload = payload.get(..used.min(255)).unwrap_or(payload);
    let [id0, id1, id2, _] = id.to_le_bytes();
    let len = u8::try_from(payload.len()).unwrap_or(u8::MAX);
    let flags = if origin.system > MAX_NARROW_SYSTEM { WIDE_SOURCE } else { 0 };
    let mut bytes = Vec::with_capacity(header_len_v2(flags) + payload.len() + CHECKSUM);
    bytes.extend_from_slice(&[STX_V2, len, flags, 0, origin.sequence]);
    push_source(&mut bytes, flags, origin.system);
    bytes.extend_from_slice(&[origin.component, id0, id1, id2]);
    bytes.extend_from_slice(payload);
    let sum = checksum(bytes.get(1..).unwrap_or_default(), crc_extra);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Appends a source system as a MAVLink 2 header with these incompatibility flags has it.
pub(crate) fn push_source(header: &mut Vec<u8>, flags: u8, system: u32) {
    let bytes = if flags & WIDE_SOURCE == 0 { 1 } else { 4 };
    header.extend(system.to_le_bytes().into_iter().take(bytes));
}

/// Origin that a frame claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// System id, not 0.
    pub system: u32,
    /// Component id.
    pub component: u8,
    /// The sender's sequence number.
    pub sequence: u8,
}
