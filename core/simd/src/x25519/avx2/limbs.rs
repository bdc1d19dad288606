//! Arithmetic on five limbs of 51 bits, in each lane of five vectors. The types of [`field`](super::field)
//! bound the sizes of the limbs.
//!
//! AVX2 multiplies integers of 32 bits, floating-point numbers of 53: two fused multiply-adds give a whole
//! product of limbs, exactly, its high and its low half (the error-free transformation of T. Ogita, S. M. Rump,
//! S. Oishi, *Accurate sum and dot product*, SIAM J. Sci. Comput. 26 (2005), TwoProductFMA). A constant that is
//! added first fixes the place at which it is cut, and makes the half an integer in the number's lowest bits,
//! which vectors of integers add up.

use core::arch::x86_64::{
    __m256d, __m256i, _mm256_add_epi64, _mm256_add_pd, _mm256_and_si256, _mm256_castpd_si256,
    _mm256_castsi256_pd, _mm256_extract_epi64, _mm256_fmadd_pd, _mm256_mul_epu32, _mm256_or_si256,
    _mm256_set_epi64x, _mm256_set1_epi64x, _mm256_set1_pd, _mm256_sllv_epi64, _mm256_srli_epi64,
    _mm256_sub_pd,
};
use core::hint::black_box;

use super::LANES;

/// The 51 bits of a limb; also the limbs of p but the lowest.
pub(super) const LIMB: i64 = (1 << 51) - 1;
/// The lowest limb of p.
pub(super) const P0: i64 = (1 << 51) - 19;
/// Addition to a raised limb: a multiple of 2^51, and half of 2^51 so that a carry rounds to the nearest.
pub(super) const RAISE: i64 = (1 << 60) + HALF;
const HALF: i64 = 1 << 50;

/// Constant for numbers from 2^103 to 2^104, whose last bit is 2^51: between them, 2^102 above and below it.
const HIGH: f64 = 3.0 * (1_u128 << 102) as f64;
/// Constant for numbers from 2^52 to 2^53, whose last bit is 1: between them, 2^51 above and below it.
pub(super) const LOW: f64 = 3.0 * (1_u64 << 51) as f64;
/// Exact: from 2^103 to 2^51 are 53 bits.
const BOTH: f64 = HIGH + LOW;
/// Difference between a number from 2^52 to 2^53, as an integer, and its distance from 2^52.
const UNIT: f64 = (1_u64 << 52) as f64;

/// Five limbs, the least significant first, as integers in floating point.
pub(super) type Factors = [__m256d; 5];
/// Five limbs, the least significant first, as 64-bit integers.
pub(super) type Limbs = [__m256i; 5];

/// The factor 19 with which columns 5 to 9 of a product come back.
///
/// It is the number 3 out of sight of the optimiser, which would gather shifts and additions into a 64-bit
/// multiplication, for which AVX2 has no instruction.
#[derive(Clone, Copy)]
pub(super) struct Fold(__m256i);

impl Fold {
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn new() -> Self {
        Self(_mm256_set1_epi64x(black_box(3)))
    }

    /// low + 19·column, modulo 2^64.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn fold(self, low: __m256i, column: __m256i) -> __m256i {
        let nine = plus(column, _mm256_sllv_epi64(column, self.0));
        plus(plus(low, column), plus(nine, nine))
    }
}

/// Starts of columns 0 to 4: `more`, less what the constants of all halves add to a column and to 19 times
/// the column five above. `products` says how many there are in each of columns 0 to 8; a product leaves its
/// low half in its column, its high half in the next.
const fn starts(products: [i64; 9], more: i64) -> [i64; 5] {
    let [p0, p1, p2, p3, p4, p5, p6, p7, p8] = products;
    [
        start(more, p0 + 19 * p5, 19 * p4),
        start(more, p1 + 19 * p6, p0 + 19 * p5),
        start(more, p2 + 19 * p7, p1 + 19 * p6),
        start(more, p3 + 19 * p8, p2 + 19 * p7),
        start(more, p4, p3 + 19 * p8),
    ]
}

/// `more`, less the constants of so many low and high halves, modulo 2^64.
const fn start(more: i64, low: i64, high: i64) -> i64 {
    let low = low.wrapping_mul(LOW.to_bits().cast_signed());
    let high = high.wrapping_mul(HIGH.to_bits().cast_signed());
    more.wrapping_sub(low).wrapping_sub(high)
}

/// Products of limbs in each column of a product and of a square.
const PRODUCT: [i64; 9] = [1, 2, 3, 4, 5, 4, 3, 2, 1];
const SQUARE: [i64; 9] = [1, 1, 2, 2, 3, 2, 2, 1, 1];

/// Starts of a product's columns, for the product alone.
pub(super) const PLAIN: [i64; 5] = starts(PRODUCT, 0);
/// Starts of a product's columns, for limbs that are [`RAISE`] more.
pub(super) const RAISED: [i64; 5] = starts(PRODUCT, RAISE);
/// Starts of a square's columns, for limbs that are [`RAISE`] more.
const RAISED_SQUARE: [i64; 5] = starts(SQUARE, RAISE);
/// Starts of the columns of five limbs times one number.
const MULTIPLE: [i64; 5] = starts([1, 1, 1, 1, 1, 0, 0, 0, 0], 0);

/// a + b.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn plus(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi64(a, b)
}

/// The same number in all lanes.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn all(number: i64) -> __m256i {
    _mm256_set1_epi64x(number)
}

/// A vector of four words. No closure makes it, because the compiler may leave a closure out of line, and a ladder calls
/// nothing but products.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn load(words: &[u64; LANES]) -> __m256i {
    let [w0, w1, w2, w3] = *words;
    _mm256_set_epi64x(w3.cast_signed(), w2.cast_signed(), w1.cast_signed(), w0.cast_signed())
}

/// The four words of a vector.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn unload(vector: __m256i) -> [u64; LANES] {
    [
        _mm256_extract_epi64::<0>(vector).cast_unsigned(),
        _mm256_extract_epi64::<1>(vector).cast_unsigned(),
        _mm256_extract_epi64::<2>(vector).cast_unsigned(),
        _mm256_extract_epi64::<3>(vector).cast_unsigned(),
    ]
}

/// A byte of all ones or zeros as a mask of all lanes.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn mask(byte: u8) -> __m256d {
    _mm256_castsi256_pd(all(byte.cast_signed().into()))
}

/// The product of two limbs, below 2^102 absolutely: with h + l·2^−51 for a·b·2^−51, h an integer and l at most
/// 2^50 absolutely, l and h, either with the bits of its constant.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn halves(a: __m256d, b: __m256d) -> [__m256i; 2] {
    let high = _mm256_fmadd_pd(a, b, _mm256_set1_pd(HIGH));
    let low = _mm256_fmadd_pd(a, b, _mm256_sub_pd(_mm256_set1_pd(BOTH), high));
    [_mm256_castpd_si256(low), _mm256_castpd_si256(high)]
}

/// Adds the low halves of a column's products to what the column has, and makes the next column of the high
/// ones.
macro_rules! column {
    ($column:expr; $first:expr $(, $other:expr)*) => {{
        let [low, high] = halves($first.0, $first.1);
        let (sum, next) = (plus($column, low), high);
        $(
            let [low, high] = halves($other.0, $other.1);
            let (sum, next) = (plus(sum, low), plus(next, high));
        )*
        (sum, next)
    }};
}

/// The product of two elements, each limb with what `starts` adds.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn product(a: Factors, b: Factors, starts: [i64; 5], fold: Fold) -> Limbs {
    let ([a0, a1, a2, a3, a4], [b0, b1, b2, b3, b4], [s0, s1, s2, s3, s4]) = (a, b, starts);
    let (c0, next) = column!(all(s0); (a0, b0));
    let (c1, next) = column!(plus(next, all(s1)); (a0, b1), (a1, b0));
    let (c2, next) = column!(plus(next, all(s2)); (a0, b2), (a1, b1), (a2, b0));
    let (c3, next) = column!(plus(next, all(s3)); (a0, b3), (a1, b2), (a2, b1), (a3, b0));
    let (c4, next) = column!(plus(next, all(s4)); (a0, b4), (a1, b3), (a2, b2), (a3, b1), (a4, b0));
    let (c5, next) = column!(next; (a1, b4), (a2, b3), (a3, b2), (a4, b1));
    let c0 = fold.fold(c0, c5);
    let (c6, next) = column!(next; (a2, b4), (a3, b3), (a4, b2));
    let c1 = fold.fold(c1, c6);
    let (c7, next) = column!(next; (a3, b4), (a4, b3));
    let c2 = fold.fold(c2, c7);
    let (c8, c9) = column!(next; (a4, b4));
    [c0, c1, c2, fold.fold(c3, c8), fold.fold(c4, c9)]
}

/// The square of an element, each limb with [`RAISE`]: products of two different limbs are made once, of twice
/// one of them.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn square([a0, a1, a2, a3, a4]: Factors, fold: Fold) -> Limbs {
    let [s0, s1, s2, s3, s4] = RAISED_SQUARE;
    let (d0, d1) = (_mm256_add_pd(a0, a0), _mm256_add_pd(a1, a1));
    let (d2, d3) = (_mm256_add_pd(a2, a2), _mm256_add_pd(a3, a3));
    let (c0, next) = column!(all(s0); (a0, a0));
    let (c1, next) = column!(plus(next, all(s1)); (d0, a1));
    let (c2, next) = column!(plus(next, all(s2)); (d0, a2), (a1, a1));
    let (c3, next) = column!(plus(next, all(s3)); (d0, a3), (d1, a2));
    let (c4, next) = column!(plus(next, all(s4)); (d0, a4), (d1, a3), (a2, a2));
    let (c5, next) = column!(next; (d1, a4), (d2, a3));
    let c0 = fold.fold(c0, c5);
    let (c6, next) = column!(next; (d2, a4), (a3, a3));
    let c1 = fold.fold(c1, c6);
    let (c7, next) = column!(next; (d3, a4));
    let c2 = fold.fold(c2, c7);
    let (c8, c9) = column!(next; (a4, a4));
    [c0, c1, c2, fold.fold(c3, c8), fold.fold(c4, c9)]
}

/// a + factor·b.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn plus_multiple(a: Limbs, b: Factors, factor: f64, fold: Fold) -> Limbs {
    let ([a0, a1, a2, a3, a4], [b0, b1, b2, b3, b4], [s0, s1, s2, s3, s4]) = (a, b, MULTIPLE);
    let k = _mm256_set1_pd(factor);
    let (c0, next) = column!(plus(a0, all(s0)); (b0, k));
    let (c1, next) = column!(plus(plus(a1, next), all(s1)); (b1, k));
    let (c2, next) = column!(plus(plus(a2, next), all(s2)); (b2, k));
    let (c3, next) = column!(plus(plus(a3, next), all(s3)); (b3, k));
    let (c4, c5) = column!(plus(plus(a4, next), all(s4)); (b4, k));
    [fold.fold(c0, c5), c1, c2, c3, c4]
}

/// A carry from each limb to the next, all at once, for limbs from [`RAISE`] − 2^60 to [`RAISE`] + 2^60;
/// without the [`RAISE`].
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn carry([l0, l1, l2, l3, l4]: Limbs) -> Factors {
    let over = _mm256_mul_epu32(_mm256_srli_epi64::<51>(l4), all(19));
    [
        carried(l0, over, 19),
        carried(l1, _mm256_srli_epi64::<51>(l0), 1),
        carried(l2, _mm256_srli_epi64::<51>(l1), 1),
        carried(l3, _mm256_srli_epi64::<51>(l2), 1),
        carried(l4, _mm256_srli_epi64::<51>(l3), 1),
    ]
}

/// The low 51 bits of a limb and what is carried into it, which is `times` the carry of a raised limb.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn carried(limb: __m256i, over: __m256i, times: i64) -> __m256d {
    let unit = _mm256_castpd_si256(_mm256_set1_pd(UNIT));
    let low = _mm256_or_si256(_mm256_and_si256(limb, all(LIMB)), unit);
    // Without UNIT, without the half of 2^51, and without what is carried out of the multiple of 2^51.
    let surplus = UNIT + (HALF + times * (RAISE >> 51)) as f64;
    _mm256_sub_pd(_mm256_castsi256_pd(plus(low, over)), _mm256_set1_pd(surplus))
}

/// Carries from the lowest limb to the highest, one after the other; returns the carry of the highest.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn rippled(mut limbs: Limbs) -> (Limbs, __m256i) {
    let mut over = all(0);
    for limb in &mut limbs {
        let sum = plus(*limb, over);
        over = _mm256_srli_epi64::<51>(sum);
        *limb = _mm256_and_si256(sum, all(LIMB));
    }
    (limbs, over)
}
