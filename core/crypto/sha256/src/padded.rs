//! Blocks and padding of a message: FIPS 180-4, 5.1.1 and 5.2.1.

use core::slice::from_ref;

use crate::backend::{compress, erase, erase_state};

/// State of the hash between two blocks.
pub(crate) type HashState = [u32; 8];

/// H(0), FIPS 180-4, 5.3.3.
pub(crate) const START: HashState =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;
/// Bytes of the last block in front of the message's length in bits.
const LENGTH_AT: usize = BLOCK - 8;

/// A message up to somewhere.
#[derive(Clone)]
pub(crate) struct Padded {
    state: HashState,
    /// The message's bytes that were not hashed yet, and zeros.
    block: [u8; BLOCK],
    /// Number of the block's bytes that are the message's; never all.
    filled: usize,
    /// Number of hashed blocks.
    blocks: u64,
}

impl Padded {
    /// Goes on behind so many blocks, which made this of the state.
    pub(crate) const fn behind(blocks: u64, state: HashState) -> Self {
        Self { state, block: [0; BLOCK], filled: 0, blocks }
    }

    pub(crate) fn update(&mut self, mut part: &[u8]) {
        if let Some(room) = self.block.get_mut(self.filled..)
            && let Some((now, later)) = part.split_at_checked(room.len())
        {
            room.copy_from_slice(now);
            compress(&mut self.state, from_ref(&self.block));
            let (whole, rest) = later.as_chunks();
            compress(&mut self.state, whole);
            self.block = [0; BLOCK];
            (self.filled, self.blocks) = (0, self.blocks + 1 + whole.len() as u64);
            part = rest;
        }
        let filled = self.filled + part.len();
        if let Some(room) = self.block.get_mut(self.filled..filled) {
            room.copy_from_slice(part);
            self.filled = filled;
        }
    }

    /// The hash.
    pub(crate) fn finish(&mut self) -> [u8; 32] {
        self.close();
        let mut hash = [0; 32];
        write(&mut hash, &self.state);
        hash
    }

    /// The hash of a message that is this one's hash, behind so many blocks, which made this of the state.
    pub(crate) fn finish_behind(&mut self, blocks: u64, state: HashState) -> [u8; 32] {
        self.close();
        self.block = [0; BLOCK];
        write(&mut self.block, &self.state);
        (self.state, self.filled, self.blocks) = (state, 32, blocks);
        self.finish()
    }

    /// Erases the buffered part of a message that depends on a key, and its hash.
    pub(crate) fn erase(&mut self) {
        erase_state(&mut self.state);
        erase(&mut self.block);
    }

    fn close(&mut self) {
        let bits = 8 * (BLOCK as u64 * self.blocks + self.filled as u64);
        if let Some(end) = self.block.get_mut(self.filled) {
            *end = 0x80;
        }
        if self.filled >= LENGTH_AT {
            compress(&mut self.state, from_ref(&self.block));
            self.block = [0; BLOCK];
        }
        if let Some(length) = self.block.last_chunk_mut() {
            *length = bits.to_be_bytes();
        }
        compress(&mut self.state, from_ref(&self.block));
    }
}

/// A state as bytes, big-endian.
fn write(bytes: &mut [u8], state: &HashState) {
    for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn nothing_of_a_message_is_left_when_it_is_erased() {
        let mut padded = Padded::behind(0, START);
        padded.update(&[7; 100]);
        padded.erase();
        assert_eq!((padded.state, padded.block), ([0; 8], [0; BLOCK]));
    }

    #[test]
    fn messages_of_all_lengths_in_parts_of_all_lengths_are_hashed_as_by_sha2() {
        let message: [u8; 300] = core::array::from_fn(|i| i as u8);
        for len in 0..message.len() {
            let message = &message[..len];
            for part in [1, 3, 31, 64, 65, 200] {
                let mut padded = Padded::behind(0, START);
                message.chunks(part).for_each(|part| padded.update(part));
                assert_eq!(
                    padded.finish()[..],
                    Sha256::digest(message)[..],
                    "{len} bytes in parts of {part}"
                );
            }
        }
    }
}
