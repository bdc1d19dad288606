//! A block in a register, between hashes: exclusive or, and masks of one bit.

use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_setzero_si128, _mm_shuffle_epi32,
    _mm_slli_epi32, _mm_srai_epi32, _mm_unpackhi_epi64, _mm_xor_si128,
};
use core::ops::{BitAnd, BitXor};

use zeroize::Zeroize;

use super::Words;

/// 128 bits, by SSE2, which the build allows everywhere. Of a `u128` the compiler makes two registers, and two
/// instructions of each of its operations.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Block(__m128i);

impl Block {
    /// All ones if the lowest bit is 1, else zero, without a branch.
    #[inline]
    #[must_use]
    pub fn lowest(self) -> Self {
        #[target_feature(enable = "sse2")]
        #[inline]
        fn lowest(vector: __m128i) -> __m128i {
            // The lowest 32 bits four times, and of each the lowest bit 32 times.
            _mm_srai_epi32::<31>(_mm_slli_epi32::<31>(_mm_shuffle_epi32::<0>(vector)))
        }
        Self(run(lowest, self.0))
    }
}

impl Default for Block {
    #[inline]
    fn default() -> Self {
        #[target_feature(enable = "sse2")]
        #[inline]
        fn zero((): ()) -> __m128i {
            _mm_setzero_si128()
        }
        Self(run(zero, ()))
    }
}

impl BitXor for Block {
    type Output = Self;

    #[inline]
    fn bitxor(self, other: Self) -> Self {
        #[target_feature(enable = "sse2")]
        #[inline]
        fn xor((a, b): (__m128i, __m128i)) -> __m128i {
            _mm_xor_si128(a, b)
        }
        Self(run(xor, (self.0, other.0)))
    }
}

impl BitAnd for Block {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        #[target_feature(enable = "sse2")]
        #[inline]
        fn and((a, b): (__m128i, __m128i)) -> __m128i {
            _mm_and_si128(a, b)
        }
        Self(run(and, (self.0, other.0)))
    }
}

impl Words for Block {
    #[inline]
    fn words(self) -> [u64; 2] {
        #[target_feature(enable = "sse2")]
        #[inline]
        fn words(vector: __m128i) -> [u64; 2] {
            [vector, _mm_unpackhi_epi64(vector, vector)].map(|word| _mm_cvtsi128_si64(word).cast_unsigned())
        }
        run(words, self.0)
    }

    #[inline]
    fn from_words(words: [u64; 2]) -> Self {
        #[target_feature(enable = "sse2")]
        #[inline]
        fn from_words(words: [u64; 2]) -> __m128i {
            let [low, high] = words.map(u64::cast_signed);
            _mm_set_epi64x(high, low)
        }
        Self(run(from_words, words))
    }
}

impl From<u128> for Block {
    #[inline]
    fn from(bits: u128) -> Self {
        Self::from_words(bits.words())
    }
}

impl From<Block> for u128 {
    #[inline]
    fn from(block: Block) -> Self {
        Self::from_words(block.words())
    }
}

impl Zeroize for Block {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Runs code compiled for SSE2.
#[expect(unsafe_code, reason = "the step from ordinary code into code for vectors")]
#[inline(always)]
fn run<I, O>(body: unsafe fn(I) -> O, input: I) -> O {
    // SAFETY: all bodies, which this file alone gives, are safe functions but for the instructions they were
    // compiled to, those of SSE2. The whole build is compiled for SSE2, else this file would not be part of it.
    unsafe { body(input) }
}
