//! The interface of a prime-order group, for commitments.

use core::ops::{Add, Mul};

use crate::Field;

/// A group whose order is that of its scalars, written additively, in which discrete logarithms are hard.
pub trait PrimeOrderGroup: Copy + PartialEq + Add<Output = Self> + Mul<Self::Scalar, Output = Self> {
    /// Scalars of the group.
    type Scalar: Field;

    /// The standard generator.
    #[must_use]
    fn generator() -> Self;

    /// scalar · generator, for scalars that may be secret: by a table where there is one.
    #[must_use]
    fn multiply_generator(scalar: &Self::Scalar) -> Self {
        Self::generator() * *scalar
    }

    /// The neutral element.
    #[must_use]
    fn identity() -> Self;

    /// Σ scalar · point over pairs of the two slices, for points and scalars that are public or weighted at
    /// random. The rest of a longer slice is left out.
    #[must_use]
    fn combine(points: &[Self], scalars: &[Self::Scalar]) -> Self {
        points.iter().zip(scalars).fold(Self::identity(), |sum, (&point, &scalar)| sum + point * scalar)
    }
}

/// A public point, a small number of times. Time depends on the number.
pub(crate) fn times<G: PrimeOrderGroup>(point: G, number: u32) -> G {
    let mut sum = G::identity();
    for bit in (0..u32::BITS.saturating_sub(number.leading_zeros())).rev() {
        sum = sum + sum;
        if number.wrapping_shr(bit) & 1 == 1 {
            sum = sum + point;
        }
    }
    sum
}
