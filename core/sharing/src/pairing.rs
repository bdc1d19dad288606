//! Groups G1 and G2 of BLS12-381 as quiver-pairing has them.

use quiver_pairing::{Curve, Group, Point, Scalar};

use crate::PrimeOrderGroup;

/// G1 and G2.
impl<C: Curve> PrimeOrderGroup for Point<C> {
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
            .unwrap_or_else(PrimeOrderGroup::identity)
    }
}
