//! Errors of decoding and of arguments.

use thiserror::Error;

/// Reason why bytes are no group element or scalar, or arguments do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PairingError {
    /// There are too many or too few bytes.
    #[error("an encoding of {expected} bytes cannot have {actual}")]
    WrongLength {
        /// Bytes of the encoding.
        expected: usize,
        /// Bytes that were given.
        actual: usize,
    },
    /// The flag bits or the range of a number are not those of the one encoding of an element.
    #[error("not the canonical encoding of anything")]
    NotCanonical,
    /// No point of the curve has this x-coordinate.
    #[error("not a point of the curve")]
    NotOnCurve,
    /// A point of the curve, or an element of the field, outside the group of order r.
    #[error("not in the subgroup of prime order")]
    WrongSubgroup,
    /// The identity, where it means nothing.
    #[error("the identity is not taken here")]
    Identity,
    /// The numbers of elements and coefficients differ.
    #[error("{elements} elements cannot be combined with {coefficients} coefficients")]
    UnequalLengths {
        /// Elements that were given.
        elements: usize,
        /// Coefficients that were given.
        coefficients: usize,
    },
}
