//! The field of seven elements, small enough to go through all polynomials. Its indices end at 6.

use std::ops::{Add, Mul, Neg, Sub};

use quiver_sharing::Field;
use rand_chacha::rand_core::CryptoRngCore;
use zeroize::Zeroize;

/// An element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Zeroize)]
pub(crate) struct F7(pub(crate) u64);

impl From<u64> for F7 {
    fn from(value: u64) -> Self {
        Self(value % 7)
    }
}

impl Add for F7 {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self((self.0 + other.0) % 7)
    }
}

impl Sub for F7 {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self((self.0 + 7 - other.0) % 7)
    }
}

impl Mul for F7 {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0 % 7)
    }
}

impl Neg for F7 {
    type Output = Self;
    fn neg(self) -> Self {
        Self((7 - self.0) % 7)
    }
}

impl Field for F7 {
    const ZERO: Self = Self(0);
    const ONE: Self = Self(1);

    fn invert(&self) -> Option<Self> {
        (1..7).map(Self).find(|&other| *self * other == Self::ONE)
    }

    fn random(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        Self(u64::from(rng.next_u32()) % 7)
    }
}
