//! Points of G1 and G2.

use alloc::vec::Vec;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

use ark_ec::PrimeGroup;
use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ff::{AdditiveGroup, Zero};
use zeroize::Zeroize;

use crate::backend::{Active, Backend};
use crate::encoding::{compress, exactly};
use crate::group::tabled::Tabled;
use crate::{Curve, G1Curve, G2Curve, Group, PairingError, Scalar};

/// A point of the subgroup of order r of one of the two curves: [`G1`] or [`G2`].
///
/// Inside are Jacobian coordinates, 144 bytes in G1 and 288 in G2. Comparison is not constant-time.
#[derive(derive_more::Debug)]
#[debug("{}(..)", C::NAME)]
pub struct Point<C: Curve>(pub(crate) Projective<C::Config>);

/// A point of G1: 48 bytes encoded.
pub type G1 = Point<G1Curve>;

/// A point of G2: 96 bytes encoded.
pub type G2 = Point<G2Curve>;

impl<C: Curve> Point<C> {
    /// The standard generator (draft-irtf-cfrg-pairing-friendly-curves, section 4.2.1).
    #[must_use]
    pub fn generator() -> Self {
        Self(Projective::generator())
    }

    /// scalar · generator, in constant time where multiplying any point takes it. In G1 by a table that the
    /// process makes once (132 kB), in a third of the time of multiplying any point; without blst, and in G2,
    /// there is no table.
    #[must_use]
    pub fn multiply_generator(scalar: &Scalar) -> Self {
        C::multiply_generator(scalar)
    }

    /// scalar · point for each scalar, in constant time where multiplying a point by one takes it.
    #[must_use]
    pub fn multiply_all(&self, scalars: &[Scalar]) -> Vec<Self> {
        Active::multiply_all(self, scalars)
    }

    /// Hashes to a point: RFC 9380, `hash_to_curve` with SHA-256 and SSWU, of the parts one after the other.
    ///
    /// The domain is the RFC's domain separation tag. It should be as long as the RFC wants it, 16 bytes at
    /// least; one of more than 255 bytes is hashed (section 5.3.3). Parts are not told apart: who needs that
    /// writes lengths.
    #[must_use]
    pub fn hash(domain: &str, parts: &[&[u8]]) -> Self {
        Active::hash(domain, parts)
    }

    /// Σ scalar · point over pairs of the two slices. Not constant-time, whatever the back end.
    ///
    /// # Errors
    /// [`PairingError::UnequalLengths`] if the slices have different lengths.
    pub fn msm(points: &[Self], scalars: &[Scalar]) -> Result<Self, PairingError> {
        same_length(points.len(), scalars.len())?;
        Ok(Active::msm(points, scalars))
    }

    /// Σ integer · point over pairs of the two slices, in time that grows with the length of the largest
    /// integer. Not constant-time.
    ///
    /// # Errors
    /// [`PairingError::UnequalLengths`] if the slices have different lengths.
    pub fn msm_small(points: &[Self], integers: &[i128]) -> Result<Self, PairingError> {
        same_length(points.len(), integers.len())?;
        Ok(Active::msm_small(points, integers))
    }

    /// The encodings of many points, which share one inversion.
    #[must_use]
    pub fn encode_all(points: &[Self]) -> Vec<C::Encoding> {
        affine(points).iter().map(compress::<C>).collect()
    }
}

pub(crate) fn same_length(elements: usize, coefficients: usize) -> Result<(), PairingError> {
    if elements == coefficients {
        Ok(())
    } else {
        Err(PairingError::UnequalLengths { elements, coefficients })
    }
}

/// Affine coordinates of many points, at the price of one inversion.
pub(crate) fn affine<C: Curve>(points: &[Point<C>]) -> Vec<Affine<C::Config>> {
    Active::normalise(points)
}

impl<C: Curve> Group for Point<C> {
    const ENCODED_LEN: usize = C::ENCODED_LEN;
    type Encoding = C::Encoding;

    fn identity() -> Self {
        Self(Projective::zero())
    }

    fn is_identity(&self) -> bool {
        self.0.is_zero()
    }

    fn double(&self) -> Self {
        Self(self.0.double())
    }

    fn encode(&self) -> C::Encoding {
        compress::<C>(&Active::normalise_one(self))
    }

    fn decode_or_identity(bytes: &[u8]) -> Result<Self, PairingError> {
        Active::decode(&exactly(bytes, C::ENCODED_LEN)?)
    }
}

impl<C: Curve> Tabled for Point<C> {
    type Entry = Affine<C::Config>;

    fn entries(elements: &[Self]) -> Vec<Self::Entry> {
        affine(elements)
    }

    fn add_entry(&mut self, entry: &Self::Entry) {
        self.0 += entry;
    }

    fn subtract_entry(&mut self, entry: &Self::Entry) {
        self.0 -= entry;
    }
}

impl<C: Curve> Clone for Point<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Curve> Copy for Point<C> {}

impl<C: Curve> Default for Point<C> {
    fn default() -> Self {
        Self::identity()
    }
}

impl<C: Curve> PartialEq for Point<C> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<C: Curve> Eq for Point<C> {}

impl<C: Curve> Zeroize for Point<C> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl<C: Curve> Add for Point<C> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl<C: Curve> AddAssign for Point<C> {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl<C: Curve> Sub for Point<C> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl<C: Curve> SubAssign for Point<C> {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl<C: Curve> Neg for Point<C> {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl<C: Curve> Mul<&Scalar> for Point<C> {
    type Output = Self;

    fn mul(self, scalar: &Scalar) -> Self {
        Active::multiply(&self, scalar)
    }
}

impl<C: Curve> Mul<Scalar> for Point<C> {
    type Output = Self;

    fn mul(self, scalar: Scalar) -> Self {
        Active::multiply(&self, &scalar)
    }
}

impl<C: Curve> Sum for Point<C> {
    fn sum<I: Iterator<Item = Self>>(points: I) -> Self {
        points.fold(Self::identity(), Add::add)
    }
}

impl<'a, C: Curve> Sum<&'a Self> for Point<C> {
    fn sum<I: Iterator<Item = &'a Self>>(points: I) -> Self {
        points.copied().sum()
    }
}
