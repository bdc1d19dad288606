//! The fingerprint of an authority, which binds keys and ciphertexts to its parameters.

use quiver_crypto::canonical::{Malformed, Reader};
use quiver_crypto::{Digest, Hasher, Hex};

/// The fingerprint of an authority's parameters: 32 bytes, SHA-256 over their encoding, the scheme's name
/// with it.
///
/// Every key and every ciphertext carries it, so that a mismatch is an error of its own and not a wrong
/// secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display, derive_more::Debug)]
#[debug("AuthorityFingerprint({self})")]
#[display("{}", Hex(_0))]
pub struct AuthorityFingerprint(Digest);

impl AuthorityFingerprint {
    /// Bytes of a fingerprint.
    pub const LEN: usize = 32;

    /// The authority that published the parameters so encoded.
    pub(crate) fn of_parameters(encoded: &[u8]) -> Self {
        Self(Hasher::new("QUIVER-ABE-v1 authority").lp(encoded).finish())
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.array().map(Self)
    }

    /// The fingerprint's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}
