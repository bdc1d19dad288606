//! A label while it is computed with: 128 bits, in one register where the processor has such.

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) use portable::Block;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) use quiver_simd::aes::Block;

/// What every processor has.
#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
mod portable {
    use core::ops::{BitAnd, BitXor};

    use zeroize::Zeroize;

    /// 128 bits.
    #[derive(Clone, Copy, Default, Zeroize)]
    pub struct Block(u128);

    impl Block {
        /// All ones if the lowest bit is 1, else zero, without a branch.
        #[must_use]
        pub fn lowest(self) -> Self {
            Self(0_u128.wrapping_sub(self.0 & 1))
        }
    }

    impl From<u128> for Block {
        fn from(bits: u128) -> Self {
            Self(bits)
        }
    }

    impl From<Block> for u128 {
        fn from(Block(bits): Block) -> Self {
            bits
        }
    }

    impl BitXor for Block {
        type Output = Self;

        fn bitxor(self, other: Self) -> Self {
            Self(self.0 ^ other.0)
        }
    }

    impl BitAnd for Block {
        type Output = Self;

        fn bitand(self, other: Self) -> Self {
            Self(self.0 & other.0)
        }
    }

    #[cfg(all(target_arch = "x86_64", not(target_feature = "sse2")))]
    impl quiver_simd::aes::Words for Block {
        fn words(self) -> [u64; 2] {
            self.0.words()
        }

        fn from_words(words: [u64; 2]) -> Self {
            Self(u128::from_words(words))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, portable};

    #[test]
    fn both_blocks_compute_the_same() {
        let numbers = [0, 1, !0, !1, 1 << 64, 0x0123_4567_89ab_cdef_0011_2233_4455_6677];
        for a in numbers {
            let (here, there) = (Block::from(a), portable::Block::from(a));
            assert_eq!(u128::from(here), a);
            assert_eq!(u128::from(there), a);
            let lowest = if a & 1 == 1 { !0 } else { 0 };
            assert_eq!([u128::from(here.lowest()), u128::from(there.lowest())], [lowest; 2]);
            for b in numbers {
                let (of_b, there_of_b) = (Block::from(b), portable::Block::from(b));
                assert_eq!([u128::from(here ^ of_b), u128::from(there ^ there_of_b)], [a ^ b; 2]);
                assert_eq!([u128::from(here & of_b), u128::from(there & there_of_b)], [a & b; 2]);
            }
        }
        assert_eq!([u128::from(Block::default()), u128::from(portable::Block::default())], [0; 2]);
    }
}
