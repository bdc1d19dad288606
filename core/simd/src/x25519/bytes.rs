//! Conversion of 32-byte little-endian numbers to words of vector lanes, and back.

/// The words of up to `LANES` 32-byte little-endian numbers, least significant first; lanes without a number
/// have 0.
pub(crate) fn gather<const LANES: usize>(numbers: &[[u8; 32]]) -> [[u64; LANES]; 4] {
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

/// Writes the words into up to `LANES` 32-byte little-endian numbers.
pub(crate) fn scatter<const LANES: usize>(words: &[[u64; LANES]; 4], numbers: &mut [[u8; 32]]) {
    for (lane, number) in numbers.iter_mut().enumerate().take(LANES) {
        for (word, bytes) in words.iter().zip(number.as_chunks_mut::<8>().0) {
            if let Some(word) = word.get(lane) {
                *bytes = word.to_le_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::LANES;

    #[test]
    fn lanes_hold_the_words_of_their_numbers_and_nothing_else() {
        for count in 0..=LANES {
            let numbers: Vec<[u8; 32]> = (0..count).map(|lane| [0x10 + lane as u8; 32]).collect();
            let words = gather::<LANES>(&numbers);
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
        let words = gather::<LANES>(&[number]).map(|word| word[0]);
        assert_eq!(words, [0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110, 0x1f1e1d1c1b1a1918]);
    }
}
