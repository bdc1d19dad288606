//! Errors of keys, statements, headers and decoding.

use quiver_crypto::WrongLength;
use quiver_crypto::aead::OpenError;
use quiver_crypto::canonical::Malformed;
use thiserror::Error;

/// Error of key management. The variants state the fact; none carries a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes are not the canonical encoding of a point of the group.
    #[error("not a canonical encoding of a point of the group")]
    InvalidPoint,
    /// A point is the identity, where that would make a secret public.
    #[error("the point is the identity")]
    IdentityPoint,
    /// Bytes are not the canonical encoding of a scalar, or the scalar is one that no key may be.
    #[error("not a scalar that may be used here")]
    InvalidScalar,
    /// A signature or proof does not verify.
    #[error("the signature does not verify")]
    InvalidSignature,
    /// Something belongs to another cryptographic suite.
    #[error("made for another suite")]
    WrongSuite,
    /// Something belongs to another deployment: another name or another master public key.
    #[error("made for another deployment")]
    WrongDeployment,
    /// The time until which something holds has passed.
    #[error("expired")]
    Expired,
    /// The time from which something holds has not come.
    #[error("not yet valid")]
    NotYetValid,
    /// A partial key does not satisfy s·P = R + H0(D,R,P)·P_pub.
    #[error("the partial key is not one the KGC issued for this identity and public value")]
    InvalidPartialKey,
    /// No pinned operator signed the token.
    #[error("the token is not signed by a known operator")]
    UnknownOperator,
    /// A request is not addressed to this KGC, or a reply comes from one that was not asked.
    #[error("the enrolment does not name this KGC")]
    WrongKgc,
    /// Something belongs to another authority than the one asked.
    #[error("made for another authority")]
    WrongAuthority,
    /// A header is signed by a drone that may not lead this group.
    #[error("the signer may not lead this group")]
    NotALeader,
    /// A drone may not join this group.
    #[error("not authorised for this group")]
    NotAuthorised,
    /// A drone is named by the revocation list or was evicted.
    #[error("revoked")]
    Revoked,
    /// Something newer is known already.
    #[error("older than what is known")]
    Stale,
    /// Something belongs to another group.
    #[error("made for another group")]
    WrongGroup,
    /// A key does not produce the confirmation tag it came with.
    #[error("the confirmation tag does not match")]
    WrongTag,
    /// An entry or a member is not at the slot it should be at.
    #[error("wrong slot")]
    WrongSlot,
    /// A broadcast has no entry for a member it must have one for.
    #[error("no entry for this member")]
    MissingEntry,
    /// A header of a term whose opening was missed: the member has no pairwise key in it and must join again.
    #[error("the opening of this term was missed")]
    TermNotOpened,
    /// The term lies too many rounds ahead of the newest one seen.
    #[error("the term lies too many rounds ahead")]
    TermTooFar,
    /// The header takes the member out of the group.
    #[error("removed from the group")]
    Removed,
    /// A term's opening uses another spare point than this one.
    #[error("not the spare point at hand")]
    WrongSpare,
    /// A header or a part of it belongs to another re-key strategy than the term's, or the suite has none
    /// such.
    #[error("not a re-key strategy of this term")]
    UnsupportedStrategy,
    /// Wraps build on an epoch that is not the one held: one was missed, or they come out of order.
    #[error("wraps for another epoch than the one held")]
    Gap,
    /// Wraps need the member's path, which it does not have: it restarted, or received no path since the term
    /// opened.
    #[error("the path of keys is not at hand")]
    MissingPath,
    /// Wraps are not those that the header binds.
    #[error("not the wraps that the header binds")]
    WrongWraps,
    /// A header names a parameter set of ML-KEM, and the key κ of that set and of its count is not at hand.
    #[error("no key of the term's `kem` is at hand")]
    MissingKem,
    /// A header names another parameter set of ML-KEM than this end was set to, or none.
    #[error("another `kem` than this end is set to")]
    OtherKem,
    /// Bytes are not the canonical encoding of what was expected.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// A list or a byte string exceeds its bound.
    #[error("{what} exceeds {limit}")]
    TooLong {
        /// Name of the value that is too long.
        what: &'static str,
        /// Bytes or items it may have.
        limit: usize,
    },
    /// A name is empty, too long, or has a character outside `A-Z a-z 0-9 . _ -`.
    #[error("a name has 1 to 64 characters out of A-Z a-z 0-9 . _ -")]
    InvalidName,
    /// A sealed message does not open.
    #[error("the seal does not open")]
    SealBroken,
    /// Something was received before.
    #[error("received before")]
    Replay,
    /// A counter or a table has no room left.
    #[error("exhausted")]
    Exhausted,
}

impl From<Malformed> for Error {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}

impl From<WrongLength> for Error {
    fn from(_: WrongLength) -> Self {
        Self::Malformed("secret of a wrong length")
    }
}

impl From<OpenError> for Error {
    fn from(_: OpenError) -> Self {
        Self::SealBroken
    }
}
