//! The chunks of one message: the STREAM construction of Hoang, Reyhanitabar, Rogaway and Vizár (*Online
//! Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance*, CRYPTO 2015, eprint 2015/189) over
//! ChaCha20-Poly1305.
//!
//! ```text
//! chunks  = data chunk* ‖ trailer
//! data    = AEAD(K_msg, nonce = 7 zero bytes ‖ position (4) ‖ 0, aad = H(header), 65,536 bytes; 1 to 65,536 in the last)
//! trailer = AEAD(K_msg, nonce = 7 zero bytes ‖ position (4) ‖ 1, aad = H(header), signature or nothing)
//! ```
//!
//! K_msg is used for one message, so its nonces may begin at zero. The flag in the trailer's nonce is what
//! tells a whole message from a truncated one. The content of a chunk that opened may be *held*, not yet
//! believed: only the trailer says that the message is whole and whose it is.

use alloc::vec::Vec;

use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::KeyInit;
use chacha20poly1305::aead::stream::{DecryptorBE32, EncryptorBE32};
use quiver_crypto::aead::TAG_LEN;
use quiver_crypto::{Digest, Hasher, Zeroizing};
use rand_core::CryptoRngCore;

use super::EnvelopeError;
use super::chain::MessageKey;
use super::header::EnvelopeHeader;
use super::sender::{SessionContext, Signer, Verifier};

/// Bytes of plaintext in a data chunk, but for a message's last.
pub const CHUNK_LEN: usize = 65_536;
/// Bytes of a full data chunk as it travels.
pub const SEALED_CHUNK_LEN: usize = CHUNK_LEN + TAG_LEN;

/// State that sealing and opening share: the hash of header and ciphertext so far, and its length.
struct StreamProgress {
    context: SessionContext,
    number: u32,
    aad: Digest,
    hash: Hasher,
    chunks: u64,
    /// True if the last data chunk was a short one.
    short: bool,
}

impl StreamProgress {
    fn new(context: SessionContext, number: u32, header: &[u8]) -> Self {
        // §E3: H("quiver/1 envelope content", header, sealed data), to be signed.
        let hash = Hasher::new("quiver/1 envelope content").lp(header);
        Self { context, number, aad: EnvelopeHeader::digest(header), hash, chunks: 0, short: false }
    }

    /// Notes a data chunk.
    fn note(&mut self, sealed: &[u8]) {
        self.hash = self.hash.clone().fixed(sealed);
        self.chunks += 1;
        self.short = sealed.len() < SEALED_CHUNK_LEN;
    }

    fn statement(&self) -> Vec<u8> {
        self.context.statement(self.number, &self.hash.clone().finish())
    }
}

/// Seals the chunks of one message.
pub struct Sealer {
    stream: EncryptorBE32<ChaCha20Poly1305>,
    progress: StreamProgress,
}

impl core::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Sealer(session {}, {} chunks)", self.progress.context.session, self.progress.chunks)
    }
}

impl Sealer {
    pub(super) fn new(key: &MessageKey, context: SessionContext, number: u32, header: &[u8]) -> Self {
        let cipher = ChaCha20Poly1305::new(key.0.expose().into());
        // §E3: STREAM with a zero prefix, since K_msg seals one message.
        let stream = EncryptorBE32::from_aead(cipher, &[0; 7].into());
        Self { stream, progress: StreamProgress::new(context, number, header) }
    }

    /// Seals the next chunk: [`CHUNK_LEN`] bytes, or 1 to as many if it is the last. The result is 16 bytes
    /// longer.
    ///
    /// # Errors
    /// [`EnvelopeError::ChunkLength`], or [`EnvelopeError::TooLong`] after 2^32 - 1 chunks.
    pub fn seal(&mut self, data: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
        if data.is_empty() || data.len() > CHUNK_LEN || self.progress.short {
            return Err(EnvelopeError::ChunkLength);
        }
        let mut chunk = Vec::with_capacity(data.len() + TAG_LEN);
        chunk.extend_from_slice(data);
        // §E3: nonce 7 zero bytes ‖ position ‖ 0, AAD the header's hash.
        let sealed = self.stream.encrypt_next_in_place(&self.progress.aad, &mut chunk);
        if sealed.is_err() {
            // The buffer may hold plaintext; it is erased here.
            drop(Zeroizing::new(chunk));
            return Err(EnvelopeError::TooLong);
        }
        self.progress.note(&chunk);
        Ok(chunk)
    }

    /// Ends the message: signs it, if the session names a sender, and seals the signature.
    ///
    /// # Errors
    /// [`EnvelopeError::WrongSigner`] if the signer is not the session's sender, or is missing.
    pub fn finish(
        self,
        signer: Option<&dyn Signer>,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Vec<u8>, EnvelopeError> {
        let context = &self.progress.context;
        let mut trailer = match signer {
            None if context.is_signed() => return Err(EnvelopeError::WrongSigner),
            None => Vec::new(),
            // §E3: the trailer is the signature of the sender that the header names, and of no other.
            Some(signer) if *signer.public() != *context.sender => return Err(EnvelopeError::WrongSigner),
            Some(signer) => signer.sign(&self.progress.statement(), rng),
        };
        if trailer.len() != context.signature_len {
            return Err(EnvelopeError::OutOfBounds("the sender's signature"));
        }
        // §E3: the nonce of the trailer ends in 1.
        self.stream
            .encrypt_last_in_place(&self.progress.aad, &mut trailer)
            .map_err(|_| EnvelopeError::TooLong)?;
        Ok(trailer)
    }
}

/// Opens the chunks of one message.
pub struct Opener {
    stream: DecryptorBE32<ChaCha20Poly1305>,
    progress: StreamProgress,
}

impl core::fmt::Debug for Opener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Opener(session {}, {} chunks)", self.progress.context.session, self.progress.chunks)
    }
}

impl Opener {
    pub(super) fn new(key: &MessageKey, context: SessionContext, number: u32, header: &[u8]) -> Self {
        let cipher = ChaCha20Poly1305::new(key.0.expose().into());
        let stream = DecryptorBE32::from_aead(cipher, &[0; 7].into());
        Self { stream, progress: StreamProgress::new(context, number, header) }
    }

    /// Bytes of the trailer as it travels.
    #[must_use]
    pub const fn trailer_len(&self) -> usize {
        self.progress.context.signature_len + TAG_LEN
    }

    /// Opens the next data chunk. Its content is genuine, but the message may yet turn out to be truncated or
    /// signed by somebody else: believe it when [`finish`](Self::finish) does.
    ///
    /// # Errors
    /// [`EnvelopeError::Chunk`] with its number.
    pub fn open(&mut self, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, EnvelopeError> {
        let damaged = EnvelopeError::Chunk(self.progress.chunks);
        if sealed.len() <= TAG_LEN || sealed.len() > SEALED_CHUNK_LEN || self.progress.short {
            return Err(damaged);
        }
        let mut data = Zeroizing::new(sealed.to_vec());
        self.stream.decrypt_next_in_place(&self.progress.aad, &mut *data).map_err(|_| damaged)?;
        self.progress.note(sealed);
        Ok(data)
    }

    /// Opens the trailer, and returns the sender: one whose signature verified, or, if the session names
    /// none, `None`.
    ///
    /// # Errors
    /// [`EnvelopeError::Chunk`] if this is not the trailer of the chunks opened,
    /// [`EnvelopeError::WrongSignature`].
    pub fn finish<V: Verifier + ?Sized>(
        self,
        sealed: &[u8],
        verifier: &V,
    ) -> Result<Option<V::Sender>, EnvelopeError> {
        let progress = self.progress;
        let damaged = EnvelopeError::Chunk(progress.chunks);
        let mut signature = sealed.to_vec();
        // §E3: the last-block flag in the nonce: a chunk never passes for the trailer.
        self.stream.decrypt_last_in_place(&progress.aad, &mut signature).map_err(|_| damaged.clone())?;
        if signature.len() != progress.context.signature_len {
            return Err(damaged);
        }
        // §E3: an unsigned envelope has no sender, whatever its content says.
        if !progress.context.is_signed() {
            return Ok(None);
        }
        verifier
            .verify(&progress.context.sender, &progress.statement(), &signature)
            .map(Some)
            .ok_or(EnvelopeError::WrongSignature)
    }
}
