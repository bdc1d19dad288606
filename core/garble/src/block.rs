//! A label while it is computed with: 128 bits.

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

#[cfg(test)]
mod tests {
    use super::Block;

    #[test]
    fn blocks_compute_as_numbers_do() {
        let numbers = [0, 1, !0, !1, 1 << 64, 0x0123_4567_89ab_cdef_0011_2233_4455_6677];
        for a in numbers {
            let block = Block::from(a);
            assert_eq!(u128::from(block), a);
            assert_eq!(u128::from(block.lowest()), if a & 1 == 1 { !0 } else { 0 });
            for b in numbers {
                assert_eq!(u128::from(block ^ b.into()), a ^ b);
                assert_eq!(u128::from(block & b.into()), a & b);
            }
        }
        assert_eq!(u128::from(Block::default()), 0);
    }
}
