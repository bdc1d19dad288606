//! BLS12-381 on vector lanes: eight points of G1, or eight Miller loops, at once.
//!
//! The same steps on hundreds of points are done on eight of them side by side, one in each lane of 512-bit
//! vectors, where a processor has AVX-512 IFMA. [`Lanes::detect`] checks at run time. There is nothing here
//! for other processors; `quiver-pairing` has it, in whose place this module computes, and with the same
//! results.
//!
//! | module | what it has |
//! |---|---|
//! | `field` | eight elements of the base field |
//! | `curve` | eight points |
//! | `scalar`, `multiply`, `comb` | multiplying them |
//! | `miller` | eight Miller loops |
//!
//! # Values
//! As in arkworks and blst, limb for limb: an element of the base field is six 64-bit words, the lowest
//! first, of 2^384 times itself modulo p; points are in Jacobian coordinates, with z = 0 for the identity.
//!
//! # Time
//! Constant in scalars and coordinates where a function does not say otherwise. The number of points is
//! public.

use alloc::vec::Vec;

use self::curve::LanePoint;
use self::scalar::{Digits, TOP, WIDTH, less};
use crate::allowed::{Allowed, allowed};
use crate::ifma::Ifma;
use crate::words::{LANES, Mask};

mod comb;
mod curve;
mod field;
mod miller;
mod multiply;
mod scalar;

pub use comb::{Comb, ENTRIES};
pub use miller::{LINES, Lines};

/// An element of the base field: 2^384 times itself modulo p, six 64-bit words from the lowest.
pub type BaseFieldElement = [u64; 6];

/// A point in Jacobian coordinates X, Y, Z: x = X/Z², y = Y/Z³, and Z = 0 for the identity.
pub type Jacobian = [BaseFieldElement; 3];

/// A scalar: 64-bit words from the lowest, of a number below r, the order of the groups.
pub type Scalar = [u64; 4];

/// Vector code for BLS12-381, where the processor has the instructions. Only [`detect`](Self::detect) makes
/// one.
#[derive(Clone, Copy, Debug)]
pub struct Lanes(Ifma);

impl Lanes {
    /// Asks the processor, and the operating system that has to save the registers. Nothing if the
    /// environment variable `QUIVER_SIMD` forbids AVX-512.
    #[must_use]
    pub fn detect() -> Option<Self> {
        if allowed() < Allowed::Avx512 { None } else { Ifma::detect().map(Self) }
    }

    /// scalar · point for each pair, of points of order r. The rest of a longer slice is left out.
    #[must_use]
    pub fn multiply_each(self, points: &[Jacobian], scalars: &[Scalar]) -> Vec<Jacobian> {
        let pairs = points.chunks(LANES).zip(scalars.chunks(LANES));
        let products = pairs.flat_map(|(points, scalars)| {
            let mut halves = Default::default();
            Digits::set_halves(&mut halves, scalars.iter().map(|scalar| less(scalar, &TOP)));
            let count = points.len().min(scalars.len());
            self.0.run(multiply_eight, (points, &halves)).into_iter().take(count)
        });
        products.collect()
    }

    /// scalar · point for each point, of points of order r.
    #[must_use]
    pub fn multiply_all(self, points: &[Jacobian], scalar: &Scalar) -> Vec<Jacobian> {
        let mut halves = Default::default();
        Digits::set_halves(&mut halves, core::iter::repeat_n(scalar, LANES).map(|scalar| less(scalar, &TOP)));
        let products = points
            .chunks(LANES)
            .flat_map(|points| self.0.run(multiply_eight, (points, &halves)).into_iter().take(points.len()));
        products.collect()
    }

    /// Σ (a + b·z²) · point, column by column: points of order r and weights [a, b] are in rows of so many
    /// columns, one row after the other; z is the absolute value of the curve's parameter. As many sums as
    /// columns. The rest of a longer slice is left out.
    ///
    /// A point that is not of order r has its part of order r multiplied so, and any other part by something
    /// else.
    #[must_use]
    pub fn sum_weighted(self, points: &[Jacobian], weights: &[[u64; 2]], columns: usize) -> Vec<Jacobian> {
        let mut sums = alloc::vec![[[0; 6]; 3]; columns];
        for (at, sums) in sums.chunks_mut(LANES).enumerate() {
            let first = at * LANES;
            // The columns' parts of each row.
            let points = points
                .chunks(columns)
                .filter_map(|row| row.get(first..columns.min(first + LANES).min(row.len())));
            let weights = weights
                .chunks(columns)
                .filter_map(|row| row.get(first..columns.min(first + LANES).min(row.len())));
            let rows: Vec<_> = points.zip(weights).collect();
            for (sum, point) in sums.iter_mut().zip(self.0.run(sum_eight, &rows)) {
                *sum = point;
            }
        }
        sums
    }

    /// integer · point for each point, of whatever order; in a time that depends on the integer. It must not
    /// be zero.
    #[must_use]
    pub fn multiply_public(self, points: &[Jacobian], integer: u64) -> Vec<Jacobian> {
        #[target_feature(enable = "avx512f,avx512ifma")]
        fn body((points, integer): (&[Jacobian], u64)) -> [Jacobian; LANES] {
            LanePoint::enter(points).times_public(integer).leave()
        }
        let products = points.chunks(LANES);
        products
            .flat_map(|points| self.0.run(body, (points, integer)).into_iter().take(points.len()))
            .collect()
    }

    /// Makes multiples of a point of order r ready: in each row, 1 to 16 times 32^place times the point, in
    /// affine coordinates x and y; none of them may be the identity. 26 rows are what
    /// [`multiply_comb`](Self::multiply_comb) needs, and as many as are there are used.
    #[must_use]
    pub fn comb(self, rows: &[[[BaseFieldElement; 2]; ENTRIES]]) -> Comb {
        self.0.run(Comb::new, rows)
    }

    /// scalar · the comb's point, for each scalar: both halves of a scalar k₀ + k₁·z² by the same rows, the
    /// higher one's product through the endomorphism.
    #[must_use]
    pub fn multiply_comb(self, comb: &Comb, scalars: &[Scalar]) -> Vec<Jacobian> {
        #[target_feature(enable = "avx512f,avx512ifma")]
        fn body((comb, [low, high]): (&Comb, &[Digits; 2])) -> [Jacobian; LANES] {
            // The endomorphism multiplies by −z².
            let high = comb.multiply(high).endomorphism().negate_if(Mask::MAX);
            comb.multiply(low).add(&high).leave()
        }
        let products = scalars.chunks(LANES).flat_map(|scalars| {
            let mut halves = Default::default();
            Digits::set_halves(&mut halves, scalars.iter().copied());
            self.0.run(body, (comb, &halves)).into_iter().take(scalars.len())
        });
        products.collect()
    }

    /// Makes lines ready, those of each of the points: [`LINES`] each, by λ and μ, two coefficients for
    /// either, with which the line at (x, y) is 1 + λx·w² + μy·w³ for w⁶ = 1 + u. Lines that are missing are
    /// 1. 16 kB a point, in groups of eight.
    #[must_use]
    pub fn lines(self, points: &[Vec<[BaseFieldElement; 4]>]) -> Lines {
        self.0.run(Lines::new, points)
    }

    /// Miller's algorithm for pairs of points (x, y) and the points whose lines are given; a point (0, 0)
    /// counts for nothing. The product of the eight results is that of all pairs, but for its conjugate,
    /// which the curve's negative parameter asks for: coefficients by powers of w, in each the real part
    /// first. Not secret: no branch depends on coordinates, but nothing is erased.
    #[must_use]
    pub fn miller(self, lines: &Lines, points: &[[BaseFieldElement; 2]]) -> [[BaseFieldElement; 12]; LANES] {
        #[target_feature(enable = "avx512f,avx512ifma")]
        fn body((lines, points): (&Lines, &[[BaseFieldElement; 2]])) -> [[BaseFieldElement; 12]; LANES] {
            miller::miller(lines, points)
        }
        self.0.run(body, (lines, points))
    }

    /// True for each point that is of order r, or the identity.
    ///
    /// Points that the endomorphism multiplies by −z²: Scott, *A note on group membership tests for G1, G2
    /// and GT on BLS pairing-friendly curves*, eprint 2021/1130.
    #[must_use]
    pub fn in_subgroup(self, points: &[Jacobian]) -> Vec<bool> {
        #[target_feature(enable = "avx512f,avx512ifma")]
        fn body(points: &[Jacobian]) -> u8 {
            let point = LanePoint::enter(points);
            let z_squared = point.times_public(Z).times_public(Z);
            point.endomorphism().negate_if(u8::MAX).equals(&z_squared)
        }
        let verdicts = points.chunks(LANES).flat_map(|points| {
            let mask = self.0.run(body, points);
            (0..points.len()).map(move |lane| mask >> lane & 1 == 1)
        });
        verdicts.collect()
    }
}

/// The absolute value of the curve's parameter.
const Z: u64 = 0xd201_0000_0001_0000;

#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply_eight((points, halves): (&[Jacobian], &[Digits; 2])) -> [Jacobian; LANES] {
    let [low, high] = halves;
    multiply::multiply(&LanePoint::enter(points), [low, high]).leave()
}

/// A row: up to eight points and their weights.
type WeightedPoints<'a> = (&'a [Jacobian], &'a [[u64; 2]]);

/// Number of rows whose multiples are kept at once.
const ROWS: usize = 16;

fn halves_of(weights: &[[u64; 2]]) -> [Digits; 2] {
    let mut halves: [Digits; 2] = Default::default();
    for (lane, weight) in weights.iter().enumerate().take(LANES) {
        for (digits, half) in halves.iter_mut().zip(weight) {
            digits.set(lane, u128::from(*half));
        }
    }
    halves
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn sum_eight(rows: &Vec<WeightedPoints<'_>>) -> [Jacobian; LANES] {
    let mut total = LanePoint::identity();
    for rows in rows.chunks(ROWS) {
        let points: Vec<LanePoint> = rows.iter().map(|(points, _)| LanePoint::enter(points)).collect();
        let halves: Vec<[Digits; 2]> = rows.iter().map(|(_, weights)| halves_of(weights)).collect();
        total = total.add(&multiply::sum(&points, &halves, 64_usize.div_ceil(WIDTH as usize)));
    }
    total.leave()
}
