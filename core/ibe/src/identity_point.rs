//! The public key of an identity (Q).

use quiver_pairing::{G2, Group};

use crate::Condition;

/// Domain of hashing identities to G2 (RFC 9380): that of signatures without augmentation, as drand and
/// DistributedIBE have it.
const DOMAIN: &str = "BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_";

/// Q = HashToG2(identity): what one encrypts to, beside the master public key. Public; 96 bytes encoded.
///
/// Hashing takes a third of a pairing's time, so callers keep the point of an identity that they use often.
#[derive(Clone, Copy, PartialEq, Eq, derive_more::Debug)]
#[debug("IdentityPoint(..)")]
pub struct IdentityPoint(G2);

impl IdentityPoint {
    /// Bytes of an encoded point.
    pub const LEN: usize = G2::ENCODED_LEN;

    /// The point of a condition.
    #[must_use]
    pub fn of(condition: &Condition) -> Self {
        Self::of_bytes(condition.as_str().as_bytes())
    }

    /// The point of any bytes, for identities of other systems: DistributedIBE hashes any bytes.
    #[must_use]
    pub fn of_bytes(identity: &[u8]) -> Self {
        // RFC 9380, hash_to_curve: nobody knows the logarithm of Q.
        Self(G2::hash(DOMAIN, &[identity]))
    }

    /// The encoding, compressed.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        self.0.encode()
    }

    pub(crate) const fn point(&self) -> &G2 {
        &self.0
    }
}
