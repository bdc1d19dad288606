//! Errors of conditions, ciphertexts, shares and decoding.

use alloc::vec::Vec;
use core::fmt;

use quiver_crypto::canonical::Malformed;
use quiver_pairing::PairingError;
use thiserror::Error;

use crate::{MAX_MESSAGE_LEN, MAX_SHARES};

/// Error of identity-based encryption. The variants state the fact and name the offender; none carries a
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A text is no condition in its canonical spelling.
    #[error("not a condition: {0}")]
    InvalidCondition(&'static str),
    /// A condition is of a kind that this build does not know.
    #[error("conditions are of the kinds `mission`, `drone` and `not-before`")]
    UnknownKind,
    /// A message is empty or longer than [`MAX_MESSAGE_LEN`].
    #[error("a message has 1 to {MAX_MESSAGE_LEN} bytes, not {0}")]
    MessageLength(usize),
    /// A ciphertext was altered, is for another identity, or was made under another master public key: which
    /// of these cannot be told.
    #[error("the ciphertext does not open with this key")]
    Decryption,
    /// No scalar in 65,534 hashes: this does not happen.
    #[error("hashing to a scalar failed")]
    NoScalar,
    /// Bytes are not the encoding of a point of the group's subgroup, or are that of the identity.
    #[error("not a point of {0} other than the identity")]
    InvalidPoint(&'static str),
    /// Bytes are not the encoding of a scalar from 1 to r − 1.
    #[error("not a scalar other than zero")]
    InvalidScalar,
    /// Bytes are not the canonical encoding of what was expected.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// A threshold of zero or above the number of shares, or more than [`MAX_SHARES`] shares.
    #[error("no {threshold} of {count} is possible: 1 ≤ t ≤ n ≤ {MAX_SHARES}")]
    Threshold {
        /// Shares needed.
        threshold: usize,
        /// Shares there are.
        count: usize,
    },
    /// A share has the index 0, at which the master key is.
    #[error("a share has an index of 1 or above")]
    ZeroIndex,
    /// Two public shares of one index, or out of order.
    #[error("the index {0} is given twice or out of order")]
    DuplicateIndex(u16),
    /// Public shares do not lie on one polynomial with the master public key.
    #[error("the public shares do not share the master public key")]
    InconsistentShares,
    /// A master share is not the one that the public shares or the commitment say.
    #[error("the master share {0} is not the one that was committed to")]
    InvalidMasterShare(u16),
    /// Master shares do not fit the commitment.
    #[error("master shares are not those that were committed to: {0:?}")]
    InvalidMasterShares(Vec<u16>),
    /// Not enough key shares.
    #[error("{given} key shares are too few, {needed} are needed")]
    TooFewShares {
        /// Number of needed shares.
        needed: usize,
        /// Number of given shares.
        given: usize,
    },
    /// Key shares are wrong: leave out what these KGCs sent and ask others. Ascending by index, each index
    /// once.
    #[error("invalid key shares: {}", Listed(.culprits))]
    InvalidKeyShares {
        /// The KGCs, and the mistakes of their shares.
        culprits: Vec<Culprit>,
    },
    /// An identity key is not that of the identity under this master public key.
    #[error("not the identity's key")]
    InvalidIdentityKey,
}

/// A KGC whose key share is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Culprit {
    /// Index of the KGC.
    pub index: u16,
    /// The mistake.
    pub fault: ShareFault,
}

/// A mistake of a key share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[non_exhaustive]
pub enum ShareFault {
    /// The index is not among those of the quorum.
    #[display("not of the quorum")]
    Foreign,
    /// The index came more than once.
    #[display("came twice")]
    Duplicate,
    /// The share has another index than its sender's.
    #[display("says another index than its sender's")]
    OtherIndex,
    /// The bytes are too few or too many, or encode no point of the subgroup, or the identity.
    #[display("no point of the subgroup")]
    NoPoint,
    /// The share is not the KGC's of this identity's key.
    #[display("not the share of this identity's key")]
    Wrong,
}

struct Listed<'a>(&'a [Culprit]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(place, Culprit { index, fault })| {
            let separator = if place == 0 { "" } else { ", " };
            write!(f, "{separator}KGC {index} ({fault})")
        })
    }
}

impl From<Malformed> for Error {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}

/// Indices come from 16 bits, so all of them fit.
pub(crate) fn narrow(index: u32) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

impl From<quiver_sharing::Error> for Error {
    fn from(error: quiver_sharing::Error) -> Self {
        use quiver_sharing::Error as Sharing;
        match error {
            Sharing::ZeroIndex => Self::ZeroIndex,
            Sharing::DuplicateIndex(index) => Self::DuplicateIndex(narrow(index)),
            Sharing::InvalidShare(index) => Self::InvalidMasterShare(narrow(index)),
            Sharing::ThresholdAboveCount { threshold, count } => Self::Threshold { threshold, count },
            _ => Self::Malformed("as many shares or coefficients as there may be"),
        }
    }
}

/// Points and scalars are counted out against each other before they are combined; nothing leads here.
impl From<PairingError> for Error {
    fn from(_: PairingError) -> Self {
        Self::Malformed("as many points as scalars")
    }
}
