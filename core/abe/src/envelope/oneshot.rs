//! Seals and opens envelopes that fit into memory.

use alloc::vec::Vec;

use quiver_crypto::Zeroizing;
use rand_core::CryptoRngCore;

use super::sending_session::EnvelopeStart;
use super::stream::{CHUNK_LEN, Opener, SEALED_CHUNK_LEN};
use super::{EnvelopeError, Signer, Verifier};

/// Seals `data` as one message: header, chunks and trailer.
///
/// # Errors
/// As [`Sealer`](super::Sealer).
pub fn seal_bytes(
    message: EnvelopeStart,
    data: &[u8],
    signer: Option<&dyn Signer>,
    rng: &mut dyn CryptoRngCore,
) -> Result<Vec<u8>, EnvelopeError> {
    let EnvelopeStart { header, mut sealer, .. } = message;
    let mut sealed = header;
    for chunk in data.chunks(CHUNK_LEN) {
        sealed.extend(sealer.seal(chunk)?);
    }
    sealed.extend(sealer.finish(signer, rng)?);
    Ok(sealed)
}

/// Content of an envelope, and the sender whose signature verified.
pub type OpenedBytes<Sender> = (Zeroizing<Vec<u8>>, Option<Sender>);

/// Opens what follows a header. Nothing is released before the whole has been verified.
///
/// # Errors
/// As [`Opener`].
pub fn open_bytes<V: Verifier + ?Sized>(
    mut opener: Opener,
    sealed: &[u8],
    verifier: &V,
) -> Result<OpenedBytes<V::Sender>, EnvelopeError> {
    let data = sealed.len().checked_sub(opener.trailer_len()).ok_or(EnvelopeError::Truncated)?;
    let (chunks, trailer) = sealed.split_at_checked(data).ok_or(EnvelopeError::Truncated)?;
    // Opened data is shorter than sealed data, so that the buffer never grows and leaves a copy behind.
    let mut data = Zeroizing::new(Vec::with_capacity(data));
    for chunk in chunks.chunks(SEALED_CHUNK_LEN) {
        data.extend_from_slice(&opener.open(chunk)?);
    }
    let sender = opener.finish(trailer, verifier)?;
    Ok((data, sender))
}
