//! Eight elements of the field modulo p, the base field of BLS12-381, at once: one in each 64-bit lane of
//! eight vectors.
//!
//! A number is l0 + l1·2^52 + … + l7·2^364; it stands for the element that it is 2^416 times of (Montgomery's
//! form). p has 381 bits, so that multiples of p up to 2^35 fit, and nothing has to be reduced but what
//! leaves.
//!
//! The multiplier of AVX-512 IFMA reads the low 52 bits of its operands and *silently drops the rest*. So
//! what may be multiplied has a type of its own, and nothing else turns into it but by a carry through all
//! limbs:
//!
//! | type | each limb | number | comes from | may be |
//! |---|---|---|---|---|
//! | [`TightElement`] | from 0, < 2^52 | from 0, < 2^11·p | carries, words | multiplied |
//! | [`Addends`] | from 0, < 2^63 | from 0, < 2^10·p | [`dot`], sums | added, subtracted, carried |
//! | [`ElementDifference`] | absolutely < 2^63 | absolutely < 2^10·p | differences | carried |
//!
//! A [`Addends`] stays in its bounds because sums are short: counting a [`TightElement`] as 1 and a [`dot`] of n
//! products as 15n + 16, terms, each times its factor, add up to at most 2^11 (limbs of 2^52 each), and
//! numbers, each [`dot`] below 2p, to less than 2^10·p. REVIEW.md has the sums of this module.
//!
//! Nothing here branches on, or addresses memory by, the value of an element.

use core::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_cmplt_epi64_mask, _mm512_mask_blend_epi64,
    _mm512_or_si512, _mm512_permutex2var_epi64, _mm512_rol_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_slli_epi64, _mm512_srai_epi64, _mm512_srli_epi64, _mm512_sub_epi64, _mm512_test_epi64_mask,
};

use crate::bls12_381::BaseFieldElement;
use crate::words::{LANES, Mask, Words, hi, lo, load, store};

/// Limbs of a number.
const LIMBS: usize = 8;
/// All bits of a limb.
const LIMB: i64 = (1 << 52) - 1;

/// Limbs of a constant, the lowest first.
pub(crate) type Constant = [i64; LIMBS];

/// p
const P: Constant = [
    0xe_ffff_ffff_aaab,
    0xf_eb15_3fff_fb9f,
    0x6_b0f6_241e_abff,
    0x1_2bf6_730d_2a0f,
    0x7_6477_4b84_f385,
    0x1_ba7b_6434_bacd,
    0x1_ea39_7fe6_9a4b,
    0x0_0000_0001_a011,
];
/// 2^10·p
const RAISE: Constant = [
    0xf_ffff_feaa_ac00,
    0xc_54ff_ffee_7fbf,
    0x3_d890_7aaf_fffa,
    0xf_d9cc_34a8_3dac,
    0x1_dd2e_13ce_144a,
    0x9_ed90_d2eb_35d9,
    0x8_e5ff_9a69_2c6e,
    0x0_0000_0680_447a,
];
/// −1/p modulo 2^52
const MINUS_INVERSE: i64 = 0x3_fffc_fffc_fffd;
/// 2^416 modulo p: one.
const ONE: Constant = [
    0x6_480e_a8e9_b9af,
    0x6_5766_c8fe_444f,
    0x8_b540_fea9_6f7d,
    0x3_b2ee_82ef_d422,
    0xa_6723_e5f0_ade5,
    0xf_f6eb_6fdd_4230,
    0xe_06ef_23c2_4a25,
    0x0_0000_0001_4c8e,
];
/// 2^448 modulo p: multiplies the form with 2^384, the standard one, into that with 2^416.
const ENTER: Constant = [
    0x7_fde3_7dba_9366,
    0x4_e275_25bc_342b,
    0x1_f5b1_e977_8489,
    0xb_872b_2b91_b9dc,
    0xb_206f_497d_fcaf,
    0x4_137c_c89a_9b0b,
    0xd_9d20_d7e3_9959,
    0x0_0000_0000_411c,
];
/// 2^384 modulo p: times this, the form with 2^416 becomes that with 2^384.
const LEAVE: Constant = [
    0x9_0000_0002_fffd,
    0x0_bc40_c000_2760,
    0x3_c758_baeb_f400,
    0x5_7455_f489_8575,
    0xd_77ce_5853_7052,
    0x0_71a9_7a25_6ec6,
    0xe_c3fa_80e4_935c,
    0x0_0000_0001_5f65,
];
/// Eight limbs, the lowest first.
type FieldLimbs = [__m512i; LIMBS];

/// Elements that may be multiplied.
#[derive(Clone, Copy)]
pub(crate) struct TightElement(FieldLimbs);

/// Elements that may be added.
#[derive(Clone, Copy)]
pub(crate) struct Addends(FieldLimbs);

/// Elements that may be stood for by negative numbers.
#[derive(Clone, Copy)]
pub(crate) struct ElementDifference(FieldLimbs);

/// Repeats code for each index of a limb, unrolled, so that limbs stay in registers.
macro_rules! each_limb {
    ($index:ident => $body:expr) => {
        [
            {
                const $index: usize = 0;
                $body
            },
            {
                const $index: usize = 1;
                $body
            },
            {
                const $index: usize = 2;
                $body
            },
            {
                const $index: usize = 3;
                $body
            },
            {
                const $index: usize = 4;
                $body
            },
            {
                const $index: usize = 5;
                $body
            },
            {
                const $index: usize = 6;
                $body
            },
            {
                const $index: usize = 7;
                $body
            },
        ]
    };
}

/// Σ a·b over the pairs, at most 12, with one reduction: below 2p, because each product is below 2^22·p² and
/// the sum of 12 so below 2^35·p² < 2^416·p.
///
/// Not inlined: a formula with all its products in place would be more code than the processor keeps decoded.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(crate) fn dot<const N: usize>(pairs: [[&TightElement; 2]; N]) -> Addends {
    const { assert!(N <= 12, "limbs of more products do not fit") }
    let mut columns = [_mm512_setzero_si512(); 2 * LIMBS];
    for [TightElement(a), TightElement(b)] in pairs {
        each_limb!(I => {
            each_limb!(J => columns[I + J] = lo(columns[I + J], a[I], b[J]));
            each_limb!(J => columns[I + J + 1] = hi(columns[I + J + 1], a[I], b[J]));
        });
    }
    // The columns, divided by 2^416: Montgomery's reduction. Each step adds the multiple of p that makes the
    // lowest column a multiple of 2^52.
    let (zero, inverse) = (_mm512_setzero_si512(), _mm512_set1_epi64(MINUS_INVERSE));
    let p = broadcast(&P);
    each_limb!(I => {
        let factor = lo(zero, columns[I], inverse);
        each_limb!(J => columns[I + J] = lo(columns[I + J], factor, p[J]));
        columns[I + 1] = _mm512_add_epi64(columns[I + 1], _mm512_srli_epi64::<52>(columns[I]));
        each_limb!(J => columns[I + J + 1] = hi(columns[I + J + 1], factor, p[J]));
    });
    Addends(each_limb!(I => columns[I + LIMBS]))
}

impl TightElement {
    /// 0
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn zero() -> Self {
        Self([_mm512_setzero_si512(); LIMBS])
    }

    /// 1
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn one() -> Self {
        Self::constant(&ONE)
    }

    /// The same number in all lanes, in this module's form.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn constant(limbs: &Constant) -> Self {
        Self(broadcast(limbs))
    }

    /// The elements, one for each lane, which are below p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn enter(elements: &[BaseFieldElement; LANES]) -> Self {
        let [w0, w1, w2, w3, w4, w5]: [Words; 6] = transposed(elements);
        let [w0, w1, w2, w3, w4, w5] = [load(&w0), load(&w1), load(&w2), load(&w3), load(&w4), load(&w5)];
        let mask = _mm512_set1_epi64(LIMB);
        let limbs = [
            w0,
            _mm512_or_si512(_mm512_srli_epi64::<52>(w0), _mm512_slli_epi64::<12>(w1)),
            _mm512_or_si512(_mm512_srli_epi64::<40>(w1), _mm512_slli_epi64::<24>(w2)),
            _mm512_or_si512(_mm512_srli_epi64::<28>(w2), _mm512_slli_epi64::<36>(w3)),
            _mm512_or_si512(_mm512_srli_epi64::<16>(w3), _mm512_slli_epi64::<48>(w4)),
            _mm512_srli_epi64::<4>(w4),
            _mm512_or_si512(_mm512_srli_epi64::<56>(w4), _mm512_slli_epi64::<8>(w5)),
            _mm512_srli_epi64::<44>(w5),
        ];
        let limbs = Self(each_limb!(I => _mm512_and_si512(limbs[I], mask)));
        dot([[&limbs, &Self::constant(&ENTER)]]).carry()
    }

    /// The elements, below p, one for each lane.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn leave(&self) -> [BaseFieldElement; LANES] {
        let [l0, l1, l2, l3, l4, l5, l6, l7] = dot([[self, &Self::constant(&LEAVE)]]).least();
        transposed(&[
            store(_mm512_or_si512(l0, _mm512_slli_epi64::<52>(l1))),
            store(_mm512_or_si512(_mm512_srli_epi64::<12>(l1), _mm512_slli_epi64::<40>(l2))),
            store(_mm512_or_si512(_mm512_srli_epi64::<24>(l2), _mm512_slli_epi64::<28>(l3))),
            store(_mm512_or_si512(_mm512_srli_epi64::<36>(l3), _mm512_slli_epi64::<16>(l4))),
            store(_mm512_or_si512(
                _mm512_srli_epi64::<48>(l4),
                _mm512_or_si512(_mm512_slli_epi64::<4>(l5), _mm512_slli_epi64::<56>(l6)),
            )),
            store(_mm512_or_si512(_mm512_srli_epi64::<8>(l6), _mm512_slli_epi64::<44>(l7))),
        ])
    }

    /// The lanes that hold 0 modulo p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn is_zero(&self) -> Mask {
        let limbs = dot([[self, &Self::one()]]).least();
        let any = limbs.iter().fold(_mm512_setzero_si512(), |any, limb| _mm512_or_si512(any, *limb));
        !_mm512_test_epi64_mask(any, any)
    }

    /// `other` in the lanes of the mask, `self` in the others.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn select(&self, other: &Self, mask: Mask) -> Self {
        Self(each_limb!(I => _mm512_mask_blend_epi64(mask, self.0[I], other.0[I])))
    }

    /// Selects in each lane one of sixteen elements, those in the lanes of `self` and then of `other`, by the
    /// lowest four bits of the lane's index. Both are in registers, so that no address depends on an index.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn look_up(&self, other: &Self, indices: __m512i) -> Self {
        Self(each_limb!(I => _mm512_permutex2var_epi64(self.0[I], indices, other.0[I])))
    }

    /// The same elements, to be added.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn wide(&self) -> Addends {
        Addends(self.0)
    }

    /// −self, for a value below 2^10·p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn neg(&self) -> Self {
        Self::zero().wide().minus(&self.wide()).carry()
    }

    /// self · other.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn mul(&self, other: &Self) -> Self {
        dot([[self, other]]).carry()
    }
}

impl Addends {
    /// self + other.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self(each_limb!(I => _mm512_add_epi64(self.0[I], other.0[I])))
    }

    /// self − other.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn minus(&self, other: &Self) -> ElementDifference {
        ElementDifference(each_limb!(I => _mm512_sub_epi64(self.0[I], other.0[I])))
    }

    /// 2·self.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn doubled(&self) -> Self {
        self.plus(self)
    }

    /// 3·self.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn tripled(&self) -> Self {
        self.doubled().plus(self)
    }

    /// 2^BITS·self. A rotation is a shift where the highest bits are clear; the optimiser would gather shifts
    /// and additions into a multiplication, for which there is no fast instruction.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn shifted<const BITS: i32>(&self) -> Self {
        Self(each_limb!(I => _mm512_rol_epi64::<BITS>(self.0[I])))
    }

    /// The same elements, to be multiplied.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn carry(&self) -> TightElement {
        TightElement(rippled(self.0))
    }

    /// The limbs of the elements modulo p, of a sum below 2p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn least(&self) -> FieldLimbs {
        let (limbs, p) = (rippled(self.0), broadcast(&P));
        let less = rippled(each_limb!(I => _mm512_sub_epi64(limbs[I], p[I])));
        // The highest limb has the borrow.
        let below = _mm512_cmplt_epi64_mask(less[LIMBS - 1], _mm512_setzero_si512());
        each_limb!(I => _mm512_mask_blend_epi64(below, less[I], limbs[I]))
    }
}

impl ElementDifference {
    /// The same elements, ready to be multiplied: 2^10·p is added, and carries may be negative.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn carry(&self) -> TightElement {
        let raise = broadcast(&RAISE);
        TightElement(rippled(each_limb!(I => _mm512_add_epi64(self.0[I], raise[I]))))
    }
}

/// Carries from the lowest limb to the highest, one after the other; the highest keeps the rest, which is
/// bounded by the number's size.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn rippled(mut limbs: FieldLimbs) -> FieldLimbs {
    let (mask, mut over) = (_mm512_set1_epi64(LIMB), _mm512_setzero_si512());
    let [lower @ .., highest] = &mut limbs;
    for limb in lower {
        let sum = _mm512_add_epi64(*limb, over);
        over = _mm512_srai_epi64::<52>(sum);
        *limb = _mm512_and_si512(sum, mask);
    }
    *highest = _mm512_add_epi64(*highest, over);
    limbs
}

#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn broadcast(limbs: &Constant) -> FieldLimbs {
    each_limb!(I => _mm512_set1_epi64(limbs[I]))
}

/// Transposes numbers of 64-bit words: from numbers to words of all lanes, and back.
fn transposed<const M: usize, const N: usize>(rows: &[[u64; M]; N]) -> [[u64; N]; M] {
    let mut columns = [[0; N]; M];
    for (at, row) in rows.iter().enumerate() {
        for (column, word) in columns.iter_mut().zip(row) {
            if let Some(place) = column.get_mut(at) {
                *place = *word;
            }
        }
    }
    columns
}

#[cfg(test)]
mod tests;
