//! Errors of thresholds, indices and shares.

use alloc::vec::Vec;

use thiserror::Error;

use crate::MAX_SHARES;

/// Error of secret sharing. The variants state the fact; none carries a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A threshold of 0, at which no share would be needed.
    #[error("a threshold is at least 1")]
    ThresholdZero,
    /// More shares are needed than there are.
    #[error("a threshold of {threshold} is above the number of shares, {count}")]
    ThresholdAboveCount {
        /// Shares needed.
        threshold: usize,
        /// Shares made.
        count: usize,
    },
    /// More than [`MAX_SHARES`].
    #[error("more than {MAX_SHARES} shares")]
    TooManyShares,
    /// No share, or a polynomial without coefficients.
    #[error("no share")]
    NoShares,
    /// The index 0, at which the secret itself is.
    #[error("a share has an index of 1 or above")]
    ZeroIndex,
    /// Two shares of one index.
    #[error("two shares have the index {0}")]
    DuplicateIndex(u32),
    /// A share is not the one that was committed to.
    #[error("the share {0} is not the one committed to")]
    InvalidShare(u32),
}

/// Some of many shares do not fit the commitment.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("shares are not those committed to: {culprits:?}")]
pub struct InvalidShares {
    /// The indices of the wrong ones, in the order in which the shares were given.
    pub culprits: Vec<u32>,
}
