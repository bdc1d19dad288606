//! One MAVLink frame, version 1 or 2, of any dialect.

use crate::{
    checksum::{change, checksum},
    error::MavlinkError,
    layout::Layout,
};
use alloc::vec::Vec;

/// Start byte of a MAVLink 1 frame.
pub const STX_V1: u8 = 0xfe;
/// Start byte of a MAVLink 2 frame.
pub const STX_V2: u8 = 0xfd;
/// Bytes of the longest frame: MAVLink 2, payload of 255, signed.
pub const MAX_FRAME_LEN: usize = HEADER_V2 + 255 + CHECKSUM + SIGNATURE_LEN;
/// Bytes of a MAVLink 2 signature: link id, timestamp (6), and the first 6 of a SHA-256.
pub const SIGNATURE_LEN: usize = 13;

pub(crate) const HEADER_V1: usize = 6;
pub(crate) const HEADER_V2: usize = 10;
pub(crate) const CHECKSUM: usize = 2;
/// The incompatibility flag that says that a signature follows, the only one that is understood here.
pub(crate) const SIGNED: u8 = 0x01;
/// Flags that make a header longer: a source system of 4 bytes, targets in the header. Such a frame is not
/// taken, and has to be known by its length.
const LONGER_HEADERS: [(u8, usize); 2] = [(0x02, 3), (0x04, 4)];
/// Bytes of the longest frame that a header can declare, be it one that is not taken.
pub(crate) const MAX_DECLARED_LEN: usize = MAX_FRAME_LEN + 7;

/// Version of a frame's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// MAVLink 1.
    V1,
    /// MAVLink 2.
    V2,
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The addressed system; 0 is everybody.
    pub system: u8,
    /// The addressed component; 0 is each of the system's.
    pub component: u8,
}

/// One frame, borrowed: its length fits its header, its flags are known, its system id is not 0. Its check
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
        // Who does not know an incompatibility flag discards the frame: it may change the format.
        if let [STX_V2, _, flags, ..] = bytes
            && flags & !SIGNED != 0
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

    /// Tells whether the bytes that a header declares are of a known format: without unknown flags.
    pub(crate) fn has_known_format(declared: &[u8]) -> bool {
        Frame { bytes: declared }.incompatibility_flags() & !SIGNED == 0
    }

    /// Tells whether a check sum proves that bytes of a known format, which a header declares, are one frame, of
    /// whatever system.
    pub(crate) fn proves(declared: &[u8]) -> bool {
        Frame { bytes: declared }.is_proven()
    }

    /// The whole frame, from start byte to check sum or signature: 8 to 280 bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Version of the frame's format.
    #[must_use]
    pub fn version(&self) -> Version {
        if self.byte(0) == STX_V1 { Version::V1 } else { Version::V2 }
    }

    /// Incompatibility flags: 0, or 1 if signed.
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

    /// The sender's system id, 1 to 255.
    #[must_use]
    pub fn system_id(&self) -> u8 {
        self.of_version(Some(3), Some(5))
    }

    /// The sender's component id.
    #[must_use]
    pub fn component_id(&self) -> u8 {
        self.of_version(Some(4), Some(6))
    }

    /// Which message it is: 8 bits in MAVLink 1, 24 in MAVLink 2.
    #[must_use]
    pub fn message_id(&self) -> u32 {
        match self.version() {
            Version::V1 => u32::from(self.byte(5)),
            Version::V2 => u32::from_le_bytes([self.byte(7), self.byte(8), self.byte(9), 0]),
        }
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

    /// Whether a signature is attached. Nobody has verified it.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.incompatibility_flags() & SIGNED != 0
    }

    /// Whether the message is known and the check sum right. What is not may be damaged, or of another
    /// dialect.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.layout().is_some()
    }

    /// Tells whether the message is known and the check sum wrong: the frame was damaged on its way, or is of a
    /// dialect that gives the message's number to another.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        Layout::of(self.message_id()).is_some() && !self.is_proven()
    }

    /// Whom the frame is for: everybody if its message has no such field, `None` if its dialect is not known.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        let layout = self.layout()?;
        // MAVLink 2 leaves zeros at the payload's end away: a field that is not there is 0.
        let field = |at: Option<usize>| at.and_then(|at| self.payload().get(at).copied()).unwrap_or(0);
        Some(Target { system: field(layout.target_system), component: field(layout.target_component) })
    }

    /// The frame without its signature. One without stays as it is.
    #[must_use]
    pub fn without_signature(&self) -> Vec<u8> {
        let mut bytes = self.bytes.to_vec();
        if self.is_signed() {
            bytes.truncate(self.signature_start());
            set_flags(&mut bytes, 0);
        }
        bytes
    }

    /// The frame's unsigned bytes with the flag that announces a signature set and the check sum to match.
    pub(crate) fn announcing_signature(&self) -> Vec<u8> {
        let mut bytes = self.without_signature();
        set_flags(&mut bytes, SIGNED);
        bytes
    }

    /// What is known of the message, if the check sum proves that this is it.
    fn layout(&self) -> Option<Layout> {
        let layout = Layout::of(self.message_id())?;
        let covered = self.bytes.get(1..self.header_len() + usize::from(self.byte(1)))?;
        (checksum(covered, layout.crc_extra) == self.checksum()).then_some(layout)
    }

    fn header_len(&self) -> usize {
        match self.version() {
            Version::V1 => HEADER_V1,
            Version::V2 => HEADER_V2,
        }
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
    let longer: usize =
        LONGER_HEADERS.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, more)| more).sum();
    let signature = if flags & SIGNED == 0 { 0 } else { SIGNATURE_LEN };
    Ok(HEADER_V2 + longer + payload + CHECKSUM + signature)
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

/// Builds an unsigned MAVLink 2 frame of a known message; zeros at the payload's end are left away.
pub(crate) fn build(id: u32, crc_extra: u8, origin: Origin, payload: &[u8]) -> Vec<u8> {
    let used = payload.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    let payload = payload.get(..used.min(255)).unwrap_or(payload);
    let [id0, id1, id2, _] = id.to_le_bytes();
    let len = u8::try_from(payload.len()).unwrap_or(u8::MAX);
    let mut bytes = Vec::with_capacity(HEADER_V2 + payload.len() + CHECKSUM);
    bytes.extend_from_slice(&[
        STX_V2,
        len,
        0,
        0,
        origin.sequence,
        origin.system,
        origin.component,
        id0,
        id1,
        id2,
    ]);
    bytes.extend_from_slice(payload);
    let sum = checksum(bytes.get(1..).unwrap_or_default(), crc_extra);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Who a frame says that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// System id, 1 to 255.
    pub system: u8,
    /// Component id.
    pub component: u8,
    /// The sender's sequence number.
    pub sequence: u8,
}
