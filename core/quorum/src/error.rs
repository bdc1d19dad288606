//! Errors of a quorum, with the KGCs to blame.

use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_crypto::canonical::Malformed;
use thiserror::Error;

/// Why a step was refused. [`culprits`](Self::culprits) says who is to blame; no variant carries a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Numbers that make no quorum.
    #[error("a quorum has 2 ≤ t ≤ n ≤ 64 and 2t > n, not t = {threshold} of n = {members}")]
    InvalidParameters {
        /// n.
        members: u16,
        /// t.
        threshold: u16,
    },
    /// A KGC that this quorum or this step does not have.
    #[error("KGC {0} takes no part in this")]
    UnknownKgc(KgcId),
    /// A KGC is named twice.
    #[error("KGC {0} is named twice")]
    DuplicateKgc(KgcId),
    /// Bytes are not the canonical encoding of what was expected.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// Bytes are not the canonical encoding of a point of the group other than the identity.
    #[error("not a canonical encoding of a point of the group")]
    InvalidPoint,
    /// Bytes are not the canonical encoding of a scalar.
    #[error("not a canonical encoding of a scalar")]
    InvalidScalar,
    /// Stored or received for another suite or quorum.
    #[error("made for another quorum")]
    WrongQuorum,
    /// Shares of different versions do not combine: one was refreshed and the other was not.
    #[error("shares of version {actual} where version {expected} is in use")]
    WrongVersion {
        /// The version at hand.
        expected: u32,
        /// The version that was met.
        actual: u32,
    },
    /// The public shares do not lie on one polynomial of degree t − 1 with the master public key.
    #[error("the public shares do not belong to one secret")]
    InconsistentShares,
    /// Fewer KGCs than the threshold, or more than there are.
    #[error("{actual} KGCs where {threshold} are needed")]
    WrongNumber {
        /// How many there are.
        actual: usize,
        /// How many are needed at least.
        threshold: u16,
    },
    /// A signing package has another commitment for this KGC than the one its nonces belong to, or none.
    #[error("the signing package does not have this KGC's commitment")]
    WrongCommitment,
    /// Commitments that add up to the identity, which nobody meets by chance.
    #[error("the commitments cancel out")]
    DegenerateCommitments,
    /// Signature shares that do not verify: the aggregate is not made of them.
    #[error("signature shares that do not verify")]
    InvalidSignatureShares {
        /// Who sent them, in ascending order.
        culprits: Vec<KgcId>,
    },
    /// A message of a round is no message of that round: wrong length, not canonical, not of the group.
    #[error("KGC {culprit} sent what is no message of this round")]
    InvalidMessage {
        /// Who sent it.
        culprit: KgcId,
    },
    /// A dealer does not know the secret it commits to.
    #[error("KGC {culprit} has not proven that it knows its secret")]
    InvalidProof {
        /// Who sent the proof.
        culprit: KgcId,
    },
    /// A share, delta or sum does not fit the commitments its sender made.
    #[error("KGC {culprit} sent a share that is not the one it committed to")]
    InvalidShare {
        /// Who sent it.
        culprit: KgcId,
    },
    /// A KGC said two different things where it may say one.
    #[error("KGC {culprit} contradicts itself")]
    Contradiction {
        /// Who did.
        culprit: KgcId,
    },
    /// A KGC has seen other messages of the first round than this one: it lies, or somebody told the two
    /// different things.
    #[error("KGC {with} has another record of the first round")]
    EchoMismatch {
        /// Whose record differs.
        with: KgcId,
    },
    /// The round is not over.
    #[error("messages of {} KGCs are missing", missing.len())]
    Incomplete {
        /// Whose, in ascending order.
        missing: Vec<KgcId>,
    },
    /// FROST refused for a reason that the checks before it exclude.
    #[error("refused by FROST")]
    Frost,
}

impl Error {
    /// The KGCs that caused this by what they sent. Empty if nobody did, or nobody can tell who.
    ///
    /// An [`EchoMismatch`](Self::EchoMismatch) names nobody: either of two KGCs may have lied, or the one
    /// that told them different things.
    #[must_use]
    pub fn culprits(&self) -> &[KgcId] {
        match self {
            Self::InvalidSignatureShares { culprits } => culprits,
            Self::InvalidMessage { culprit }
            | Self::InvalidProof { culprit }
            | Self::InvalidShare { culprit }
            | Self::Contradiction { culprit } => core::slice::from_ref(culprit),
            _ => &[],
        }
    }
}

impl From<Malformed> for Error {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}

/// A step that could not be taken, and the state as it was before.
#[derive(Debug, Error)]
#[error("{error}")]
pub struct Refused<T> {
    /// The state, unchanged.
    pub state: T,
    /// Why.
    pub error: Error,
}
