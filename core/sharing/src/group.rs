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

#[cfg(feature = "bls12-381")]
mod bls12381 {
    use ark_bls12_381::Fr;
    use ark_ec::PrimeGroup;
    use ark_ec::short_weierstrass::{Projective, SWCurveConfig};
    use ark_ff::AdditiveGroup;

    /// G1 and G2.
    impl<C: SWCurveConfig<ScalarField = Fr>> super::PrimeOrderGroup for Projective<C> {
        type Scalar = Fr;

        fn generator() -> Self {
            <Self as PrimeGroup>::generator()
        }

        fn identity() -> Self {
            <Self as AdditiveGroup>::ZERO
        }
    }
}

#[cfg(feature = "pairing")]
mod pairing {
    use quiver_pairing::{Curve, Group, Point, Scalar};

    /// G1 and G2.
    impl<C: Curve> super::PrimeOrderGroup for Point<C> {
        type Scalar = Scalar;

        fn generator() -> Self {
            Self::generator()
        }

        fn multiply_generator(scalar: &Scalar) -> Self {
            Self::multiply_generator(scalar)
        }

        fn identity() -> Self {
            <Self as Group>::identity()
        }

        fn combine(points: &[Self], scalars: &[Scalar]) -> Self {
            let len = points.len().min(scalars.len());
            let both = points.get(..len).zip(scalars.get(..len));
            // Slices of one length are combined.
            both.and_then(|(points, scalars)| Self::msm(points, scalars).ok())
                .unwrap_or_else(super::PrimeOrderGroup::identity)
        }
    }
}

#[cfg(feature = "ristretto255")]
mod ristretto255 {
    use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
    use curve25519_dalek::traits::{Identity, VartimeMultiscalarMul};
    use curve25519_dalek::{RistrettoPoint, Scalar};

    impl super::PrimeOrderGroup for RistrettoPoint {
        type Scalar = Scalar;

        fn generator() -> Self {
            RISTRETTO_BASEPOINT_POINT
        }

        fn multiply_generator(scalar: &Scalar) -> Self {
            Self::mul_base(scalar)
        }

        fn identity() -> Self {
            <Self as Identity>::identity()
        }

        fn combine(points: &[Self], scalars: &[Scalar]) -> Self {
            let len = points.len().min(scalars.len());
            Self::vartime_multiscalar_mul(scalars.iter().take(len), points.iter().take(len))
        }
    }
}
