//! The interface that G1, G2 and Gt share.

use alloc::vec::Vec;
use core::fmt::Debug;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

use zeroize::Zeroize;

use crate::{PairingError, Scalar};

/// A group of prime order r, written additively: [`G1`](crate::G1), [`G2`](crate::G2) or [`Gt`](crate::Gt).
///
/// Multiplication by a scalar takes no constant time unless the type says otherwise. `Debug` names the group
/// and shows nothing of the element. Nobody else can implement it.
pub trait Group:
    tabled::Tabled
    + Copy
    + Debug
    + Default
    + Eq
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + SubAssign
    + Neg<Output = Self>
    + Mul<Scalar, Output = Self>
    + for<'a> Mul<&'a Scalar, Output = Self>
    + Sum
    + for<'a> Sum<&'a Self>
    + Zeroize
    + Send
    + Sync
    + 'static
{
    /// Bytes of an encoded element.
    const ENCODED_LEN: usize;

    /// An encoded element: an array of [`ENCODED_LEN`](Self::ENCODED_LEN) bytes.
    type Encoding: Copy + AsRef<[u8]> + Debug + Eq + Ord + Send + Sync + 'static;

    /// The neutral element.
    #[must_use]
    fn identity() -> Self;
    /// Returns true if this is the neutral element.
    fn is_identity(&self) -> bool;
    /// Twice this element.
    #[must_use]
    fn double(&self) -> Self;

    /// The one encoding of this element, of [`ENCODED_LEN`](Self::ENCODED_LEN) bytes.
    fn encode(&self) -> Self::Encoding;

    /// The element that the bytes encode, which is not the identity.
    ///
    /// # Errors
    /// As for [`decode_or_identity`](Self::decode_or_identity), and [`PairingError::Identity`].
    fn decode(bytes: &[u8]) -> Result<Self, PairingError> {
        let element = Self::decode_or_identity(bytes)?;
        if element.is_identity() { Err(PairingError::Identity) } else { Ok(element) }
    }

    /// The element that the bytes encode, which may be the identity.
    ///
    /// # Errors
    /// [`PairingError::WrongLength`]; [`PairingError::NotCanonical`] for flags or numbers that no encoding
    /// has; [`PairingError::NotOnCurve`]; [`PairingError::WrongSubgroup`].
    fn decode_or_identity(bytes: &[u8]) -> Result<Self, PairingError>;
}

/// Storage of multiples of a fixed element.
pub(crate) mod tabled {
    use super::{Debug, Vec};

    pub trait Tabled: Sized {
        /// An element in the form that is cheapest to add.
        type Entry: Copy + Debug + Send + Sync;

        /// The elements as entries, at the price of one inversion.
        fn entries(elements: &[Self]) -> Vec<Self::Entry>;
        /// Adds an entry.
        fn add_entry(&mut self, entry: &Self::Entry);
        /// Subtracts an entry.
        fn subtract_entry(&mut self, entry: &Self::Entry);
    }
}
