//! Eight elements of the field modulo p = 2^255 − 19 at once, one in each 64-bit lane of five vectors.
//!
//! An element is l0 + l1·2^51 + … + l4·2^204. The multiplier of AVX-512 IFMA reads the low 52 bits of its
//! operands and *silently drops the rest*, so what may be multiplied has a type of its own, and nothing else
//! turns into it but by a carry:
//!
//! | type | each limb | comes from | may be |
//! |---|---|---|---|
//! | [`Tight`] | < 2^51 + 2^18 | carries, bytes | multiplied |
//! | [`Wide`] | < 2^60 | products | carried, subtracted |
//! | [`Raised`] | ≥ 2^61, < 2^62 | products that 1216·p was added to, limb by limb | carried, subtracted from |
//!
//! Because every limb of a [`Raised`] exceeds every limb of a [`Wide`], their difference needs no constant of
//! its own: the 1216·p costs nothing where the accumulators of a product start with it instead of zero.
//!
//! Nothing here branches on, or addresses memory by, the value of an element.

use core::arch::x86_64::{
    _mm512_add_epi64, _mm512_and_si512, _mm512_madd52lo_epu64, _mm512_mask_blend_epi64, _mm512_or_si512,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64, _mm512_srli_epi64, _mm512_testn_epi64_mask,
};

use super::limbs::{LIMB, Limbs, carry, double, minus, multiple_of_p, plus, product, rippled, square};
use crate::words::{Mask, Words, hi, lo, load, store};

/// Elements that may be multiplied: each limb below 2^51 + 2^18.
#[derive(Clone, Copy)]
pub(super) struct Tight(Limbs);

/// A product before its carry: each limb below 2^60.
#[derive(Clone, Copy)]
pub(super) struct Wide(Limbs);

/// A product and 1216·p: each limb at least 2^61 and below 2^62.
#[derive(Clone, Copy)]
pub(super) struct Raised(Limbs);

impl Tight {
    /// The same number in all lanes; it must be below 2^51.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn small(value: i64) -> Self {
        let zero = _mm512_setzero_si512();
        Self([_mm512_set1_epi64(value), zero, zero, zero, zero])
    }

    /// The numbers whose 64-bit words are given, least significant first. As RFC 7748 says, bit 255 is
    /// ignored and numbers from p on are taken modulo p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn from_words(words: &[Words; 4]) -> Self {
        let [w0, w1, w2, w3] = words;
        let (w0, w1, w2, w3) = (load(w0), load(w1), load(w2), load(w3));
        let mask = _mm512_set1_epi64(LIMB);
        Self([
            _mm512_and_si512(w0, mask),
            _mm512_and_si512(_mm512_or_si512(_mm512_srli_epi64::<51>(w0), _mm512_slli_epi64::<13>(w1)), mask),
            _mm512_and_si512(_mm512_or_si512(_mm512_srli_epi64::<38>(w1), _mm512_slli_epi64::<26>(w2)), mask),
            _mm512_and_si512(_mm512_or_si512(_mm512_srli_epi64::<25>(w2), _mm512_slli_epi64::<39>(w3)), mask),
            _mm512_and_si512(_mm512_srli_epi64::<12>(w3), mask),
        ])
    }

    /// The 64-bit words of the elements, least significant first, fully reduced.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn to_words(self) -> [Words; 4] {
        let [l0, l1, l2, l3, l4] = self.reduced();
        [
            store(_mm512_or_si512(l0, _mm512_slli_epi64::<51>(l1))),
            store(_mm512_or_si512(_mm512_srli_epi64::<13>(l1), _mm512_slli_epi64::<38>(l2))),
            store(_mm512_or_si512(_mm512_srli_epi64::<26>(l2), _mm512_slli_epi64::<25>(l3))),
            store(_mm512_or_si512(_mm512_srli_epi64::<39>(l3), _mm512_slli_epi64::<12>(l4))),
        ]
    }

    /// The limbs of the elements modulo p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn reduced(self) -> Limbs {
        // Tight limbs make less than 2^255 + 2^223, so what the first pass carries over is 0 or 1, and p + 37
        // the most that can be left.
        let nineteen = _mm512_set1_epi64(19);
        let (mut limbs, over) = rippled(self.0);
        limbs[0] = _mm512_madd52lo_epu64(limbs[0], over, nineteen);
        // Bit 255 of the number plus 19 is set if it is at least p; then p is subtracted: 19 added, bit 255
        // dropped.
        let mut above = limbs;
        above[0] = _mm512_add_epi64(above[0], nineteen);
        let (_, over) = rippled(above);
        limbs[0] = _mm512_madd52lo_epu64(limbs[0], over, nineteen);
        rippled(limbs).0
    }

    /// The lanes that hold 0 modulo p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn is_zero(self) -> Mask {
        let [l0, l1, l2, l3, l4] = self.reduced();
        let any = _mm512_or_si512(_mm512_or_si512(l0, l1), _mm512_or_si512(_mm512_or_si512(l2, l3), l4));
        _mm512_testn_epi64_mask(any, any)
    }

    /// `other` in the lanes of the mask, `self` in the others.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn select(self, other: Self, mask: Mask) -> Self {
        let ([a0, a1, a2, a3, a4], [b0, b1, b2, b3, b4]) = (self.0, other.0);
        Self([
            _mm512_mask_blend_epi64(mask, a0, b0),
            _mm512_mask_blend_epi64(mask, a1, b1),
            _mm512_mask_blend_epi64(mask, a2, b2),
            _mm512_mask_blend_epi64(mask, a3, b3),
            _mm512_mask_blend_epi64(mask, a4, b4),
        ])
    }

    /// The same elements, to be added and subtracted.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn wide(self) -> Wide {
        Wide(self.0)
    }

    /// The same elements, 1216·p added.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn raised(self) -> Raised {
        Raised(plus(self.0, multiple_of_p(1216)))
    }

    /// self · other.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn mul(self, other: Self) -> Wide {
        Wide(product(self.0, other.0, [_mm512_setzero_si512(); 5]))
    }

    /// self · other + 1216·p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn mul_raised(self, other: Self) -> Raised {
        // 1216 = 19 · 2 · 32: see `product`.
        Raised(product(self.0, other.0, multiple_of_p(32)))
    }

    /// self².
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn square(self) -> Wide {
        Wide(square(self.0, [_mm512_setzero_si512(); 5]))
    }

    /// self² + 1216·p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn square_raised(self) -> Raised {
        // 1216 = 19 · 4 · 16, and in the highest column 19 · 2 · 32: see `square`.
        let [s0, s1, s2, s3, _] = multiple_of_p(16);
        let [.., s4] = multiple_of_p(32);
        Raised(square(self.0, [s0, s1, s2, s3, s4]))
    }

    /// self + factor · other, where the factor is below 2^18.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn plus_multiple(self, other: Self, factor: i64) -> Wide {
        let ([a0, a1, a2, a3, a4], [b0, b1, b2, b3, b4]) = (self.0, other.0);
        let (k, zero) = (_mm512_set1_epi64(factor), _mm512_setzero_si512());
        // A bit above 52 of a limb has weight 2 in the next one, and 2·19 in the lowest.
        let wrapped = hi(zero, b4, k);
        Wide([
            lo(lo(a0, b0, k), wrapped, _mm512_set1_epi64(2 * 19)),
            _mm512_add_epi64(lo(a1, b1, k), double(hi(zero, b0, k))),
            _mm512_add_epi64(lo(a2, b2, k), double(hi(zero, b1, k))),
            _mm512_add_epi64(lo(a3, b3, k), double(hi(zero, b2, k))),
            _mm512_add_epi64(lo(a4, b4, k), double(hi(zero, b3, k))),
        ])
    }

    /// self to the power 2^times.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn squared(self, times: usize) -> Self {
        let mut power = self;
        for _ in 0..times {
            power = power.square().carry();
        }
        power
    }

    /// 1 / self, and 0 for 0: the power p − 2 = 2^255 − 21.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn invert(self) -> Self {
        // `ones_n` is self to the power 2^n − 1, in binary n ones.
        let three = self.square().carry().mul(self).carry();
        let ones_4 = three.squared(2).mul(three).carry();
        let ones_5 = ones_4.squared(1).mul(self).carry();
        let ones_10 = ones_5.squared(5).mul(ones_5).carry();
        let ones_20 = ones_10.squared(10).mul(ones_10).carry();
        let ones_40 = ones_20.squared(20).mul(ones_20).carry();
        let ones_50 = ones_40.squared(10).mul(ones_10).carry();
        let ones_100 = ones_50.squared(50).mul(ones_50).carry();
        let ones_200 = ones_100.squared(100).mul(ones_100).carry();
        let ones_250 = ones_200.squared(50).mul(ones_50).carry();
        // 2^255 − 21 = (2^250 − 1)·2^5 + 11
        let eleven = self.squared(2).mul(self).carry().squared(1).mul(self).carry();
        ones_250.squared(5).mul(eleven).carry()
    }
}

impl Wide {
    /// The same elements, to be multiplied.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn carry(self) -> Tight {
        Tight(carry(self.0))
    }
}

impl Raised {
    /// The same elements, to be multiplied.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn carry(self) -> Tight {
        Tight(carry(self.0))
    }

    /// self + other.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn add(self, other: Wide) -> Tight {
        Tight(carry(plus(self.0, other.0)))
    }

    /// self − other; no limb gets below zero.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(super) fn sub(self, other: Wide) -> Tight {
        Tight(carry(minus(self.0, other.0)))
    }
}

#[cfg(test)]
mod tests;
