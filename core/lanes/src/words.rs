//! From numbers of 64-bit words to lanes and back.

use core::arch::x86_64::{
    __m256i, __m512i, _mm256_extract_epi64, _mm512_extracti64x4_epi64, _mm512_set_epi64,
};

/// Numbers that are worked on at once.
pub const LANES: usize = 8;

/// One bit per lane, the lowest for the first.
pub(crate) type Mask = u8;

/// One 64-bit word of each lane.
pub(crate) type Words = [u64; LANES];

/// Puts what comes first in the first lane of each vector and so on; the other way round, too.
pub(crate) fn transposed<const M: usize, const N: usize>(rows: &[[u64; M]; N]) -> [[u64; N]; M] {
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

/// The words as a vector.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn load(&[w0, w1, w2, w3, w4, w5, w6, w7]: &Words) -> __m512i {
    let [w0, w1, w2, w3, w4, w5, w6, w7] = [w0, w1, w2, w3, w4, w5, w6, w7].map(u64::cast_signed);
    _mm512_set_epi64(w7, w6, w5, w4, w3, w2, w1, w0)
}

/// The vector as words.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn store(vector: __m512i) -> Words {
    let [w0, w1, w2, w3] = quarters(_mm512_extracti64x4_epi64::<0>(vector));
    let [w4, w5, w6, w7] = quarters(_mm512_extracti64x4_epi64::<1>(vector));
    [w0, w1, w2, w3, w4, w5, w6, w7].map(i64::cast_unsigned)
}

#[target_feature(enable = "avx2")]
#[inline]
fn quarters(half: __m256i) -> [i64; 4] {
    [
        _mm256_extract_epi64::<0>(half),
        _mm256_extract_epi64::<1>(half),
        _mm256_extract_epi64::<2>(half),
        _mm256_extract_epi64::<3>(half),
    ]
}
