//! Additions of many points of the first curve at once, in affine coordinates: they share one inversion, so
//! that each takes six products in the field, where one in Jacobian coordinates takes eleven. And weighted
//! sums made of them, where there are no vector lanes. Not constant-time.
//!
//! Equal points, opposite ones and the identity may be among those that are added.

use alloc::vec::Vec;

use ::blst::blst_fp;
use ark_ec::AffineRepr as _;
use ark_ec::short_weierstrass::Affine;
use ark_ff::Field as _;

use super::convert::Coordinate as _;
use super::ffi;
use crate::backend::times_z_squared;
use crate::parameters::{Fq, g1};
use crate::point::affine;
use crate::recoding::non_adjacent;
use crate::{G1, Point};

/// Number of columns below which too few additions share an inversion.
pub(super) const FEW_COLUMNS: usize = 8;

/// Width of weights' digits: of four neighbours at most one is not zero.
const WIDTH: u32 = 4;

/// Digits of a half of a weight: 64 bits and a carry.
const DIGITS: usize = 65;

/// Points that are worked on at once, if rows are short: what is computed of each takes some 4 kB.
const AT_ONCE: usize = 256;

/// Pairs that share an inversion: 300 bytes each, and an inversion takes as long as seventy products.
const PAIRS: usize = 128;

/// Computes [`G1::sum_weighted`], for one column and one row or more.
pub(super) fn sum_weighted(points: &[G1], weights: &[[u64; 2]], columns: usize) -> Vec<G1> {
    let points: Vec<Summand> = affine(points).iter().map(Summand::new).collect();
    let rows = points.len().div_ceil(columns).max(1);
    // First the totals, all zero, then the sums for the lowest digit of each column, then those for the next.
    let mut sums = alloc::vec![Summand::IDENTITY; columns * (1 + DIGITS)];
    let columns_at_once = (AT_ONCE / rows).max(1);
    for first in (0..columns).step_by(columns_at_once) {
        let chosen = first..columns.min(first + columns_at_once);
        let columns_of = chosen.clone().map(|column| {
            let of_column = points.iter().zip(weights).skip(column).step_by(columns);
            of_column.map(|(point, weight)| (*point, *weight)).collect()
        });
        let by_place = sums_by_place(&columns_of.collect::<Vec<_>>());
        for (column, by_place) in chosen.zip(by_place.chunks(DIGITS)) {
            for (sum, of_place) in sums.iter_mut().skip(columns + column).step_by(columns).zip(by_place) {
                *sum = *of_place;
            }
        }
    }
    evaluate(sums, columns)
}

/// Σ 2^place · sum in all columns at once, by Horner's scheme. The sums stand after as many
/// identities as there are columns: in the lowest place those of each column, and so on.
fn evaluate(mut sums: Vec<Summand>, columns: usize) -> Vec<G1> {
    let doubled: Vec<[usize; 2]> = (0..columns).map(|column| [column; 2]).collect();
    for place in (1..=DIGITS).rev() {
        add_each(&mut sums, &doubled);
        let added: Vec<[usize; 2]> = (0..columns).map(|column| [column, column + place * columns]).collect();
        add_each(&mut sums, &added);
    }
    sums.iter().copied().take(columns).map(Summand::point).collect()
}

/// Points of a column, each with its weight.
type PointColumn = Vec<(Summand, [u64; 2])>;

/// Σ digit · point for each place of the weights' digits, column by column.
fn sums_by_place(columns: &[PointColumn]) -> Vec<Summand> {
    let points: Vec<Summand> = columns.iter().flatten().map(|(point, _)| *point).collect();
    let multiples = multiples(&points);
    let count = multiples.len() / (2 * MULTIPLES);
    let (mut summands, mut lengths) = (Vec::new(), Vec::with_capacity(columns.len() * DIGITS));
    let mut by_place: Vec<Vec<Summand>> = alloc::vec![Vec::new(); DIGITS];
    let mut at = 0;
    for column in columns {
        for (_, weight) in column {
            // a + b·z²: digits of a are for the point's multiples, those of b for their images.
            for (half, first) in weight.iter().zip([0, MULTIPLES * count]) {
                for (digit, summands) in non_adjacent(u128::from(*half), WIDTH).iter().zip(&mut by_place) {
                    // Odd: 1, 3, 5 or 7.
                    let multiple = first + usize::from(digit.unsigned_abs() / 2) * count + at;
                    match (digit, multiples.get(multiple)) {
                        (0, _) | (_, None) => {}
                        (1.., Some(multiple)) => summands.push(*multiple),
                        (..=-1, Some(multiple)) => summands.push(multiple.opposite()),
                    }
                }
            }
            at += 1;
        }
        for summands_of_place in &mut by_place {
            lengths.push(summands_of_place.len());
            summands.append(summands_of_place);
        }
    }
    sum_groups(summands, &lengths)
}

/// Multiples of a point that are kept: 1, 3, 5 and 7 times.
const MULTIPLES: usize = 1 << (WIDTH - 2);

/// The points, then 3 times each, 5 times and 7 times, and z² times all of these.
fn multiples(points: &[Summand]) -> Vec<Summand> {
    let count = points.len();
    // The last ones become 2 times each.
    let mut multiples = points.repeat(MULTIPLES + 1);
    let twice = MULTIPLES * count;
    add_each(&mut multiples, &(0..count).map(|at| [twice + at; 2]).collect::<Vec<_>>());
    for multiple in 1..MULTIPLES {
        let (first, last) = ((multiple - 1) * count, multiple * count);
        multiples.copy_within(first..last, last);
        add_each(&mut multiples, &(0..count).map(|at| [last + at, twice + at]).collect::<Vec<_>>());
    }
    multiples.truncate(twice);
    let images: Vec<Summand> = multiples.iter().copied().map(Summand::times_z_squared).collect();
    multiples.extend(images);
    multiples
}

/// The sum of each group of points, which stand one after the other, so many in each.
fn sum_groups(mut points: Vec<Summand>, lengths: &[usize]) -> Vec<Summand> {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut distance = 1;
    while distance < longest {
        // Two by two in each group, then two of these sums, and so on.
        let mut pairs = Vec::with_capacity(points.len() / distance / 2);
        let mut first = 0;
        for length in lengths {
            let last = first + length;
            pairs.extend(
                (first + distance..last).step_by(2 * distance).map(|other| [other - distance, other]),
            );
            first = last;
        }
        add_each(&mut points, &pairs);
        distance *= 2;
    }
    let mut first = 0;
    let sums = lengths.iter().map(|length| {
        let sum = if *length == 0 { None } else { points.get(first) };
        first += length;
        sum.copied().unwrap_or(Summand::IDENTITY)
    });
    sums.collect()
}

/// Adds points: for each pair of places, the point at the first becomes the sum of both points. No place is
/// the first of two pairs, or is in one pair first and in another second.
///
/// So many pairs share one inversion, by Montgomery's trick, that it costs each of them little, and no more
/// than a processor has memory close by for.
fn add_each(points: &mut [Summand], pairs: &[[usize; 2]]) {
    for pairs in pairs.chunks(PAIRS) {
        add_few(points, pairs);
    }
}

/// Adds as [`add_each`] does, with one inversion.
fn add_few(points: &mut [Summand], pairs: &[[usize; 2]]) {
    let mut additions = alloc::vec![Addition::default(); pairs.len()];
    // Values stay where blst writes them: copying what was just written stalls the processor.
    let [mut product, mut next] = [Fq::ONE.to_native(), blst_fp::default()];
    for (&[to, from], addition) in pairs.iter().zip(&mut additions) {
        let (Some(point), Some(other)) = (points.get(to), points.get(from)) else { continue };
        if addition.set_slope(point, other) {
            addition.to = Some(to);
            addition.other_x = other.x;
            addition.before = product;
            ffi::multiply(&mut next, &product, &addition.run);
            core::mem::swap(&mut product, &mut next);
        } else {
            // Opposite points, or one of them the identity.
            let sum = match (point.is_identity(), other.is_identity()) {
                (true, _) => *other,
                (_, true) => *point,
                (false, false) => Summand::IDENTITY,
            };
            points.iter_mut().skip(to).take(1).for_each(|point| *point = sum);
        }
    }
    let mut inverse = ffi::invert(&product);
    let [mut own, mut slope, mut x, mut rest, mut height] = [blst_fp::default(); 5];
    for addition in additions.iter().rev() {
        let Some(point) = addition.to.and_then(|to| points.get_mut(to)) else { continue };
        ffi::multiply(&mut own, &inverse, &addition.before);
        ffi::multiply(&mut next, &inverse, &addition.run);
        ffi::multiply(&mut slope, &addition.rise, &own);
        // x₃ = λ² − x₁ − x₂
        ffi::square(&mut own, &slope);
        ffi::subtract(&mut rest, &own, &point.x);
        ffi::subtract(&mut x, &rest, &addition.other_x);
        // y₃ = λ·(x₁ − x₃) − y₁
        ffi::subtract(&mut rest, &point.x, &x);
        ffi::multiply(&mut height, &slope, &rest);
        let y = point.y;
        ffi::subtract(&mut point.y, &height, &y);
        point.x = x;
        core::mem::swap(&mut inverse, &mut next);
    }
}

/// An addition that waits for the inverse of its denominator.
#[derive(Clone, Copy, Default)]
struct Addition {
    /// The place of the first point and the sum; `None` if there is nothing to compute.
    to: Option<usize>,
    other_x: blst_fp,
    /// The slope of the line through both points, or of the tangent if they are the same, is rise/run.
    rise: blst_fp,
    run: blst_fp,
    /// The product of the denominators of all additions before.
    before: blst_fp,
}

impl Addition {
    /// Sets the slope; returns false if there is none: with the identity, and for opposite points. The
    /// divisor is not zero then, because there are no points of order two.
    fn set_slope(&mut self, point: &Summand, other: &Summand) -> bool {
        if point.is_identity() || other.is_identity() {
            return false;
        }
        ffi::subtract(&mut self.run, &other.x, &point.x);
        ffi::subtract(&mut self.rise, &other.y, &point.y);
        match (is_zero(&self.run), is_zero(&self.rise)) {
            (false, _) => true,
            (true, false) => false,
            (true, true) => {
                // 3x² / 2y
                ffi::square(&mut self.run, &point.x);
                let (squared, y) = (Fq::from_native(&self.run), Fq::from_native(&point.y));
                self.rise = (squared + squared + squared).to_native();
                self.run = (y + y).to_native();
                true
            }
        }
    }
}

/// A point in affine coordinates; zeros for the identity.
#[derive(Clone, Copy)]
struct Summand {
    x: blst_fp,
    y: blst_fp,
}

impl Summand {
    const IDENTITY: Self = Self { x: blst_fp { l: [0; 6] }, y: blst_fp { l: [0; 6] } };

    fn new(point: &Affine<g1::Config>) -> Self {
        point.xy().map_or(Self::IDENTITY, |(x, y)| Self { x: x.to_native(), y: y.to_native() })
    }

    /// No other point has y = 0: it would be of order two.
    fn is_identity(self) -> bool {
        is_zero(&self.y)
    }

    fn affine(self) -> Affine<g1::Config> {
        if self.is_identity() {
            return Affine::identity();
        }
        let [x, y] = [&self.x, &self.y].map(Fq::from_native);
        Affine::new_unchecked(x, y)
    }

    fn point(self) -> G1 {
        Point(self.affine().into_group())
    }

    /// z² · point, for a point of order r.
    fn times_z_squared(self) -> Self {
        if self.is_identity() {
            return self;
        }
        // The map leaves z as it is, which is one.
        let image = times_z_squared(self.point()).0;
        Self { x: image.x.to_native(), y: image.y.to_native() }
    }

    fn opposite(self) -> Self {
        Self { x: self.x, y: ffi::negate_if(&self.y, true) }
    }
}

fn is_zero(element: &blst_fp) -> bool {
    element.l.iter().fold(0, |all, limb| all | limb) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Arkworks, Backend as _};
    use crate::{Group as _, Scalar};

    fn multiple(scalar: u64) -> G1 {
        G1::generator() * Scalar::from(scalar)
    }

    /// Compares sums in this many columns and rows.
    fn are_those_of_arkworks(sizes: &[(usize, usize)]) {
        for (columns, rows) in sizes.iter().copied() {
            let points: Vec<G1> = (0..columns * rows).map(|at| multiple(at as u64 * at as u64 + 3)).collect();
            let weights: Vec<[u64; 2]> = (1..=points.len() as u64)
                .map(|at| [at.wrapping_mul(0x9e37_79b9_7f4a_7c15), at.wrapping_mul(0xd1b5_4a32_d192_ed03)])
                .collect();
            // The last row is shorter, too.
            for count in [points.len(), points.len() - columns / 2] {
                let (points, weights) = (&points[..count], &weights[..count]);
                assert_eq!(
                    sum_weighted(points, weights, columns),
                    Arkworks::sum_weighted(points, weights, columns),
                    "{rows} rows of {columns}"
                );
            }
        }
    }

    #[test]
    fn weighted_sums_know_the_identity_and_equal_and_opposite_points() {
        let (point, other) = (multiple(5), multiple(77));
        let points = [point, point, -point, G1::identity(), other, -other, point, -point, other];
        let extremes =
            [[0, 0], [1, 0], [0, 1], [1, 1], [u64::MAX; 2], [1 << 63, 0], [u64::MAX, 1], [0x8888, 0x8888]];
        for shift in 0..extremes.len() {
            for alike in [true, false] {
                let weight = |at: usize| extremes[(shift + if alike { 0 } else { at }) % extremes.len()];
                let weights: Vec<[u64; 2]> = (0..points.len()).map(weight).collect();
                for columns in [1, 2, 3, 9] {
                    assert_eq!(
                        sum_weighted(&points, &weights, columns),
                        Arkworks::sum_weighted(&points, &weights, columns)
                    );
                }
            }
        }
    }

    #[test]
    fn weighted_sums_are_those_of_arkworks() {
        are_those_of_arkworks(&[(1, 1), (3, 5), (8, 1), (40, 7), (2, 300), (300, 1)]);
    }

    #[test]
    fn each_pair_is_added_whatever_the_others_are() {
        let summand = |point: G1| Summand::new(&affine(&[point])[0]);
        let (one, two) = (multiple(1), multiple(2));
        let points = [one, one, one, two, one, -one, one, G1::identity(), G1::identity(), two];
        let mut summands: Vec<Summand> = points.iter().copied().map(summand).collect();
        let pairs: Vec<[usize; 2]> = (0..points.len()).step_by(2).map(|at| [at, at + 1]).collect();
        add_each(&mut summands, &pairs);
        for [to, from] in pairs {
            assert_eq!(summands[to].point(), points[to] + points[from]);
            assert_eq!(summands[from].point(), points[from]);
        }
    }
}
