//! The scalar field of ristretto255, and its group, over curve25519-dalek.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use curve25519_dalek::traits::{Identity, VartimeMultiscalarMul};
use curve25519_dalek::{RistrettoPoint, Scalar};
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use crate::{Field, PrimeOrderGroup};

impl Field for Scalar {
    const ZERO: Self = Self::ZERO;
    const ONE: Self = Self::ONE;

    fn invert(&self) -> Option<Self> {
        (*self != Self::ZERO).then(|| Self::invert(self))
    }

    fn random(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        // 512 bits reduced modulo 253.
        let mut wide = Zeroizing::new([0; 64]);
        rng.fill_bytes(&mut *wide);
        Self::from_bytes_mod_order_wide(&wide)
    }
}

impl PrimeOrderGroup for RistrettoPoint {
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
