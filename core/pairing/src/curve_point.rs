//! Points of the first curve that are not known to lie in G1, and their uncompressed form.
//!
//! Decoding an uncompressed point takes no square root. The check that the point lies in the subgroup takes
//! the time then, so that there are two ways from here to a [`G1`]: [`CurvePoint::in_subgroup`] checks, and
//! refuses; [`CurvePoint::clear_cofactor`] maps into the subgroup at half the price.

use alloc::vec::Vec;

use ark_ec::short_weierstrass::Affine;
use ark_ec::{AffineRepr, CurveGroup as _};
use ark_ff::{AdditiveGroup, Field, Zero};

use crate::backend::{Active, Backend};
use crate::encoding::{FIELD_LEN, exactly, read_coefficient, write_field};
use crate::parameters::{Fq, g1};
use crate::point::affine;
use crate::{G1, Group as _, PairingError, Point, Scalar};

/// Bytes of an uncompressed point of the first curve: x and y.
pub const UNCOMPRESSED_LEN: usize = 2 * FIELD_LEN;

/// The bit for the identity in the first byte of an uncompressed point.
const INFINITY: u8 = 0x40;

/// The integer that [`CurvePoint::clear_cofactor`] multiplies by: 1 − x, with the parameter x of the curve
/// (RFC 9380, section 8.8.1).
pub const G1_COFACTOR: u64 = 0xd201_0000_0001_0001;

/// A point of the curve y² = x³ + 4 over Fp, of whatever order, other than the identity.
#[derive(Clone, Copy, PartialEq, Eq, derive_more::Debug)]
#[debug("CurvePoint(..)")]
pub struct CurvePoint(pub(crate) Affine<g1::Config>);

impl CurvePoint {
    /// The point that 96 bytes are the uncompressed form of: x and y, big-endian.
    ///
    /// # Errors
    /// [`PairingError::WrongLength`]; [`PairingError::NotCanonical`] for coordinates that are not below p,
    /// and flags; [`PairingError::NotOnCurve`]; [`PairingError::Identity`].
    pub fn decode(bytes: &[u8]) -> Result<Self, PairingError> {
        let bytes: [u8; UNCOMPRESSED_LEN] = exactly(bytes, UNCOMPRESSED_LEN)?;
        if bytes.first() == Some(&INFINITY) && bytes.iter().skip(1).all(Zero::is_zero) {
            return Err(PairingError::Identity);
        }
        // A flag in the first byte makes a number that is not below p.
        let (x, y) = bytes.split_at(FIELD_LEN);
        let coordinate = |bytes| read_coefficient(bytes).ok_or(PairingError::NotCanonical);
        let (x, y): (Fq, Fq) = (coordinate(x)?, coordinate(y)?);
        let four = Fq::from(4_u64);
        // y² = x³ + 4
        if y.square() == x.square() * x + four {
            Ok(Self(Affine::new_unchecked(x, y)))
        } else {
            Err(PairingError::NotOnCurve)
        }
    }

    /// The uncompressed form.
    #[must_use]
    pub fn encode(&self) -> [u8; UNCOMPRESSED_LEN] {
        encode(&self.0)
    }

    /// The same point, if it lies in the subgroup of order r.
    ///
    /// # Errors
    /// [`PairingError::WrongSubgroup`].
    pub fn in_subgroup(&self) -> Result<G1, PairingError> {
        if Active::in_subgroup(&self.0) {
            Ok(Point(self.0.into_group()))
        } else {
            Err(PairingError::WrongSubgroup)
        }
    }

    /// [`G1_COFACTOR`] times the point, which lies in the subgroup whatever the point; the identity for a
    /// point whose order divides the cofactor.
    #[must_use]
    pub fn clear_cofactor(&self) -> G1 {
        Active::clear_cofactor(&self.0)
    }

    /// [`in_subgroup`](Self::in_subgroup) of each, in less time where the processor has vector lanes.
    #[must_use]
    pub fn all_in_subgroup(points: &[Self]) -> Vec<Result<G1, PairingError>> {
        let affine: Vec<_> = points.iter().map(|point| point.0).collect();
        let verdicts = Active::all_in_subgroup(&affine).into_iter().zip(affine);
        let point = |(inside, point): (bool, Affine<_>)| match inside {
            true => Ok(Point(point.into_group())),
            false => Err(PairingError::WrongSubgroup),
        };
        verdicts.map(point).collect()
    }

    /// [`clear_cofactor`](Self::clear_cofactor) of each, in less time where the processor has vector lanes.
    #[must_use]
    pub fn clear_cofactors(points: &[Self]) -> Vec<G1> {
        Active::clear_cofactors(&points.iter().map(|point| point.0).collect::<Vec<_>>())
    }

    /// [`G1_COFACTOR`] · Σ weight · point over pairs of the two slices, as [`G1::msm_weighted`] has it: each
    /// point's part of order r counts, and no other part. Not constant-time.
    ///
    /// # Errors
    /// [`PairingError::UnequalLengths`] if the slices have different lengths.
    pub fn combine_cleared(points: &[Self], weights: &[[u64; 2]]) -> Result<G1, PairingError> {
        // Not of the group that the type names, until the last line. Combining is adding and doubling, which
        // the curve has too, and a map that multiplies the part of order r by z² and takes other parts to
        // others of their order, which clearing removes.
        let points: Vec<G1> = points.iter().map(|point| Point(point.0.into_group())).collect();
        let sum = G1::msm_weighted(&points, weights)?.0.into_affine();
        Ok(if sum.is_zero() { G1::identity() } else { Active::clear_cofactor(&sum) })
    }
}

impl G1 {
    /// The uncompressed forms of many points, which share one inversion.
    #[must_use]
    pub fn encode_uncompressed(points: &[Self]) -> Vec<[u8; UNCOMPRESSED_LEN]> {
        affine(points).iter().map(encode).collect()
    }
}

fn encode(point: &Affine<g1::Config>) -> [u8; UNCOMPRESSED_LEN] {
    let mut bytes = [0; UNCOMPRESSED_LEN];
    match point.xy() {
        None => {
            if let Some(first) = bytes.first_mut() {
                *first = INFINITY;
            }
        }
        Some((x, y)) => {
            let (to_x, to_y) = bytes.split_at_mut(FIELD_LEN);
            write_field(&x, to_x);
            write_field(&y, to_y);
        }
    }
    bytes
}

impl G1 {
    /// scalar · base for each scalar, where the base is the second if that is chosen, and else the first; in
    /// constant time, the choices included, where [`multiply_all`](Self::multiply_all) takes it.
    ///
    /// # Errors
    /// [`PairingError::UnequalLengths`] if there are not as many choices as scalars.
    pub fn multiply_either(
        bases: [&Self; 2],
        choices: &[bool],
        scalars: &[Scalar],
    ) -> Result<Vec<Self>, PairingError> {
        if choices.len() == scalars.len() {
            Ok(Active::multiply_either(bases, choices, scalars))
        } else {
            let (elements, coefficients) = (choices.len(), scalars.len());
            Err(PairingError::UnequalLengths { elements, coefficients })
        }
    }

    /// One of two points, in constant time: `one` if `choice`, else `zero`.
    #[must_use]
    pub fn select(zero: &Self, one: &Self, choice: bool) -> Self {
        let mask = 0_u64.wrapping_sub(u64::from(choice));
        let of = |zero: &Fq, one: &Fq| {
            let mut selected = Fq::ZERO;
            let limbs = zero.0.0.iter().zip(&one.0.0);
            for (to, (zero, one)) in selected.0.0.iter_mut().zip(limbs) {
                *to = zero & !mask | one & mask;
            }
            selected
        };
        let mut selected = zero.0;
        selected.x = of(&zero.0.x, &one.0.x);
        selected.y = of(&zero.0.y, &one.0.y);
        selected.z = of(&zero.0.z, &one.0.z);
        Self(selected)
    }
}
