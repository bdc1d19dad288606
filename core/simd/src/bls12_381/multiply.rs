//! Multiplication of eight points at once, each by a scalar of its own.
//!
//! A scalar is k₀ + k₁·z², and z² · point costs one product in the field. Digits of five bits select, by
//! masks, from sixteen multiples of each point, all of which are read; the sequence of additions and
//! doublings is always the same.
//!
//! Nor does [`multiply`] add anything to the identity, or the identity to anything: some processors take less time for
//! multiplications of zeros (REVIEW.md). For a digit that is zero another multiple is added, and the sum is
//! dropped; and the first sum is not the identity but one at the highest place, which the scalar is made less by.

use alloc::vec::Vec;
use core::arch::x86_64::{_mm512_cmpeq_epi64_mask, _mm512_set1_epi64};

use crate::bls12_381::curve::LanePoint;
use crate::bls12_381::scalar::{Digit, Digits, WIDTH};
use crate::words::load;

/// Multiples of a point: 1 to 16 times.
struct Multiples([LanePoint; 1 << (WIDTH - 1)]);

impl Multiples {
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn new(point: &LanePoint) -> Self {
        let mut multiples = [*point; 1 << (WIDTH - 1)];
        for at in 1..multiples.len() {
            let half = multiples.get(at / 2).unwrap_or(point);
            let next =
                if at % 2 == 1 { half.double() } else { multiples.get(at - 1).unwrap_or(point).add(point) };
            if let Some(place) = multiples.get_mut(at) {
                *place = next;
            }
        }
        Self(multiples)
    }

    /// The digit's multiple: of each lane its own, without its sign; for 0 what is given.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn choose(&self, digit: &Digit, zero: &LanePoint) -> LanePoint {
        let magnitudes = load(&digit.magnitudes);
        self.0.iter().zip(1..).fold(*zero, |chosen, (multiple, magnitude)| {
            chosen.select(multiple, _mm512_cmpeq_epi64_mask(magnitudes, _mm512_set1_epi64(magnitude)))
        })
    }

    /// low · point and high·z² · point; for 0 what is given, or its image.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn choose_both(&self, [low, high]: [&Digit; 2], zero: &LanePoint) -> [LanePoint; 2] {
        // The endomorphism multiplies by −z².
        let image = self.choose(high, zero).endomorphism();
        [self.choose(low, zero).negate_if(low.negative), image.negate_if(!high.negative)]
    }

    /// sum + (low + high·z²) · point
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn add_to(&self, sum: &LanePoint, digits: [&Digit; 2]) -> LanePoint {
        let [point, ..] = &self.0;
        let (terms, mut sum) = (self.choose_both(digits, point), *sum);
        for (term, digit) in terms.iter().zip(digits) {
            sum = sum.add(term).select(&sum, digit.is_zero());
        }
        sum
    }
}

/// (2^125 + low + high·z²) · point, of points of order r.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn multiply(point: &LanePoint, [low, high]: [&Digits; 2]) -> LanePoint {
    let multiples = Multiples::new(point);
    let mut digits = low.0.iter().zip(&high.0).rev();
    let Some((low, high)) = digits.next() else { return LanePoint::identity() };
    // 1 at the highest place. Digits there are not negative, and lower ones too small to make 0 of it.
    let mut sum = multiples.add_to(point, [low, high]);
    for (low, high) in digits {
        sum = multiples.add_to(&shifted(&sum), [low, high]);
    }
    sum
}

/// Σ (low + high·z²) · point over pairs of the two slices, as for [`multiply`]; all share their doublings, so
/// that they should not be more than there is memory close by for the multiples: 24,576 bytes each.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn sum(points: &[LanePoint], halves: &[[Digits; 2]], digits: usize) -> LanePoint {
    let multiples: Vec<Multiples> = points.iter().map(|point| Multiples::new(point)).collect();
    let mut sum = LanePoint::identity();
    for place in (0..digits).rev() {
        sum = shifted(&sum);
        for (multiples, [low, high]) in multiples.iter().zip(halves) {
            if let (Some(low), Some(high)) = (low.0.get(place), high.0.get(place)) {
                // Weights are no secrets: identities may be added.
                let [low, high] = multiples.choose_both([low, high], &LanePoint::identity());
                sum = sum.add(&low).add(&high);
            }
        }
    }
    sum
}

/// 2^5 · point
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn shifted(point: &LanePoint) -> LanePoint {
    let mut shifted = *point;
    for _ in 0..WIDTH {
        shifted = shifted.double();
    }
    shifted
}
