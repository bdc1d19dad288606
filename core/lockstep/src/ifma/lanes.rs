//! From 32-byte numbers to lanes and back.

use core::arch::x86_64::{
    __m256i, __m512i, _mm256_extract_epi64, _mm512_extracti64x4_epi64, _mm512_set_epi64,
};

/// Numbers that are worked on at once.
pub(super) const LANES: usize = 8;

/// One bit per lane.
pub(super) type Mask = u8;

/// One 64-bit word of each lane.
pub(super) type Words = [u64; LANES];

/// The words of up to eight 32-byte little-endian numbers, least significant first; lanes without a number have 0.
pub(super) fn gather(numbers: &[[u8; 32]]) -> [Words; 4] {
    let mut words = [[0; LANES]; 4];
    for (lane, number) in numbers.iter().enumerate().take(LANES) {
        for (word, bytes) in words.iter_mut().zip(number.as_chunks::<8>().0) {
            if let Some(word) = word.get_mut(lane) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
    }
    words
}

/// Writes the words into up to eight 32-byte little-endian numbers.
pub(super) fn scatter(words: &[Words; 4], numbers: &mut [[u8; 32]]) {
    for (lane, number) in numbers.iter_mut().enumerate().take(LANES) {
        for (word, bytes) in words.iter().zip(number.as_chunks_mut::<8>().0) {
            if let Some(word) = word.get(lane) {
                *bytes = word.to_le_bytes();
            }
        }
    }
}

/// The words as a vector.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn load(&[w0, w1, w2, w3, w4, w5, w6, w7]: &Words) -> __m512i {
    let [w0, w1, w2, w3, w4, w5, w6, w7] = [w0, w1, w2, w3, w4, w5, w6, w7].map(u64::cast_signed);
    _mm512_set_epi64(w7, w6, w5, w4, w3, w2, w1, w0)
}

/// The vector as words.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn store(vector: __m512i) -> Words {
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
    fn lanes_hold_the_words_of_their_numbers_and_nothing_else() {
        for count in 0..=LANES {
            let numbers: Vec<[u8; 32]> = (0..count).map(|lane| [0x10 + lane as u8; 32]).collect();
            let words = gather(&numbers);
            for lane in 0..LANES {
                let expected = if lane < count { u64::from_le_bytes([0x10 + lane as u8; 8]) } else { 0 };
                assert!(words.iter().all(|word| word[lane] == expected));
            }
            let mut back = vec![[0; 32]; count];
            scatter(&words, &mut back);
            assert_eq!(back, numbers);
        }
    }

    #[test]
    fn the_order_of_bytes_and_words_is_little_endian() {
        let number = core::array::from_fn(|place| place as u8);
        let words = gather(&[number]).map(|word| word[0]);
        assert_eq!(words, [0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110, 0x1f1e1d1c1b1a1918]);
    }

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
