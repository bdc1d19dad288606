//! arkworks: the reference, and what machines without an operating system use. Not constant-time.

use alloc::vec::Vec;

use ark_ec::hashing::curve_maps::wb::WBMap;
use ark_ec::hashing::map_to_curve_hasher::MapToCurve;
use ark_ec::pairing::{MillerLoopOutput, Pairing};
use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup, VariableBaseMSM};
use ark_ff::Field;

use super::Backend;
use crate::encoding::decompress;
use crate::parameters::{Bls12_381, Fq12, g1};
use crate::point::affine;
use crate::recoding::non_adjacent;
use crate::{Curve, G1, G1_COFACTOR, G2, Group, Gt, PairingError, Point, Scalar};

pub(crate) mod endomorphism;

pub(crate) use endomorphism::{Endomorphism, times_z_squared};

/// arkworks, in Rust, on any machine. **Not constant-time.**
#[derive(Clone, Copy, Debug)]
pub enum Arkworks {}

/// Number of points below which they are multiplied one by one faster than by arkworks' buckets, which do
/// without split scalars. Buckets take 24 KB of flash.
const FEW: usize = if cfg!(feature = "small") { usize::MAX } else { 8 };

/// Number of pairs that go through one Miller loop. arkworks keeps all lines of a loop, 19,584 bytes for each
/// pair: a sensor has memory for few. Each loop squares anew, at a tenth of the cost of a pair's own lines.
const AT_A_TIME: usize = 2;

impl Backend for Arkworks {
    const NAME: &'static str = "arkworks";

    fn multiply<C: Curve>(point: &Point<C>, scalar: &Scalar) -> Point<C> {
        C::multiply_split(point, scalar)
    }

    fn multiply_generator(scalar: &Scalar) -> G1 {
        Self::multiply(&G1::generator(), scalar)
    }

    fn multiply_either([zero, one]: [&G1; 2], choices: &[bool], scalars: &[Scalar]) -> Vec<G1> {
        let multiply =
            |(choice, scalar): (&bool, &Scalar)| Self::multiply(if *choice { one } else { zero }, scalar);
        choices.iter().zip(scalars).map(multiply).collect()
    }

    fn multiply_all<C: Curve>(point: &Point<C>, scalars: &[Scalar]) -> Vec<Point<C>> {
        scalars.iter().map(|scalar| Self::multiply(point, scalar)).collect()
    }

    fn msm<C: Curve>(points: &[Point<C>], scalars: &[Scalar]) -> Point<C> {
        if points.len() <= FEW {
            return points.iter().zip(scalars).map(|(point, scalar)| Self::multiply(point, scalar)).sum();
        }
        Point(Projective::msm_unchecked(&affine(points), scalars))
    }

    fn msm_small<C: Curve>(points: &[Point<C>], integers: &[i128]) -> Point<C> {
        let points = affine(points);
        // Digits −1, 0 and 1: of two neighbours one is 0.
        let digits: Vec<Vec<i8>> =
            integers.iter().map(|integer| non_adjacent(integer.unsigned_abs(), 2)).collect();
        let longest = digits.iter().map(Vec::len).max().unwrap_or(0);
        let mut sum = Point::<C>::identity();
        for index in (0..longest).rev() {
            sum = sum.double();
            for ((point, integer), digits) in points.iter().zip(integers).zip(&digits) {
                match digits.get(index).map(|digit| (*digit < 0) != (*integer < 0)) {
                    Some(_) if digits.get(index) == Some(&0) => {}
                    Some(false) => sum.0 += point,
                    Some(true) => sum.0 -= point,
                    None => {}
                }
            }
        }
        sum
    }

    fn hash<C: Curve>(domain: &str, parts: &[&[u8]]) -> Point<C> {
        // RFC 9380, section 3, hash_to_curve:
        // u = hash_to_field(msg, 2); R = map_to_curve(u[0]) + map_to_curve(u[1]); P = clear_cofactor(R)
        let sum: Projective<C::Config> =
            C::hash_to_field(domain, parts).map(map_to_curve::<C>).into_iter().sum();
        Point(C::Config::clear_cofactor(&sum.into_affine()).into_group())
    }

    fn decode<C: Curve>(bytes: &C::Encoding) -> Result<Point<C>, PairingError> {
        let point = decompress::<C>(bytes)?;
        match point.is_in_correct_subgroup_assuming_on_curve() {
            true => Ok(Point(point.into_group())),
            false => Err(PairingError::WrongSubgroup),
        }
    }

    fn in_subgroup(point: &Affine<g1::Config>) -> bool {
        point.is_in_correct_subgroup_assuming_on_curve()
    }

    fn clear_cofactor(point: &Affine<g1::Config>) -> G1 {
        let bits = (0..G1_COFACTOR.ilog2()).rev();
        bits.fold(Point(point.into_group()), |sum, bit| {
            let twice = sum.double();
            if G1_COFACTOR >> bit & 1 == 1 { Point(twice.0 + point) } else { twice }
        })
    }

    fn pairing_product(pairs: &[(G1, G2)]) -> Gt {
        let mut product = Fq12::ONE;
        for pairs in pairs.chunks(AT_A_TIME) {
            let (ps, qs): (Vec<G1>, Vec<G2>) = pairs.iter().copied().unzip();
            product *= Bls12_381::multi_miller_loop(affine(&ps), affine(&qs)).0;
        }
        // Lines through points of the subgroup, at points of the subgroup, are not zero: it does not fail.
        let power = Bls12_381::final_exponentiation(MillerLoopOutput(product));
        power.map_or_else(Gt::identity, |power| Gt(power.0))
    }

    /// No lines: of many points they would be much, and a sensor has no memory for them.
    type Lines = ();

    fn prepare(_: &[G2]) {}

    fn prepared_product(points: &[G1], prepared: &[G2], (): &()) -> Gt {
        Self::pairing_product(&points.iter().copied().zip(prepared.iter().copied()).collect::<Vec<_>>())
    }
}

/// A point of the curve, not yet of the subgroup.
fn map_to_curve<C: Curve>(element: C::Field) -> Affine<C::Config> {
    // The simplified SWU map is defined everywhere, so this does not fail.
    WBMap::<C::Config>::map_to_curve(element).unwrap_or_else(|_| Affine::zero())
}
