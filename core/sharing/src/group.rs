//! Groups of prime order, for commitments.

use core::ops::{Add, Mul};

use crate::Field;

/// A group whose order is that of its scalars, written additively, in which discrete logarithms are hard.
pub trait Group: Copy + PartialEq + Add<Output = Self> + Mul<Self::Scalar, Output = Self> {
    /// Its scalars.
    type Scalar: Field;

    /// The generator that everybody uses.
    #[must_use]
    fn generator() -> Self;

    /// The neutral element.
    #[must_use]
    fn identity() -> Self;
}

/// A public point, a small number of times. Time depends on the number.
pub(crate) fn times<G: Group>(point: G, number: u32) -> G {
    let mut sum = G::identity();
    for bit in (0..u32::BITS.saturating_sub(number.leading_zeros())).rev() {
        sum = sum + sum;
        if number.wrapping_shr(bit) & 1 == 1 {
            sum = sum + point;
        }
    }
    sum
}

#[cfg(feature = "bls12-381")]
mod bls12381 {
    use ark_bls12_381::Fr;
    use ark_ec::PrimeGroup;
    use ark_ec::short_weierstrass::{Projective, SWCurveConfig};
    use ark_ff::AdditiveGroup;

    /// G1 and G2.
    impl<C: SWCurveConfig<ScalarField = Fr>> super::Group for Projective<C> {
        type Scalar = Fr;

        fn generator() -> Self {
            <Self as PrimeGroup>::generator()
        }

        fn identity() -> Self {
            <Self as AdditiveGroup>::ZERO
        }
    }
}

#[cfg(feature = "ristretto255")]
mod ristretto255 {
    use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
    use curve25519_dalek::traits::Identity;
    use curve25519_dalek::{RistrettoPoint, Scalar};

    impl super::Group for RistrettoPoint {
        type Scalar = Scalar;

        fn generator() -> Self {
            RISTRETTO_BASEPOINT_POINT
        }

        fn identity() -> Self {
            <Self as Identity>::identity()
        }
    }
}
