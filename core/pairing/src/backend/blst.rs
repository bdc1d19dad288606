//! blst, in C and assembly, where a host has it. Multiplying a point takes the same time whatever the scalar
//! is.
//!
//! Numbers are in the same Montgomery form, limb for limb, as those of arkworks, and points in the same
//! Jacobian coordinates, so values cross by being copied.

use alloc::sync::Arc;
use alloc::vec::Vec;

use ::blst::{BLST_ERROR, blst_fp12, blst_p1_affine, min_pk, p1_affines, p2_affines};
use ark_ec::AffineRepr as _;
use ark_ec::short_weierstrass::Affine;
use ark_ff::{BigInt, BigInteger, Field as _, PrimeField};
use quiver_crypto::Zeroizing;
use zeroize::Zeroize;

use super::Backend;
use convert::Coordinate as _;
use native::Native as _;

use crate::curve::sealed::CurveParameters;
use crate::parameters::{Fq, g1};
use crate::{Curve, G1, G1_COFACTOR, G1Curve, G2, G2Curve, Group, Gt, PairingError, Point, Scalar};

mod batch_addition;
mod comb;
mod convert;
mod ffi;
mod lines;
mod native;
mod odd_digits;
mod simd;

/// Back end that this build computes with.
pub(super) mod chosen {
    pub use super::Blst;
    pub(crate) use super::native::Native as Supported;

    /// The back end of this build.
    pub type Active = Blst;
}

/// blst on x86-64 and aarch64. Multiplication of a point by a scalar is constant-time; combinations of many
/// are not.
///
/// Instructions that not every processor of the architecture has are looked for at run time. No threads.
#[derive(Clone, Copy, Debug)]
pub enum Blst {}

impl Backend for Blst {
    const NAME: &'static str = "blst";

    /// Montgomery's trick, over blst's inversion: the divisor depends on secrets, and arkworks' own inversion
    /// takes a time that depends on it.
    fn normalise<C: Curve>(points: &[Point<C>]) -> Vec<Affine<C::Config>> {
        let mut product = <C as CurveParameters>::Field::ONE;
        let mut before = Vec::with_capacity(points.len());
        for point in points.iter().filter(|point| !point.is_identity()) {
            // The product of all z before each point's own.
            before.push(product);
            product *= point.0.z;
        }
        let mut inverse =
            C::invert_by(&product, |element| Fq::from_native(&ffi::invert(&element.to_native())));
        let mut affine = alloc::vec![Affine::identity(); points.len()];
        let places = points.iter().zip(&mut affine).filter(|(point, _)| !point.is_identity());
        for ((point, place), before) in places.rev().zip(before.iter().rev()) {
            // 1/z of this point: x/z², y/z³.
            let own = inverse * before;
            inverse *= point.0.z;
            let squared = own.square();
            *place = Affine::new_unchecked(point.0.x * squared, point.0.y * squared * own);
        }
        before.zeroize();
        product.zeroize();
        inverse.zeroize();
        affine
    }

    fn normalise_one<C: Curve>(point: &Point<C>) -> Affine<C::Config> {
        Self::normalise(core::slice::from_ref(point)).pop().unwrap_or_else(Affine::identity)
    }

    fn multiply<C: Curve>(point: &Point<C>, scalar: &Scalar) -> Point<C> {
        C::to_point(&C::multiply(&C::to_native(point), &little_endian(scalar)))
    }

    fn multiply_generator(scalar: &Scalar) -> G1 {
        comb::multiply_generator(scalar)
    }

    fn multiply_all<C: Curve>(point: &Point<C>, scalars: &[Scalar]) -> Vec<Point<C>> {
        scalars.iter().map(|scalar| Self::multiply(point, scalar)).collect()
    }

    fn multiply_generator_by_each(scalars: &[Scalar]) -> Vec<G1> {
        simd::multiply_generator_by_each(scalars)
            .unwrap_or_else(|| scalars.iter().map(comb::multiply_generator).collect())
    }

    fn multiply_either([zero, one]: [&G1; 2], choices: &[bool], scalars: &[Scalar]) -> Vec<G1> {
        let bases =
            Zeroizing::new(choices.iter().map(|&choice| G1::select(zero, one, choice)).collect::<Vec<_>>());
        simd::multiply_each(&bases, scalars).unwrap_or_else(|| match scalars.len() {
            0..comb::MANY_CHOICES => {
                bases.iter().zip(scalars).map(|(base, scalar)| Self::multiply(base, scalar)).collect()
            }
            _ => comb::multiply_either([zero, one], choices, scalars),
        })
    }

    fn multiply_each(points: &[G1], scalars: &[Scalar]) -> Vec<G1> {
        simd::multiply_each(points, scalars).unwrap_or_else(|| {
            points.iter().zip(scalars).map(|(point, scalar)| Self::multiply(point, scalar)).collect()
        })
    }

    fn multiply_points(points: &[G1], scalar: &Scalar) -> Vec<G1> {
        simd::multiply_points(points, scalar)
            .unwrap_or_else(|| points.iter().map(|point| Self::multiply(point, scalar)).collect())
    }

    fn sum_weighted(points: &[G1], weights: &[[u64; 2]], columns: usize) -> Vec<G1> {
        simd::sum_weighted(points, weights, columns).unwrap_or_else(|| match columns {
            0..batch_addition::FEW_COLUMNS => super::sum_weighted::<Self>(points, weights, columns),
            _ => batch_addition::sum_weighted(points, weights, columns),
        })
    }

    fn msm<C: Curve>(points: &[Point<C>], scalars: &[Scalar]) -> Point<C> {
        // −(r − k) · point for k · point, if that is shorter: Lagrange coefficients of neighbouring indices
        // are small integers of either sign. Only the longest scalar's bits are gone through.
        let mut signed: Vec<_> = scalars.iter().map(magnitude).collect();
        let longest = signed.iter().map(|(_, size)| size.num_bits()).max().unwrap_or(0);
        let natives: Vec<_> = points
            .iter()
            .zip(&signed)
            .map(|(point, (negative, _))| C::to_native(&if *negative { -*point } else { *point }))
            .collect();
        let len = longest.div_ceil(8) as usize;
        let bytes: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(len * signed.len()));
        let bytes = signed.iter().fold(bytes, |mut bytes, (_, size)| {
            bytes.extend(Zeroizing::new(size.to_bytes_le()).iter().take(len));
            bytes
        });
        signed.iter_mut().for_each(|(_, size)| size.zeroize());
        combine(&natives, &bytes, longest as usize)
    }

    fn msm_small<C: Curve>(points: &[Point<C>], integers: &[i128]) -> Point<C> {
        let longest = integers.iter().map(|integer| integer.unsigned_abs()).max().unwrap_or(0);
        let bits = u128::BITS - longest.leading_zeros();
        let signed =
            |(point, integer): (&Point<C>, &i128)| C::to_native(&if *integer < 0 { -*point } else { *point });
        let natives: Vec<_> = points.iter().zip(integers).map(signed).collect();
        let len = bits.div_ceil(8) as usize;
        let magnitudes = integers.iter().map(|integer| integer.unsigned_abs().to_le_bytes());
        let bytes: Vec<u8> = magnitudes.flat_map(|magnitude| magnitude.into_iter().take(len)).collect();
        combine(&natives, &bytes, bits as usize)
    }

    fn hash<C: Curve>(domain: &str, parts: &[&[u8]]) -> Point<C> {
        C::hash_to_group(domain, parts)
    }

    fn decode<C: Curve>(bytes: &C::Encoding) -> Result<Point<C>, PairingError> {
        C::decode(bytes.as_ref()).map_err(|error| match error {
            BLST_ERROR::BLST_POINT_NOT_ON_CURVE => PairingError::NotOnCurve,
            BLST_ERROR::BLST_POINT_NOT_IN_GROUP => PairingError::WrongSubgroup,
            _ => PairingError::NotCanonical,
        })
    }

    fn in_subgroup(point: &Affine<g1::Config>) -> bool {
        let point = blst_p1_affine { x: point.x.to_native(), y: point.y.to_native() };
        min_pk::PublicKey::from(point).validate() != Err(BLST_ERROR::BLST_POINT_NOT_IN_GROUP)
    }

    fn all_in_subgroup(points: &[Affine<g1::Config>]) -> Vec<bool> {
        simd::all_in_subgroup(points).unwrap_or_else(|| points.iter().map(Self::in_subgroup).collect())
    }

    fn clear_cofactors(points: &[Affine<g1::Config>]) -> Vec<G1> {
        simd::clear_cofactors(points).unwrap_or_else(|| points.iter().map(Self::clear_cofactor).collect())
    }

    fn clear_cofactor(point: &Affine<g1::Config>) -> G1 {
        let once = blst_p1_affine { x: point.x.to_native(), y: point.y.to_native() };
        // Between two ones there are only doublings.
        let mut product = G1Curve::to_native(&Point(point.into_group()));
        let mut rest = G1_COFACTOR.reverse_bits() >> 1;
        for _ in 1..G1_COFACTOR.count_ones() {
            let zeros = rest.trailing_zeros() + 1;
            product = ffi::add_p1(&ffi::double_p1(&product, zeros), &once);
            rest = rest.checked_shr(zeros).unwrap_or(0);
        }
        G1Curve::to_point(&product)
    }

    fn pairing_product(pairs: &[(G1, G2)]) -> Gt {
        // blst's Miller loop takes no identities, and not nothing.
        let (ps, qs): (Vec<_>, Vec<_>) = pairs
            .iter()
            .filter(|(p, q)| !p.is_identity() && !q.is_identity())
            .map(|(p, q)| (G1Curve::to_native(p), G2Curve::to_native(q)))
            .unzip();
        if ps.is_empty() {
            return Gt::identity();
        }
        let (ps, qs) = (p1_affines::from(&ps), p2_affines::from(&qs));
        convert::to_gt(&blst_fp12::miller_loop_n(qs.as_slice(), ps.as_slice()).final_exp())
    }

    type Lines = Option<Arc<PreparedLines>>;

    fn prepare(points: &[G2]) -> Self::Lines {
        let lines = match simd::prepare(points) {
            Some(lines) => Some(PreparedLines::Lanes(lines)),
            None => lines::PairedLines::new(points).map(PreparedLines::Pairs),
        };
        lines.map(Arc::new)
    }

    fn prepared_product(points: &[G1], prepared: &[G2], lines: &Self::Lines) -> Gt {
        let by_lines = lines.as_deref().and_then(|lines| match lines {
            PreparedLines::Lanes(lines) => simd::prepared_product(lines, points),
            PreparedLines::Pairs(lines) => Some(lines.product(points)),
        });
        by_lines.unwrap_or_else(|| {
            Self::pairing_product(&points.iter().copied().zip(prepared.iter().copied()).collect::<Vec<_>>())
        })
    }
}

/// Lines of points of G2: on vector lanes, or multiplied two by two.
pub enum PreparedLines {
    Lanes(simd::Lines),
    Pairs(lines::PairedLines),
}

/// Σ scalar · point, over as many points as there are and scalars of so many bits, each in whole bytes.
fn combine<C: Curve>(points: &[C::Jacobian], scalars: &[u8], bits: usize) -> Point<C> {
    let complete = scalars.len() / bits.div_ceil(8).max(1);
    match points.get(..complete.min(points.len())) {
        Some(points) if !points.is_empty() => C::to_point(&C::combine(points, scalars, bits)),
        _ => Point::identity(),
    }
}

/// Tells if the scalar is above r / 2; with the smaller one of itself and its opposite.
fn magnitude(scalar: &Scalar) -> (bool, BigInt<4>) {
    let (own, opposite) = (scalar.into_bigint(), (-*scalar).into_bigint());
    if opposite < own { (true, opposite) } else { (false, own) }
}

fn little_endian(scalar: &Scalar) -> Zeroizing<[u8; 32]> {
    let limbs = Zeroizing::new(scalar.into_bigint().0);
    let mut bytes = Zeroizing::new([0; 32]);
    for (to, limb) in bytes.chunks_mut(8).zip(limbs.iter()) {
        to.copy_from_slice(&limb.to_le_bytes());
    }
    bytes
}
