//! Signatures of senders, inside the encryption: [`Signer`] and [`Verifier`].
//!
//! The statement names policy or attributes, sender, session, message number, and the hash of header and all
//! ciphertext before the trailer. How a sender signs is the caller's affair; in Quiver it is the drone's own
//! signature with the label `envelope`.

use alloc::sync::Arc;
use alloc::vec::Vec;

use quiver_crypto::Digest;
use quiver_crypto::canonical::Writer;
use rand_core::CryptoRngCore;

use super::EnvelopeError;
use super::header::{MAX_SENDER_LEN, MAX_SIGNATURE_LEN, SessionId};

/// Signs envelopes.
pub trait Signer {
    /// The public key in its own encoding, 1 to [`MAX_SENDER_LEN`] bytes.
    fn public(&self) -> Vec<u8>;

    /// Bytes of each signature, 1 to [`MAX_SIGNATURE_LEN`].
    fn signature_len(&self) -> usize;

    /// Signs a statement.
    fn sign(&self, statement: &[u8], rng: &mut dyn CryptoRngCore) -> Vec<u8>;
}

/// Verifies signatures of envelopes.
pub trait Verifier {
    /// A sender whose signature verified.
    type Sender;

    /// Checks that the holder of this public key signed the statement, and that it may.
    fn verify(&self, sender: &[u8], statement: &[u8], signature: &[u8]) -> Option<Self::Sender>;
}

/// Common data of a session's messages, for statements. `sender` is empty if it is unsigned.
#[derive(Clone, Debug)]
pub(super) struct SessionContext {
    pub(super) session: SessionId,
    pub(super) target: Arc<[u8]>,
    pub(super) sender: Arc<[u8]>,
    pub(super) signature_len: usize,
}

impl SessionContext {
    pub(super) fn statement(&self, number: u32, digest: &Digest) -> Vec<u8> {
        let mut writer = Writer::new();
        // §E3: lp(policy or attributes) ‖ lp(sender) ‖ session ‖ number ‖ hash of the content.
        writer.lp(&self.target).lp(&self.sender).fixed(&self.session.0).u32(number).fixed(digest);
        writer.finish()
    }

    pub(super) fn is_signed(&self) -> bool {
        !self.sender.is_empty()
    }
}

/// Public key of the signer and length of its signatures; empty and zero without one.
pub(super) fn describe(signer: Option<&dyn Signer>) -> Result<(Vec<u8>, u16), EnvelopeError> {
    let Some(signer) = signer else {
        return Ok((Vec::new(), 0));
    };
    let (public, len) = (signer.public(), signer.signature_len());
    if public.is_empty() || public.len() > MAX_SENDER_LEN {
        return Err(EnvelopeError::OutOfBounds("the sender's key"));
    }
    match u16::try_from(len) {
        Ok(short @ 1..) if len <= MAX_SIGNATURE_LEN => Ok((public, short)),
        _ => Err(EnvelopeError::OutOfBounds("the sender's signature")),
    }
}
