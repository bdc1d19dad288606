//! Products and sums of many points of G1 on vector lanes; coordinates have the same form there.

extern crate std;

use std::sync::OnceLock;

use ark_ec::AffineRepr as _;
use ark_ec::short_weierstrass::Projective;
use ark_ff::{BigInt, PrimeField as _};
use quiver_crypto::Zeroizing;
use quiver_simd::bls12_381::{BaseFieldElement, Comb, ENTRIES, Jacobian, Lanes};

use super::{Affine, G1, Scalar, Vec, g1};
use crate::parameters::Fq;
use crate::point::affine;
use crate::{G1_COFACTOR, Group as _, Point};

/// A vector of eight costs about what two points cost one by one.
const FEW: usize = 3;

/// Columns that a sum is spread over.
const COLUMNS: usize = 8;

fn worthwhile(points: usize) -> Option<Lanes> {
    if points < FEW { None } else { Lanes::detect() }
}

pub(in super::super) fn multiply_each(points: &[G1], scalars: &[Scalar]) -> Option<Vec<G1>> {
    let lanes = worthwhile(points.len().min(scalars.len()))?;
    let words: Vec<_> = scalars.iter().map(words).collect();
    let (points, words) = (raw(points), Zeroizing::new(words));
    Some(finished(lanes.multiply_each(&points, &words)))
}

pub(in super::super) fn multiply_points(points: &[G1], scalar: &Scalar) -> Option<Vec<G1>> {
    let lanes = worthwhile(points.len())?;
    let words = Zeroizing::new(words(scalar));
    Some(finished(lanes.multiply_all(&raw(points), &words)))
}

pub(in super::super) fn sum_weighted(points: &[G1], weights: &[[u64; 2]], columns: usize) -> Option<Vec<G1>> {
    let lanes = worthwhile(points.len())?;
    let points = raw(points);
    // A single column would leave all lanes but one empty.
    Some(match columns {
        1 => [finished(lanes.sum_weighted(&points, weights, COLUMNS)).into_iter().sum()].into(),
        _ => finished(lanes.sum_weighted(&points, weights, columns)),
    })
}

pub(in super::super) fn all_in_subgroup(points: &[Affine<g1::Config>]) -> Option<Vec<bool>> {
    Some(worthwhile(points.len())?.in_subgroup(&raw_affine(points)))
}

pub(in super::super) fn clear_cofactors(points: &[Affine<g1::Config>]) -> Option<Vec<G1>> {
    Some(finished(worthwhile(points.len())?.multiply_public(&raw_affine(points), G1_COFACTOR)))
}

/// Multiples of the generator of G1 for the halves of a scalar, of 128 bits each: made when first needed, and
/// for good.
static GENERATOR: OnceLock<Comb> = OnceLock::new();

/// Rows of [`GENERATOR`]: digits of five bits.
const ROWS: u32 = u128::BITS.div_ceil(5);

pub(in super::super) fn multiply_generator_by_each(scalars: &[Scalar]) -> Option<Vec<G1>> {
    let lanes = worthwhile(scalars.len())?;
    let comb = GENERATOR.get_or_init(|| lanes.comb(&generator_rows()));
    let words = Zeroizing::new(scalars.iter().map(words).collect::<Vec<_>>());
    Some(finished(lanes.multiply_comb(comb, &words)))
}

/// Rows that have 1 to 16 times 32^place times the generator.
fn generator_rows() -> Vec<[[BaseFieldElement; 2]; ENTRIES]> {
    let mut unit = G1::generator();
    let mut multiples = Vec::with_capacity(ROWS as usize * ENTRIES);
    for _ in 0..ROWS {
        let row = (0..ENTRIES).scan(G1::identity(), |multiple, _| {
            *multiple += unit;
            Some(*multiple)
        });
        multiples.extend(row);
        unit = (0..5).fold(unit, |unit, _| unit.double());
    }
    let entries: Vec<[BaseFieldElement; 2]> =
        affine(&multiples).iter().map(|entry| [entry.x.0.0, entry.y.0.0]).collect();
    entries.as_chunks().0.to_vec()
}

fn raw(points: &[G1]) -> Zeroizing<Vec<Jacobian>> {
    Zeroizing::new(points.iter().map(raw_one).collect())
}

fn raw_affine(points: &[Affine<g1::Config>]) -> Vec<Jacobian> {
    points.iter().map(|point| raw_one(&Point(point.into_group()))).collect()
}

fn raw_one(point: &G1) -> Jacobian {
    let Projective { x, y, z } = &point.0;
    [x, y, z].map(|coordinate| coordinate.0.0)
}

/// The points; what they were copied from is erased.
fn finished(points: Vec<Jacobian>) -> Vec<G1> {
    let point = |point: &Jacobian| {
        // In Montgomery form, as in arkworks.
        let [x, y, z] = point.map(|coordinate| Fq::new_unchecked(BigInt(coordinate)));
        Point(Projective { x, y, z })
    };
    Zeroizing::new(points).iter().map(point).collect()
}

fn words(scalar: &Scalar) -> quiver_simd::bls12_381::Scalar {
    scalar.into_bigint().0
}
