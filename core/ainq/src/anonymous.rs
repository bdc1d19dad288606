//! Anonymous members: admitted by a key exchange that proves a policy and nothing else.
//!
//! W, the key that both sides have from such an exchange, takes the place of the pairwise secret T, and
//! everything after that is as for other members. But the membership has no identity, no public key and no
//! spare point, so it exists in one term of this leader alone: it is not in the roster's hash, in no replica,
//! and in no term that is opened later. It ends at a time that is known when it begins.

use quiver_crypto::Hex;

use crate::{AgreedSecret, KemKey, Suite, UnixTime};

/// Names an anonymous member for one membership: 16 bytes that both sides derived from their exchange, and
/// that link to no other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display, derive_more::Debug)]
#[debug("Pseudonym({self})")]
#[display("{}", Hex(_0))]
pub struct Pseudonym(pub [u8; 16]);

impl Pseudonym {
    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// State of an anonymous member at its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anonymous {
    /// Name of the drone for this membership.
    pub pseudonym: Pseudonym,
    /// End of the membership: the end of its credential's period, or earlier.
    pub until: UnixTime,
}

/// An anonymous join of the next epoch.
#[derive(Debug)]
pub struct Admission<S: Suite> {
    /// The anonymous member.
    pub member: Anonymous,
    /// W, from the exchange.
    pub secret: AgreedSecret,
    /// κ from the same run, where there is a second factor.
    pub kem: Option<KemKey<S>>,
}
