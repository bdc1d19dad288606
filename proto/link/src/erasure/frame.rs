//! Frames of a coded broadcast.

use alloc::vec::Vec;

use quiver_crypto::Hasher;
use quiver_crypto::canonical::{Malformed, Reader, Writer};

use super::{MAX_DATA_PIECES, MAX_PIECES, parity_piece};
use crate::LinkError;

/// Bytes in front of a piece: kind (1), digest (4), length (2), index (1).
pub const CODED_OVERHEAD: usize = 8;
/// The longest message that is coded as one, in bytes. A longer one goes out as several.
pub const MAX_CODED_MESSAGE: usize = u16::MAX as usize;

/// Follows the kinds of datagrams of a board's session.
const KIND: u8 = 10;

/// A frame of a coded broadcast, unverified: anybody in range can send one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodedFrame<'a> {
    /// First bytes of the digest of the message: tells messages apart, and tells the receiver whether it
    /// decoded what the sender of these frames coded. It proves nothing of who that was.
    pub digest: [u8; 4],
    /// Bytes of the message; not 0.
    pub len: u16,
    /// Index of the piece: data first, then parity.
    pub index: u8,
    /// The piece. All of a message are of one length; the last of data is filled up with zeros.
    pub piece: &'a [u8],
}

impl<'a> CodedFrame<'a> {
    /// Number k of data pieces, which suffice.
    pub fn data(&self) -> usize {
        usize::from(self.len).div_ceil(self.piece.len().max(1))
    }

    /// The frame's bytes: [`CODED_OVERHEAD`] and the piece.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(KIND).fixed(&self.digest).u16(self.len).u8(self.index).fixed(self.piece);
        writer.finish()
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// [`LinkError::MalformedDatagram`]: another kind, no piece, no message, more data pieces than
    /// [`MAX_DATA_PIECES`], an index of 255, pieces longer than equal parts would be.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, LinkError> {
        Self::read(bytes).map_err(|_| LinkError::MalformedDatagram)
    }

    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != KIND {
            return Err(Malformed("kind"));
        }
        let frame = Self {
            digest: reader.array()?,
            len: reader.u16()?,
            index: reader.u8()?,
            piece: reader.take(bytes.len().saturating_sub(CODED_OVERHEAD))?,
        };
        reader.end()?;
        let (data, len) = (frame.data(), usize::from(frame.len));
        let fits = (1..=MAX_DATA_PIECES).contains(&data) && usize::from(frame.index) < MAX_PIECES;
        // One message has one division: equal parts, as long as they must be.
        if !fits || frame.piece.is_empty() || len.div_ceil(data) != frame.piece.len() {
            return Err(Malformed("pieces"));
        }
        Ok(frame)
    }
}

/// Returns true if a datagram claims to be a frame of a coded broadcast. It belongs to no session; endpoints
/// take it for malformed.
pub const fn is_coded(datagram: &[u8]) -> bool {
    matches!(datagram, [KIND, ..])
}

/// A message's digest.
pub(super) fn message_id(message: &[u8]) -> [u8; 32] {
    Hasher::new("quiver/1 coded broadcast").lp(message).finish()
}

/// First bytes of a message's digest.
pub(super) fn digest(message: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = message_id(message);
    [a, b, c, d]
}

/// The frames of a broadcast, each of at most `mtu` bytes, with as many parity frames as `parity` says for
/// the number of data frames ([`parity_for`](super::parity_for)), within [`MAX_PIECES`].
///
/// # Errors
/// [`LinkError::MessageTooLong`]: more than [`MAX_DATA_PIECES`] data frames, or than [`MAX_CODED_MESSAGE`]
/// bytes. [`LinkError::InvalidCode`]: an empty message, or no room in a frame.
pub fn code_broadcast(
    message: &[u8],
    mtu: usize,
    parity: impl FnOnce(usize) -> usize,
) -> Result<Vec<Vec<u8>>, LinkError> {
    let room = mtu.checked_sub(CODED_OVERHEAD).filter(|room| *room > 0).ok_or(LinkError::InvalidCode)?;
    let max = MAX_CODED_MESSAGE.min(room.saturating_mul(MAX_DATA_PIECES));
    let (data, len) = (message.len().div_ceil(room), message.len());
    if len == 0 {
        return Err(LinkError::InvalidCode);
    }
    if len > max {
        return Err(LinkError::MessageTooLong { len, max });
    }
    let piece_len = len.div_ceil(data);
    // Rounding up may leave fewer pieces of this length than were counted.
    let mut padded = message.to_vec();
    padded.resize(len.div_ceil(piece_len) * piece_len, 0);
    let pieces: Vec<&[u8]> = padded.chunks_exact(piece_len).collect();
    // A byte names the piece, so that a code has at most 255.
    let parity = parity(pieces.len()).min(MAX_PIECES - pieces.len());
    let (digest, len) = (digest(message), u16::try_from(len).map_err(|_| LinkError::InvalidCode)?);
    let frame = |index: usize, piece: &[u8]| CodedFrame { digest, len, index: index as u8, piece }.encode();
    let mut frames: Vec<_> = pieces.iter().enumerate().map(|(index, piece)| frame(index, piece)).collect();
    for row in 0..parity {
        frames.push(frame(pieces.len() + row, &parity_piece(&pieces, row)?));
    }
    Ok(frames)
}
