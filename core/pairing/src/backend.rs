//! The interface of a curve library, and the choice of one.
//!
//! | back end | where | scalar multiplication of a point |
//! |---|---|---|
//! | [`Arkworks`] | everywhere | **not constant-time** |
//! | `Blst` | x86-64 and aarch64 with the feature `blst` | constant-time |
//!
//! With the feature `armv7em`, arkworks computes over the field of `parameters::armv7em`.
//!
//! Everything else of this crate calls [`Active`]. The other one is there to be compared with it.

use alloc::vec::Vec;

use ark_ec::CurveGroup as _;
use ark_ec::short_weierstrass::{Affine, Projective};
use zeroize::Zeroize as _;

use crate::parameters::g1;
use crate::{Curve, G1, G2, Gt, PairingError, Point, Scalar};

pub(crate) mod arkworks;
#[cfg_attr(
    not(all(feature = "blst", any(target_arch = "x86_64", target_arch = "aarch64"))),
    path = "backend/blst/absent.rs"
)]
mod blst;

pub use arkworks::Arkworks;
pub(crate) use arkworks::{Endomorphism, times_z_squared};
pub use blst::chosen::*;

/// A library of curve arithmetic.
///
/// All back ends compute the same, to the byte.
pub trait Backend: Sized {
    /// Name of the back end.
    const NAME: &'static str;

    /// Affine coordinates of many points, at the price of one inversion.
    fn normalise<C: Curve>(points: &[Point<C>]) -> Vec<Affine<C::Config>> {
        let mut projective: Vec<_> = points.iter().map(|point| point.0).collect();
        let affine = Projective::normalize_batch(&projective);
        projective.zeroize();
        affine
    }
    /// Affine coordinates of one point.
    fn normalise_one<C: Curve>(point: &Point<C>) -> Affine<C::Config> {
        point.0.into_affine()
    }
    /// scalar · point.
    fn multiply<C: Curve>(point: &Point<C>, scalar: &Scalar) -> Point<C>;
    /// scalar · generator of G1.
    fn multiply_generator(scalar: &Scalar) -> G1;
    /// scalar · generator of G1, for each scalar.
    fn multiply_generator_by_each(scalars: &[Scalar]) -> Vec<G1> {
        scalars.iter().map(Self::multiply_generator).collect()
    }
    /// scalar · the base that is chosen, for each scalar; what one slice has more than the other is left out.
    fn multiply_either(bases: [&G1; 2], choices: &[bool], scalars: &[Scalar]) -> Vec<G1>;
    /// scalar · point for each pair; what one slice has more than the other is left out.
    fn multiply_each(points: &[G1], scalars: &[Scalar]) -> Vec<G1> {
        points.iter().zip(scalars).map(|(point, scalar)| Self::multiply(point, scalar)).collect()
    }
    /// scalar · point for each point.
    fn multiply_points(points: &[G1], scalar: &Scalar) -> Vec<G1> {
        points.iter().map(|point| Self::multiply(point, scalar)).collect()
    }
    /// Computes [`G1::sum_weighted`], for one column or more and as many points as weights.
    fn sum_weighted(points: &[G1], weights: &[[u64; 2]], columns: usize) -> Vec<G1> {
        sum_weighted::<Self>(points, weights, columns)
    }
    /// scalar · point for each scalar.
    fn multiply_all<C: Curve>(point: &Point<C>, scalars: &[Scalar]) -> Vec<Point<C>>;
    /// Σ scalar · point; what one slice has more than the other is left out.
    fn msm<C: Curve>(points: &[Point<C>], scalars: &[Scalar]) -> Point<C>;
    /// Σ integer · point; what one slice has more than the other is left out.
    fn msm_small<C: Curve>(points: &[Point<C>], integers: &[i128]) -> Point<C>;
    /// Computes [`Point::hash`].
    fn hash<C: Curve>(domain: &str, parts: &[&[u8]]) -> Point<C>;
    /// The point that the bytes encode, or the identity.
    ///
    /// # Errors
    /// [`PairingError::NotCanonical`], [`PairingError::NotOnCurve`] or [`PairingError::WrongSubgroup`].
    fn decode<C: Curve>(bytes: &C::Encoding) -> Result<Point<C>, PairingError>;
    /// Returns true if a point of the first curve lies in G1.
    fn in_subgroup(point: &Affine<g1::Config>) -> bool;
    /// The same of each.
    fn all_in_subgroup(points: &[Affine<g1::Config>]) -> Vec<bool> {
        points.iter().map(Self::in_subgroup).collect()
    }
    /// [`G1_COFACTOR`](crate::G1_COFACTOR) times each point, as [`clear_cofactor`](Self::clear_cofactor) has
    /// it.
    fn clear_cofactors(points: &[Affine<g1::Config>]) -> Vec<G1> {
        points.iter().map(Self::clear_cofactor).collect()
    }
    /// [`G1_COFACTOR`](crate::G1_COFACTOR) times a point of the first curve, of whatever order, which is in
    /// G1.
    fn clear_cofactor(point: &Affine<g1::Config>) -> G1;
    /// Σ e(p, q).
    fn pairing_product(pairs: &[(G1, G2)]) -> Gt;

    /// Precomputation of points of G2 that are paired again and again.
    type Lines: Clone + Send + Sync;
    /// Precomputes these points.
    fn prepare(points: &[G2]) -> Self::Lines;
    /// Σ e(p, q) over pairs of the two slices, with the precomputation of the whole second one; if there are
    /// fewer in the first, the identity for the others.
    fn prepared_product(points: &[G1], prepared: &[G2], lines: &Self::Lines) -> Gt;
}

/// [`Backend::sum_weighted`], column by column.
fn sum_weighted<B: Backend>(points: &[G1], weights: &[[u64; 2]], columns: usize) -> Vec<G1> {
    let column = |at| {
        let points = points.iter().skip(at).step_by(columns).copied();
        // a + b·z²: one half weighs the point, the other its image.
        let images = points.clone().map(times_z_squared);
        let points: Vec<G1> = points.clone().chain(images).collect();
        let weights = weights.iter().skip(at).step_by(columns);
        let (low, high) = (weights.clone().map(|[low, _]| low), weights.map(|[_, high]| high));
        let integers: Vec<i128> = low.chain(high).map(|half| i128::from(*half)).collect();
        B::msm_small(&points, &integers)
    };
    (0..columns).map(column).collect()
}
