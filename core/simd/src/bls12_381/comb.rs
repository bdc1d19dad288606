//! Comb multiplication of one point by eight scalars at once: additions only.
//!
//! For each digit of a number there is a row of 1 to 16 times 32^place times the point. All of a row is
//! loaded, whatever the digits; a permutation of registers gives each lane its own.

use alloc::vec::Vec;
use core::arch::x86_64::{_mm512_set1_epi64, _mm512_sub_epi64, _mm512_testn_epi64_mask};

use crate::bls12_381::BaseFieldElement;
use crate::bls12_381::curve::LanePoint;
use crate::bls12_381::field::TightElement;
use crate::bls12_381::scalar::{Digit, Digits};
use crate::words::{LANES, load};

/// Entries of a row.
pub const ENTRIES: usize = 2 * LANES;

/// x of the first eight entries of a row and of the others, and y of both.
struct Row([[TightElement; 2]; 2]);

/// The rows of a point: 2,048 bytes each.
pub struct Comb(Vec<Row>);

impl Comb {
    /// Makes a comb from affine coordinates of all entries, none of which may be the identity.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn new(rows: &[[[BaseFieldElement; 2]; ENTRIES]]) -> Self {
        let row = |row: &[[BaseFieldElement; 2]; ENTRIES]| {
            let half = |coordinate: usize, half: usize| {
                let mut elements = [[0; 6]; LANES];
                for (element, entry) in elements.iter_mut().zip(row.iter().skip(half * LANES)) {
                    *element = entry.get(coordinate).copied().unwrap_or_default();
                }
                TightElement::enter(&elements)
            };
            Row([[half(0, 0), half(0, 1)], [half(1, 0), half(1, 1)]])
        };
        Self(rows.iter().map(row).collect())
    }

    /// The numbers times the point: as many of their digits as there are rows.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn multiply(&self, numbers: &Digits) -> LanePoint {
        let mut sum = LanePoint::identity();
        for (row, digit) in self.0.iter().zip(&numbers.0) {
            let next = sum.add_affine(&row.choose(digit));
            let magnitudes = load(&digit.magnitudes);
            sum = next.select(&sum, _mm512_testn_epi64_mask(magnitudes, magnitudes));
        }
        sum
    }
}

impl Row {
    /// The digit's entry, of each lane its own; any for 0.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn choose(&self, digit: &Digit) -> [TightElement; 2] {
        let indices = _mm512_sub_epi64(load(&digit.magnitudes), _mm512_set1_epi64(1));
        let Self([[x, other_x], [y, other_y]]) = self;
        let y = y.look_up(other_y, indices);
        [x.look_up(other_x, indices), y.select(&y.neg(), digit.negative)]
    }
}
