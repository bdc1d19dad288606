//! Vectors of eight 64-bit words: loading, storing, and the multiply-add of 52 bits.

use core::arch::x86_64::{
    __m256i, __m512i, _mm256_extract_epi64, _mm512_extracti64x4_epi64, _mm512_madd52hi_epu64,
    _mm512_madd52lo_epu64, _mm512_set_epi64,
};

/// Numbers that are worked on at once.
pub(crate) const LANES: usize = 8;

/// A bit per lane, the lowest for the first.
pub(crate) type Mask = u8;

/// A 64-bit word of each lane.
pub(crate) type Words = [u64; LANES];

/// sum + the high 52 bits of the product of the operands' low 52 bits.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn hi(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_madd52hi_epu64(sum, a, b)
}

/// sum + the low 52 bits of the product of the operands' low 52 bits.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn lo(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_madd52lo_epu64(sum, a, b)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifma::on_vectors;

    #[test]
    fn a_vector_gives_back_the_words_it_was_loaded_with() {
        #[target_feature(enable = "avx512f")]
        fn body(words: Words) -> Words {
            store(load(&words))
        }
        let words = [1, 2, 3, 4, 5, 6, u64::MAX, 1 << 63];
        assert!(on_vectors(body, words).is_none_or(|found| found == words));
    }
}
