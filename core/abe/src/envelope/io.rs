//! Seals and opens envelopes over [`Read`] and [`Write`], in constant memory.

extern crate std;

use alloc::vec;
use alloc::vec::Vec;
use std::io::{self, Read, Write};

use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use super::header::EnvelopeHeader;
use super::sending_session::EnvelopeStart;
use super::stream::{CHUNK_LEN, Opener};
use super::{EnvelopeError, Signer, Splitter, Verifier};

/// An error of the envelope, or of its source or destination.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IoError {
    /// The envelope.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// Reading.
    #[error("read: {0}")]
    Read(#[source] io::Error),
    /// Writing.
    #[error("write: {0}")]
    Write(#[source] io::Error),
}

/// Seals everything that `from` has into `to`. Needs 128 KiB of memory, however much that is. Gives the bytes
/// read.
///
/// # Errors
/// [`IoError`]. The bytes written until then are no envelope.
pub fn seal(
    message: EnvelopeStart,
    mut from: impl Read,
    mut to: impl Write,
    signer: Option<&dyn Signer>,
    rng: &mut dyn CryptoRngCore,
) -> Result<u64, IoError> {
    let EnvelopeStart { header, mut sealer, .. } = message;
    to.write_all(&header).map_err(IoError::Write)?;
    let mut chunk = Zeroizing::new(vec![0; CHUNK_LEN]);
    let mut total = 0;
    loop {
        let len = fill(&mut from, &mut chunk).map_err(IoError::Read)?;
        let data = chunk.get(..len).unwrap_or_default();
        if !data.is_empty() {
            to.write_all(&sealer.seal(data)?).map_err(IoError::Write)?;
        }
        total += len as u64;
        if len < CHUNK_LEN {
            break;
        }
    }
    to.write_all(&sealer.finish(signer, rng)?).and_then(|()| to.flush()).map_err(IoError::Write)?;
    Ok(total)
}

/// Reads the header in front of an envelope, and not a byte more.
///
/// # Errors
/// [`IoError`].
pub fn read_header(mut from: impl Read) -> Result<EnvelopeHeader, IoError> {
    let mut bytes = Vec::new();
    let mut wanted = 8;
    loop {
        let had = bytes.len();
        from.by_ref().take((wanted - had) as u64).read_to_end(&mut bytes).map_err(IoError::Read)?;
        // The name of the format is checked first, so that another format is not called truncated.
        let len = EnvelopeHeader::len_of(&bytes)?;
        if bytes.len() < wanted {
            return Err(EnvelopeError::Truncated.into());
        }
        match len {
            Some(len) if len > bytes.len() => wanted = len,
            _ => return Ok(EnvelopeHeader::decode(&bytes)?.0),
        }
    }
}

/// Opens the chunks that follow a header in `from` into `to`, and returns the sender. Needs some 200 KiB of
/// memory.
///
/// The output may be used only when this returns without an error: write to a file under another name, and
/// rename it then.
///
/// # Errors
/// [`IoError`].
pub fn open<V: Verifier + ?Sized>(
    mut opener: Opener,
    mut from: impl Read,
    mut to: impl Write,
    verifier: &V,
) -> Result<Option<V::Sender>, IoError> {
    let mut splitter = Splitter::new(opener.trailer_len());
    let mut piece = vec![0; CHUNK_LEN];
    loop {
        let len = fill(&mut from, &mut piece).map_err(IoError::Read)?;
        let mut rest = piece.get(..len).unwrap_or_default();
        while !rest.is_empty() {
            rest = splitter.push(rest);
            if let Some(chunk) = splitter.chunk() {
                to.write_all(&opener.open(&chunk)?).map_err(IoError::Write)?;
            }
        }
        if len < piece.len() {
            break;
        }
    }
    let (last, trailer) = splitter.finish()?;
    if let Some(last) = last {
        to.write_all(&opener.open(&last)?).map_err(IoError::Write)?;
    }
    let sender = opener.finish(&trailer, verifier)?;
    to.flush().map_err(IoError::Write)?;
    Ok(sender)
}

/// Reads until the buffer is full or the input ends.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
