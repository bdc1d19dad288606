//! Errors of a quorum, with the KGCs to blame.

use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_crypto::canonical::Malformed;
use thiserror::Error;

/// Reason of a refused step. [`culprits`](Self::culprits) names the KGCs to blame; no variant carries a
/// secret.
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
        /// The version held.
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
        /// Number of KGCs.
        actual: usize,
        /// The least number needed.
        threshold: u16,
    },
    /// A signing package has another commitment for this KGC than the one its nonces belong to, or none.
    #[error("the signing package does not have this KGC's commitment")]
    WrongCommitment,
    /// Commitments that add up to the identity, which does not happen by chance.
    #[error("the commitments cancel out")]
    DegenerateCommitments,
    /// Signature shares that do not verify: the aggregate is not made of them.
    #[error("signature shares that do not verify")]
    InvalidSignatureShares {
        /// The senders, in ascending order.
        culprits: Vec<KgcId>,
    },
    /// A message of a round is no message of that round: wrong length, not canonical, not of the group.
    #[error("KGC {culprit} sent what is no message of this round")]
    InvalidMessage {
        /// The sender.
        culprit: KgcId,
    },
    /// A dealer does not know the secret it commits to.
    #[error("KGC {culprit} has not proven that it knows its secret")]
    InvalidProof {
        /// The sender of the proof.
        culprit: KgcId,
    },
    /// A share, delta or sum does not fit the commitments its sender made.
    #[error("KGC {culprit} sent a share that is not the one it committed to")]
    InvalidShare {
        /// The sender.
        culprit: KgcId,
    },
    /// A KGC sent two different messages where it may send one.
    #[error("KGC {culprit} contradicts itself")]
    Contradiction {
        /// The sender.
        culprit: KgcId,
    },
    /// A KGC has received other messages of the first round than this one: it lies, or a third one sent
    /// different messages to the two.
    #[error("KGC {with} has another record of the first round")]
    EchoMismatch {
        /// The KGC whose record differs.
        with: KgcId,
    },
    /// The round is not over.
    #[error("messages of {} KGCs are missing", missing.len())]
    Incomplete {
        /// The missing KGCs, in ascending order.
        missing: Vec<KgcId>,
    },
    /// FROST refused for a reason that the checks before it exclude.
    #[error("refused by FROST")]
    Frost,
}

impl Error {
    /// The KGCs whose messages caused this. Empty if none did, or it cannot be decided which.
    ///
    /// An [`EchoMismatch`](Self::EchoMismatch) names none: either of two KGCs may have lied, or the one that
    /// sent them different messages.
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
pub struct RefusedStep<T> {
    /// The state, unchanged.
    pub state: T,
    /// The reason.
    pub error: Error,
}
