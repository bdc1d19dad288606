//! What holds a block: two words.

use zeroize::Zeroize;

/// 128 bits that can be hashed.
pub trait Words: Copy + Zeroize {
    /// The lower word, and the higher.
    fn words(self) -> [u64; 2];
    /// Those of a lower word and a higher one.
    fn from_words(words: [u64; 2]) -> Self;
}

impl Words for u128 {
    #[inline]
    fn words(self) -> [u64; 2] {
        [self as u64, (self >> 64) as u64]
    }

    #[inline]
    fn from_words([low, high]: [u64; 2]) -> Self {
        Self::from(high) << 64 | Self::from(low)
    }
}
