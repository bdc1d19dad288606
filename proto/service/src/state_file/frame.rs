//! Frames: sealed batches of records, each bound to its place in the file.

use std::path::Path;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Secret, aead, ct_eq, prf};
use zeroize::Zeroizing;

use super::Records;
use super::header::{DOMAIN, StateFileHeader};
use crate::{Error, Result};

/// length 4 ‖ nonce 12 ‖ mark 16
const PREAMBLE: usize = 32;
/// The longest ciphertext of one frame, in bytes: the snapshot of a leader of a million members has some 330
/// MB.
const FRAME_LIMIT: usize = 1 << 29;

/// Bytes that a disk writes as a whole, at a multiple of that many.
const SECTOR: usize = 512;
/// Zeros in a row of which a ciphertext has as good as never so many.
const UNWRITTEN: usize = 8;

/// The state of reading or writing: which frame comes next and what it must be bound to.
#[derive(Clone)]
pub(super) struct FrameChain {
    key: Secret<32>,
    header: Digest,
    index: u64,
    previous_tag: [u8; aead::TAG_LEN],
}

/// End of the acknowledged part of a file.
pub(super) enum Next {
    /// A good frame of so many bytes.
    Frame { length: usize, records: Records },
    /// The end of the file.
    End,
    /// An append that did not get to its end.
    Interrupted,
}

impl FrameChain {
    pub(super) fn new(header: &StateFileHeader, root: &Secret<32>) -> Self {
        Self {
            key: header.file_key(root),
            header: header.digest(),
            index: 0,
            previous_tag: [0; aead::TAG_LEN],
        }
    }

    fn after(&self, ciphertext: &[u8]) -> Self {
        let previous_tag = ciphertext.last_chunk().copied().unwrap_or_default();
        Self { key: self.key.clone(), header: self.header, index: self.index + 1, previous_tag }
    }

    /// header's hash ‖ index ‖ previous tag
    fn associated_data(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.fixed(&self.header).u64(self.index).fixed(&self.previous_tag);
        writer.finish()
    }

    /// Authenticates length and nonce before the ciphertext they describe has been read.
    fn mark(&self, length: &[u8], nonce: &[u8]) -> [u8; 16] {
        let tag = prf(&self.key, DOMAIN, "frame", &[&self.associated_data(), length, nonce]);
        tag.expose().first_chunk().copied().unwrap_or_default()
    }

    /// Seals records into the next frame; returns it and the chain as it stands after it.
    pub(super) fn seal<R: AsRef<[u8]>>(
        &self,
        path: &Path,
        records: &[R],
        nonce: [u8; 12],
    ) -> Result<(Vec<u8>, Self)> {
        // Room for all of it from the start: a growing buffer would leave copies behind.
        let room = records.iter().map(|record| 4 + record.as_ref().len()).sum();
        let mut writer = Writer::with_capacity(room);
        for record in records {
            writer.lp(record.as_ref());
        }
        let plaintext = Zeroizing::new(writer.finish());
        let ciphertext = aead::seal(&self.key, &nonce, &self.associated_data(), &plaintext);
        let length = match u32::try_from(ciphertext.len()) {
            Ok(length) if ciphertext.len() <= FRAME_LIMIT => length.to_be_bytes(),
            _ => {
                return Err(Error::TooLarge { path: path.into(), limit: FRAME_LIMIT as u64 });
            }
        };
        let mut frame = Vec::with_capacity(PREAMBLE + ciphertext.len());
        frame.extend_from_slice(&length);
        frame.extend_from_slice(&nonce);
        frame.extend_from_slice(&self.mark(&length, &nonce));
        frame.extend_from_slice(&ciphertext);
        let after = self.after(&ciphertext);
        Ok((frame, after))
    }

    /// Opens the next frame, with which the file goes on at this offset, and moves on. The error says in words what does
    /// not hold.
    pub(super) fn open(&mut self, rest: &[u8], offset: usize) -> std::result::Result<Next, &'static str> {
        if rest.is_empty() {
            return Ok(Next::End);
        }
        // A file may have grown without its content having arrived; then it reads as zeros.
        let (Some(preamble), false) = (rest.first_chunk::<PREAMBLE>(), rest.iter().all(|&byte| byte == 0))
        else {
            return Ok(Next::Interrupted);
        };
        let (length, nonce_and_mark) = preamble.split_at(4);
        let (nonce, mark) = nonce_and_mark.split_at(12);
        if !ct_eq(&self.mark(length, nonce), mark) {
            // The end of an append may be on the disk before its start is.
            return if has_unwritten_part(rest, offset) && !self.is_followed(rest) {
                Ok(Next::Interrupted)
            } else {
                Err("a frame's mark does not fit")
            };
        }
        let count = length.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes)) as usize;
        let Some(ciphertext) = rest.get(PREAMBLE..PREAMBLE + count) else {
            return Ok(Next::Interrupted);
        };
        let last = rest.len() == PREAMBLE + count;
        let nonce = nonce.first_chunk().copied().unwrap_or_default();
        let Ok(plaintext) = aead::open(&self.key, &nonce, &self.associated_data(), ciphertext) else {
            return if last && has_unwritten_part(rest, offset) {
                Ok(Next::Interrupted)
            } else {
                Err("a frame's content is not what was written")
            };
        };
        *self = self.after(ciphertext);
        Ok(Next::Frame { length: PREAMBLE + count, records: split(&plaintext)? })
    }

    /// Returns true if one of the next frames stands somewhere behind this one, of which nobody can tell the
    /// length: then this one was acknowledged, and has come to harm since.
    fn is_followed(&self, rest: &[u8]) -> bool {
        // Damage of one block may take many small frames along. Long rests are seldom, and looked through less closely.
        let most = match rest.len() {
            0..=0x10_0000 => 64,
            0x10_0001..=0x100_0000 => 16,
            _ => 2,
        };
        let shortest = PREAMBLE + aead::TAG_LEN;
        (shortest..rest.len().saturating_sub(shortest)).any(|place| {
            let Some((before, from)) = rest.split_at_checked(place) else { return false };
            let (Some(previous_tag), Some(preamble)) = (before.last_chunk(), from.first_chunk::<PREAMBLE>())
            else {
                return false;
            };
            let (length, nonce_and_mark) = preamble.split_at(4);
            let count = length.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes)) as usize;
            if count < aead::TAG_LEN || count > from.len() - PREAMBLE {
                return false;
            }
            let (nonce, mark) = nonce_and_mark.split_at(12);
            (1..=most).any(|later| {
                let chain = Self { index: self.index + later, previous_tag: *previous_tag, ..self.clone() };
                ct_eq(&chain.mark(length, nonce), mark)
            })
        })
    }
}

/// Returns true if a part of a frame that begins at this offset of the file reads as if it was never written.
fn has_unwritten_part(frame: &[u8], offset: usize) -> bool {
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let first = (SECTOR - offset % SECTOR).min(frame.len());
    let (first, others) = frame.split_at(first);
    is_zero(first)
        || others.chunks(SECTOR).any(is_zero)
        || frame.split(|byte| *byte != 0).any(|zeros| zeros.len() >= UNWRITTEN)
}

fn split(plaintext: &[u8]) -> std::result::Result<Records, &'static str> {
    let mut reader = Reader::new(plaintext);
    let mut records = Records::new();
    while reader.remaining() > 0 {
        let record = reader.lp(FRAME_LIMIT).map_err(|_| "a frame's records do not decode")?;
        records.push(Zeroizing::new(record.to_vec()));
    }
    Ok(records)
}
