//! Arithmetic on five limbs of 51 bits, in each lane of five vectors. The types of [`field`](super::field)
//! bound the sizes of the limbs.

use core::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_rol_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_srli_epi64, _mm512_sub_epi64,
};

use crate::words::{hi, lo};

/// The 51 bits of a limb; also the limbs of p but the lowest.
pub(super) const LIMB: i64 = (1 << 51) - 1;
/// The lowest limb of p.
const P0: i64 = (1 << 51) - 19;

/// Five limbs, the least significant first.
pub(super) type Limbs = [__m512i; 5];

/// A carry from each limb to the next, all at once, for limbs of any 64 bits: 2^13 at most goes into a
/// limb, 19 times as much into the lowest.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn carry([l0, l1, l2, l3, l4]: Limbs) -> Limbs {
    let mask = _mm512_set1_epi64(LIMB);
    [
        lo(_mm512_and_si512(l0, mask), _mm512_srli_epi64::<51>(l4), _mm512_set1_epi64(19)),
        _mm512_add_epi64(_mm512_and_si512(l1, mask), _mm512_srli_epi64::<51>(l0)),
        _mm512_add_epi64(_mm512_and_si512(l2, mask), _mm512_srli_epi64::<51>(l1)),
        _mm512_add_epi64(_mm512_and_si512(l3, mask), _mm512_srli_epi64::<51>(l2)),
        _mm512_add_epi64(_mm512_and_si512(l4, mask), _mm512_srli_epi64::<51>(l3)),
    ]
}

/// Carries from the lowest limb to the highest, one after the other; returns the carry of the highest.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn rippled(mut limbs: Limbs) -> (Limbs, __m512i) {
    let (mask, mut over) = (_mm512_set1_epi64(LIMB), _mm512_setzero_si512());
    for limb in &mut limbs {
        let sum = _mm512_add_epi64(*limb, over);
        over = _mm512_srli_epi64::<51>(sum);
        *limb = _mm512_and_si512(sum, mask);
    }
    (limbs, over)
}

/// The product of two elements with tight limbs: each limb below 2^60 if `start` is zero.
///
/// With hi(i) and lo(i) the sums of the high and low 52 bits of the products of limbs whose places add up to
/// i, column i of the product has lo(i) + 2·hi(i − 1), twice because 52 is one more than 51. Columns 5 to 9
/// come back as 19 times columns 0 to 4. `start` is added to hi(4) … hi(8), so that 38·start is added to the
/// result.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn product([a0, a1, a2, a3, a4]: Limbs, [b0, b1, b2, b3, b4]: Limbs, start: Limbs) -> Limbs {
    let [s0, s1, s2, s3, s4] = start;
    let h4 = hi(hi(hi(hi(hi(s0, a0, b4), a1, b3), a2, b2), a3, b1), a4, b0);
    let h5 = hi(hi(hi(hi(s1, a1, b4), a2, b3), a3, b2), a4, b1);
    let h6 = hi(hi(hi(s2, a2, b4), a3, b3), a4, b2);
    let h7 = hi(hi(s3, a3, b4), a4, b3);
    let h8 = hi(s4, a4, b4);
    let c5 = lo(lo(lo(lo(double(h4), a1, b4), a2, b3), a3, b2), a4, b1);
    let c6 = lo(lo(lo(double(h5), a2, b4), a3, b3), a4, b2);
    let c7 = lo(lo(double(h6), a3, b4), a4, b3);
    let c8 = lo(double(h7), a4, b4);
    let c9 = double(h8);
    // 19·c + 2·hi + lo is 2·(9·c + hi) + c + lo.
    let d1 = hi(nine(c6), a0, b0);
    let d2 = hi(hi(nine(c7), a0, b1), a1, b0);
    let d3 = hi(hi(hi(nine(c8), a0, b2), a1, b1), a2, b0);
    let d4 = hi(hi(hi(hi(nine(c9), a0, b3), a1, b2), a2, b1), a3, b0);
    [
        lo(twice_plus(nine(c5), c5), a0, b0),
        lo(lo(twice_plus(d1, c6), a0, b1), a1, b0),
        lo(lo(lo(twice_plus(d2, c7), a0, b2), a1, b1), a2, b0),
        lo(lo(lo(lo(twice_plus(d3, c8), a0, b3), a1, b2), a2, b1), a3, b0),
        lo(lo(lo(lo(lo(twice_plus(d4, c9), a0, b4), a1, b3), a2, b2), a3, b1), a4, b0),
    ]
}

/// The square of an element with tight limbs, as [`product`] makes it, but products of two different limbs
/// are made once and doubled. `start` is added to their sums in hi(4) … hi(7) and to hi(8), so that it enters
/// the result 76 times, at the highest limb 38 times.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn square([a0, a1, a2, a3, a4]: Limbs, start: Limbs) -> Limbs {
    let (zero, [s0, s1, s2, s3, s4]) = (_mm512_setzero_si512(), start);
    // A column is 2·(2·mixed hi + hi of a square + mixed lo) + lo of a square.
    let h4 = hi(double(hi(hi(s0, a0, a4), a1, a3)), a2, a2);
    let h5 = double(hi(hi(s1, a1, a4), a2, a3));
    let h6 = hi(double(hi(s2, a2, a4)), a3, a3);
    let h7 = double(hi(s3, a3, a4));
    let h8 = hi(s4, a4, a4);
    let c5 = double(lo(lo(h4, a1, a4), a2, a3));
    let c6 = lo(double(lo(h5, a2, a4)), a3, a3);
    let c7 = double(lo(h6, a3, a4));
    let c8 = lo(double(h7), a4, a4);
    let c9 = double(h8);
    let d1 = lo(hi(nine(c6), a0, a0), a0, a1);
    let d2 = lo(_mm512_add_epi64(double(hi(zero, a0, a1)), nine(c7)), a0, a2);
    let d3 = hi(_mm512_add_epi64(double(hi(zero, a0, a2)), nine(c8)), a1, a1);
    let d4 = _mm512_add_epi64(double(hi(hi(zero, a0, a3), a1, a2)), nine(c9));
    [
        lo(twice_plus(nine(c5), c5), a0, a0),
        twice_plus(d1, c6),
        lo(twice_plus(d2, c7), a1, a1),
        twice_plus(lo(lo(d3, a0, a3), a1, a2), c8),
        lo(twice_plus(lo(lo(d4, a0, a4), a1, a3), c9), a2, a2),
    ]
}

/// The limbs of p, each times `factor`.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn multiple_of_p(factor: i64) -> Limbs {
    let (lowest, other) = (_mm512_set1_epi64(factor * P0), _mm512_set1_epi64(factor * LIMB));
    [lowest, other, other, other, other]
}

/// a + b, limb by limb.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn plus([a0, a1, a2, a3, a4]: Limbs, [b0, b1, b2, b3, b4]: Limbs) -> Limbs {
    [
        _mm512_add_epi64(a0, b0),
        _mm512_add_epi64(a1, b1),
        _mm512_add_epi64(a2, b2),
        _mm512_add_epi64(a3, b3),
        _mm512_add_epi64(a4, b4),
    ]
}

/// a − b, limb by limb.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn minus([a0, a1, a2, a3, a4]: Limbs, [b0, b1, b2, b3, b4]: Limbs) -> Limbs {
    [
        _mm512_sub_epi64(a0, b0),
        _mm512_sub_epi64(a1, b1),
        _mm512_sub_epi64(a2, b2),
        _mm512_sub_epi64(a3, b3),
        _mm512_sub_epi64(a4, b4),
    ]
}

/// 2·a.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn double(a: __m512i) -> __m512i {
    _mm512_add_epi64(a, a)
}

/// 2·a + b.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn twice_plus(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi64(double(a), b)
}

/// 9·a, for a below 2^60.
///
/// Eight times is a rotation, which is a shift where the highest bits are clear. The optimiser would gather
/// shifts and additions into a multiplication, for which there is no fast instruction; it cannot know that
/// this is one.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn nine(a: __m512i) -> __m512i {
    _mm512_add_epi64(a, _mm512_rol_epi64::<3>(a))
}
