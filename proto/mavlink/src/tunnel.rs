//! Datagrams in `TUNNEL` messages, for radios that take nothing but MAVLink.
//!
//! A datagram of up to 128 bytes is one message, a longer one up to four that follow each other. The type of
//! the payload says which: private types, as all from 0x8000 on are.
//!
//! | `payload_type` | the payload is |
//! |---|---|
//! | `0xd156` | a datagram |
//! | `0xd180` + 16 · *n* + 4 · *i* + *l* | part *i* of 0 to *l* of a datagram; *n* counts these, modulo 8 |

use alloc::{collections::VecDeque, vec::Vec};

use crate::{
    error::MavlinkError,
    frame::{Frame, Origin, build},
};

/// Bytes that `TUNNEL` puts around a datagram, or a part of one: 12 of a frame, 5 of fields. A sender with a
/// system id above 255 has [`TUNNEL_WIDE_OVERHEAD`].
pub const TUNNEL_OVERHEAD: usize = 17;
/// The same of a sender with a system id above 255: 15 of a frame, 5 of fields.
pub const TUNNEL_WIDE_OVERHEAD: usize = TUNNEL_OVERHEAD + 3;
/// Bytes of the longest datagram in one message; the shortest has one.
pub const TUNNEL_PAYLOAD: usize = 128;
/// Bytes of the longest datagram.
pub const MAX_TUNNELLED: usize = MAX_PARTS * TUNNEL_PAYLOAD;

const MAX_PARTS: usize = 4;
const WHOLE: u16 = 0xd156;
const PARTS: u16 = 0xd180;
const TUNNEL: (u32, u8) = (385, 147);
/// Senders of whom the begin of a datagram is kept.
const MAX_PARTIAL: usize = 16;

/// Puts datagrams into `TUNNEL` messages to everybody.
#[derive(Clone, Debug)]
pub struct TunnelWriter {
    origin: Origin,
    /// Number of the next datagram in parts.
    divided: u8,
}

impl TunnelWriter {
    /// Messages come from there; the sequence goes on from its number.
    #[must_use]
    pub const fn new(origin: Origin) -> Self {
        Self { origin, divided: 0 }
    }

    /// Messages come from this system, not 0.
    pub const fn set_system(&mut self, system: u32) {
        self.origin.system = system;
    }

    /// The frames that carry a datagram, one after the other: [`TUNNEL_OVERHEAD`] bytes more for each 128 that
    /// are begun, less where a part ends in zeros.
    ///
    /// # Errors
    /// A datagram longer than [`MAX_TUNNELLED`].
    pub fn write(&mut self, datagram: &[u8]) -> Result<Vec<u8>, MavlinkError> {
        if datagram.len() > MAX_TUNNELLED {
            return Err(MavlinkError::TooLong { len: datagram.len(), max: MAX_TUNNELLED });
        }
        if datagram.len() <= TUNNEL_PAYLOAD {
            return Ok(self.frame(WHOLE, datagram));
        }
        let number = u16::from(self.divided);
        self.divided = (self.divided + 1) % 8;
        let last = (datagram.len() - 1) / TUNNEL_PAYLOAD;
        let parts = (0_u16..).zip(datagram.chunks(TUNNEL_PAYLOAD));
        let kind = |index: u16| PARTS + 16 * number + 4 * index + last as u16;
        Ok(parts.flat_map(|(index, part)| self.frame(kind(index), part)).collect())
    }

    fn frame(&mut self, kind: u16, part: &[u8]) -> Vec<u8> {
        let [low, high] = kind.to_le_bytes();
        let mut payload = Vec::with_capacity(5 + part.len());
        payload.extend_from_slice(&[low, high, 0, 0, part.len() as u8]);
        payload.extend_from_slice(part);
        let frame = build(TUNNEL.0, TUNNEL.1, self.origin, &payload);
        self.origin.sequence = self.origin.sequence.wrapping_add(1);
        frame
    }
}

/// The begin of a sender's datagram.
#[derive(Clone, Debug)]
struct Partial {
    sender: (u32, u8),
    /// The type of the part that is missing.
    next: u16,
    bytes: Vec<u8>,
}

/// Takes datagrams out of `TUNNEL` messages. Holds the begin of 16 datagrams, 384 bytes each; parts that do
/// not follow each other are dropped.
#[derive(Clone, Debug, Default)]
pub struct TunnelReader {
    partial: VecDeque<Partial>,
}

impl TunnelReader {
    /// A reader that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The datagram that this frame carries, or completes; `None` for every other frame.
    pub fn read(&mut self, frame: Frame<'_>) -> Option<Vec<u8>> {
        let (kind, part) = tunnelled(frame)?;
        let sender = (frame.system_id(), frame.component_id());
        let known = self.partial.iter().position(|partial| partial.sender == sender);
        // A sender's next datagram ends what is missing of the one before.
        let begun = known.and_then(|at| self.partial.remove(at));
        if kind == WHOLE {
            return Some(part);
        }
        let (index, last) = ((kind - PARTS) / 4 % 4, (kind - PARTS) % 4);
        let bytes = match begun {
            _ if index == 0 => part,
            Some(begun) if begun.next == kind => [begun.bytes, part].concat(),
            _ => return None,
        };
        if index == last {
            return Some(bytes);
        }
        if self.partial.len() >= MAX_PARTIAL {
            self.partial.pop_front();
        }
        self.partial.push_back(Partial { sender, next: kind + 4, bytes });
        None
    }
}

/// Type and payload of a `TUNNEL` frame of [`TunnelWriter`].
fn tunnelled(frame: Frame<'_>) -> Option<(u16, Vec<u8>)> {
    if frame.message_id() != TUNNEL.0 || !frame.is_proven() {
        return None;
    }
    let (&[low, high, _, _, len], part) = frame.payload().split_first_chunk()?;
    let (kind, len) = (u16::from_le_bytes([low, high]), usize::from(len));
    let is_part =
        matches!(kind.checked_sub(PARTS), Some(part @ 0..128) if part % 4 > 0 && part / 4 % 4 <= part % 4);
    if !(kind == WHOLE || is_part) || len > TUNNEL_PAYLOAD || part.len() > len {
        return None;
    }
    // Zeros at its end were left away.
    let mut whole = part.to_vec();
    whole.resize(len, 0);
    Some((kind, whole))
}
