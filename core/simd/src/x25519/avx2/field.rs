//! Four elements of the field modulo p = 2^255 − 19 at once, one in each 64-bit lane of five vectors.
//!
//! An element is l0 + l1·2^51 + … + l4·2^204. A factor has its limbs in floating point, a term of a sum in
//! integers of 64 bits:
//!
//! | type | each limb, absolutely | comes from | may be |
//! |---|---|---|---|
//! | [`Tight`] | < 2^50 + 2^14 | carries | multiplied |
//! | [`Difference`] | < 2^51 + 2^15 | two tight elements | multiplied with a tight one |
//! | [`Wide`] | < 2^59 | products, bytes | raised, subtracted |
//! | [`Raised`] | < 2^59, and [`RAISE`](super::limbs::RAISE) is added | products, wide elements | carried, subtracted from |
//!
//! A product of limbs has to be below 2^102, and so a [`Difference`] cannot be squared. Floating-point numbers
//! here are integers of at most 53 bits or multiples of 2^51 of as many: every operation on them is exact, but
//! that which cuts a product, and whichever way that rounds, the low half makes up for it. None is subnormal.
//!
//! Nothing here branches on, or addresses memory by, the value of an element.

use core::arch::x86_64::{
    __m256d, _mm256_add_pd, _mm256_and_si256, _mm256_blendv_pd, _mm256_castpd_si256, _mm256_castsi256_pd,
    _mm256_cmpeq_epi64, _mm256_mul_epu32, _mm256_or_si256, _mm256_set1_pd, _mm256_setzero_pd,
    _mm256_slli_epi64, _mm256_srli_epi64, _mm256_sub_epi64, _mm256_sub_pd,
};

use super::LANES;
use super::limbs::{
    Factors, Fold, LIMB, LOW, Limbs, P0, PLAIN, RAISE, RAISED, all, carry, load, plus, plus_multiple,
    product, rippled, square, unload,
};

/// Elements that may be multiplied: each limb below 2^50 + 2^14.
#[derive(Clone, Copy)]
pub(super) struct Tight(Factors);

/// A difference of two tight elements, which may be multiplied with a tight one.
#[derive(Clone, Copy)]
pub(super) struct Difference(Factors);

/// A product before its carry: each limb below 2^59.
#[derive(Clone, Copy)]
pub(super) struct Wide(Limbs);

/// A product before its carry, with a constant in each limb.
#[derive(Clone, Copy)]
pub(super) struct Raised(Limbs);

/// The operation on each pair of limbs.
macro_rules! each {
    ($operation:ident, $a:expr, $b:expr) => {{
        let ([a0, a1, a2, a3, a4], [b0, b1, b2, b3, b4]) = ($a, $b);
        [$operation(a0, b0), $operation(a1, b1), $operation(a2, b2), $operation(a3, b3), $operation(a4, b4)]
    }};
}

impl Tight {
    /// The same number in all lanes; it must be an integer below 2^50.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn small(value: f64) -> Self {
        let zero = _mm256_setzero_pd();
        Self([_mm256_set1_pd(value), zero, zero, zero, zero])
    }

    /// The 64-bit words of the elements, least significant first, fully reduced.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn to_words(self) -> [[u64; LANES]; 4] {
        let [l0, l1, l2, l3, l4] = self.reduced();
        [
            unload(_mm256_or_si256(l0, _mm256_slli_epi64::<51>(l1))),
            unload(_mm256_or_si256(_mm256_srli_epi64::<13>(l1), _mm256_slli_epi64::<38>(l2))),
            unload(_mm256_or_si256(_mm256_srli_epi64::<26>(l2), _mm256_slli_epi64::<25>(l3))),
            unload(_mm256_or_si256(_mm256_srli_epi64::<39>(l3), _mm256_slli_epi64::<12>(l4))),
        ]
    }

    /// The limbs of the elements modulo p.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn reduced(self) -> Limbs {
        // p more, which exceeds what is below zero: every limb is between 0 and 2^52.
        let magic = _mm256_set1_pd(LOW);
        let [l0, l1, l2, l3, l4] = each!(_mm256_add_pd, self.0, [magic; 5]);
        let bits = _mm256_castpd_si256(magic);
        let integers = [
            _mm256_sub_epi64(_mm256_castpd_si256(l0), bits),
            _mm256_sub_epi64(_mm256_castpd_si256(l1), bits),
            _mm256_sub_epi64(_mm256_castpd_si256(l2), bits),
            _mm256_sub_epi64(_mm256_castpd_si256(l3), bits),
            _mm256_sub_epi64(_mm256_castpd_si256(l4), bits),
        ];
        let p = [all(P0), all(LIMB), all(LIMB), all(LIMB), all(LIMB)];
        let (mut limbs, over) = rippled(each!(plus, integers, p));
        let [lowest, ..] = &mut limbs;
        // The number was below 2^256, so what the first pass carries over is 0 or 1, and p + 37 the most left.
        *lowest = plus(*lowest, _mm256_mul_epu32(over, all(19)));
        // Bit 255 of the number plus 19 is set if it is at least p; then p is subtracted: 19 added, bit 255
        // dropped.
        let mut above = limbs;
        let [lowest, ..] = &mut above;
        *lowest = plus(*lowest, all(19));
        let (_, over) = rippled(above);
        let [lowest, ..] = &mut limbs;
        *lowest = plus(*lowest, _mm256_mul_epu32(over, all(19)));
        rippled(limbs).0
    }

    /// All ones in the lanes that hold 0 modulo p, else zero.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn is_zero(self) -> __m256d {
        let [l0, l1, l2, l3, l4] = self.reduced();
        let any = _mm256_or_si256(_mm256_or_si256(l0, l1), _mm256_or_si256(_mm256_or_si256(l2, l3), l4));
        _mm256_castsi256_pd(_mm256_cmpeq_epi64(any, all(0)))
    }

    /// `other` in the lanes of the mask, `self` in the others.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn select(self, other: Self, mask: __m256d) -> Self {
        let ([a0, a1, a2, a3, a4], [b0, b1, b2, b3, b4]) = (self.0, other.0);
        Self([
            _mm256_blendv_pd(a0, b0, mask),
            _mm256_blendv_pd(a1, b1, mask),
            _mm256_blendv_pd(a2, b2, mask),
            _mm256_blendv_pd(a3, b3, mask),
            _mm256_blendv_pd(a4, b4, mask),
        ])
    }

    /// self − other.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn minus(self, other: Self) -> Difference {
        Difference(each!(_mm256_sub_pd, self.0, other.0))
    }

    /// self · other.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn mul(self, other: Self, fold: Fold) -> Wide {
        Wide(product(self.0, other.0, PLAIN, fold))
    }

    /// self · other, raised.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn mul_raised(self, other: Self, fold: Fold) -> Raised {
        Raised(product(self.0, other.0, RAISED, fold))
    }

    /// self², raised.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn square_raised(self, fold: Fold) -> Raised {
        Raised(square(self.0, fold))
    }

    /// self to the power 2^times.
    #[target_feature(enable = "avx2,fma")]
    fn squared(self, times: usize, fold: Fold) -> Self {
        let mut power = self;
        for _ in 0..times {
            power = power.square_raised(fold).carry();
        }
        power
    }

    /// self · other, to be multiplied again.
    #[target_feature(enable = "avx2,fma")]
    fn times(self, other: Self, fold: Fold) -> Self {
        self.mul_raised(other, fold).carry()
    }

    /// 1 / self, and 0 for 0: the power p − 2 = 2^255 − 21.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn invert(self, fold: Fold) -> Self {
        // `ones_n` is self to the power 2^n − 1, in binary n ones.
        let three = self.squared(1, fold).times(self, fold);
        let ones_4 = three.squared(2, fold).times(three, fold);
        let ones_5 = ones_4.squared(1, fold).times(self, fold);
        let ones_10 = ones_5.squared(5, fold).times(ones_5, fold);
        let ones_20 = ones_10.squared(10, fold).times(ones_10, fold);
        let ones_40 = ones_20.squared(20, fold).times(ones_20, fold);
        let ones_50 = ones_40.squared(10, fold).times(ones_10, fold);
        let ones_100 = ones_50.squared(50, fold).times(ones_50, fold);
        let ones_200 = ones_100.squared(100, fold).times(ones_100, fold);
        let ones_250 = ones_200.squared(50, fold).times(ones_50, fold);
        // 2^255 − 21 = (2^250 − 1)·2^5 + 11, and 11 = 8 + 3.
        let eleven = self.squared(3, fold).times(three, fold);
        ones_250.squared(5, fold).times(eleven, fold)
    }
}

impl Difference {
    /// self · other.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn mul(self, other: Tight, fold: Fold) -> Wide {
        Wide(product(self.0, other.0, PLAIN, fold))
    }
}

impl Wide {
    /// The same number in all lanes; it must be below 2^51.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn small(value: i64) -> Self {
        Self([all(value), all(0), all(0), all(0), all(0)])
    }

    /// The numbers whose 64-bit words are given, least significant first. As RFC 7748 says, bit 255 is
    /// ignored and numbers from p on are taken modulo p.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn from_words(words: &[[u64; LANES]; 4]) -> Self {
        let [w0, w1, w2, w3] = words;
        let (w0, w1, w2, w3) = (load(w0), load(w1), load(w2), load(w3));
        let mask = all(LIMB);
        Self([
            _mm256_and_si256(w0, mask),
            _mm256_and_si256(_mm256_or_si256(_mm256_srli_epi64::<51>(w0), _mm256_slli_epi64::<13>(w1)), mask),
            _mm256_and_si256(_mm256_or_si256(_mm256_srli_epi64::<38>(w1), _mm256_slli_epi64::<26>(w2)), mask),
            _mm256_and_si256(_mm256_or_si256(_mm256_srli_epi64::<25>(w2), _mm256_slli_epi64::<39>(w3)), mask),
            _mm256_and_si256(_mm256_srli_epi64::<12>(w3), mask),
        ])
    }

    /// The same elements, raised.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn raised(self) -> Raised {
        Raised(each!(plus, self.0, [all(RAISE); 5]))
    }
}

impl Raised {
    /// The same elements, to be multiplied.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn carry(self) -> Tight {
        Tight(carry(self.0))
    }

    /// self + other.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn add(self, other: Wide) -> Tight {
        Tight(carry(each!(plus, self.0, other.0)))
    }

    /// self − other.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn sub(self, other: Wide) -> Tight {
        Tight(carry(each!(_mm256_sub_epi64, self.0, other.0)))
    }

    /// self + factor · other, where the factor is below 2^18.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn plus_multiple(self, other: Difference, factor: f64, fold: Fold) -> Self {
        Self(plus_multiple(self.0, other.0, factor, fold))
    }
}

#[cfg(test)]
mod tests;
