//! Splits a byte stream that arrives in pieces of any length into chunks.

use alloc::vec::Vec;

use quiver_crypto::aead::TAG_LEN;

use super::stream::SEALED_CHUNK_LEN;
use super::{EnvelopeError, MAX_SIGNATURE_LEN};

/// Holds back as many bytes as the trailer has, because only the end of the bytes tells where it is.
///
/// Never holds more than a chunk and a trailer: some 66 KB.
#[derive(Debug)]
pub struct Splitter {
    held: Vec<u8>,
    trailer_len: usize,
}

impl Splitter {
    /// Splits a message whose trailer has this many bytes, as
    /// [`Opener::trailer_len`](super::Opener::trailer_len) says.
    #[must_use]
    pub fn new(trailer_len: usize) -> Self {
        let trailer_len = trailer_len.min(MAX_SIGNATURE_LEN + TAG_LEN);
        Self { held: Vec::with_capacity(SEALED_CHUNK_LEN + trailer_len), trailer_len }
    }

    /// Takes as much of `bytes` as fits, gives back the rest. Call [`chunk`](Self::chunk) in between.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let room = (SEALED_CHUNK_LEN + self.trailer_len).saturating_sub(self.held.len());
        let (taken, rest) = bytes.split_at(room.min(bytes.len()));
        self.held.extend_from_slice(taken);
        rest
    }

    /// A full data chunk, if one is surely there.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        if self.held.len() < SEALED_CHUNK_LEN + self.trailer_len {
            return None;
        }
        let rest = self.held.split_off(SEALED_CHUNK_LEN);
        Some(core::mem::replace(&mut self.held, rest))
    }

    /// Ends the stream, as there are no more bytes: the last data chunk, unless it was full or there is none,
    /// and the trailer.
    ///
    /// # Errors
    /// [`EnvelopeError::Truncated`] if not even a trailer is left.
    pub fn finish(mut self) -> Result<(Option<Vec<u8>>, Vec<u8>), EnvelopeError> {
        let data = self.held.len().checked_sub(self.trailer_len).ok_or(EnvelopeError::Truncated)?;
        let trailer = self.held.split_off(data);
        Ok((Some(self.held).filter(|last| !last.is_empty()), trailer))
    }
}
