//! Recoding of secret scalars with odd digits, in constant time. None of the digits is zero, so that whoever
//! adds up multiples never adds the identity (M. Joye, M. Tunstall, "Exponent recoding and regular
//! exponentiation algorithms", AFRICACRYPT 2009).

use ark_ff::PrimeField as _;
use subtle::Choice;
use zeroize::Zeroize as _;

use crate::Scalar;

/// The digits of a scalar, or of its opposite, to the base 2^width, lowest first: all odd, from 1 − 2^width
/// to 2^width − 1. Made and read in constant time, and erased when dropped.
///
/// There are ⌊255 / width⌋ + 1 of them; the width is from 2 to 8.
pub(super) struct OddDigits {
    width: u32,
    /// Bit i is one where digit i to the base 2 is 1, and zero where it is −1: (k + 2^n − 1)/2 for n such
    /// digits.
    signs: [u64; 5],
    /// All ones if these are the digits of the opposite.
    opposite: u64,
}

impl OddDigits {
    /// Digits of a number to the base 2^width.
    pub(super) const fn count(width: u32) -> usize {
        255 / width as usize + 1
    }

    pub(super) fn new(scalar: &Scalar, width: u32) -> Self {
        let mut own = scalar.into_bigint().0;
        let [lowest, ..] = own;
        // The one of k and r − k that is odd.
        let opposite = (lowest & 1).wrapping_sub(1);
        let mut odd = less(&Scalar::MODULUS.0, &own, u64::MAX);
        odd.iter_mut().zip(&own).for_each(|(odd, own)| *odd ^= (*odd ^ own) & !opposite);
        let mut signs = [0; 5];
        for (at, sign) in signs.iter_mut().enumerate() {
            let word = |at: usize| odd.get(at).copied().unwrap_or(0);
            *sign = word(at) >> 1 | word(at + 1) << 63;
        }
        let highest = Self::count(width) * width as usize - 1;
        signs.iter_mut().skip(highest / 64).take(1).for_each(|word| *word |= 1 << (highest % 64));
        own.zeroize();
        odd.zeroize();
        Self { width, signs, opposite }
    }

    /// Digit in a place: p for ±(2p + 1), and a choice that is true if it is negative.
    pub(super) fn digit(&self, place: usize) -> (u64, Choice) {
        let from = place * self.width as usize;
        let word = |at: usize| self.signs.get(at).copied().unwrap_or(0);
        let both = u128::from(word(from / 64)) | u128::from(word(from / 64 + 1)) << 64;
        let signs = (both >> (from % 64)) as u64;
        // The highest is the sign of all.
        let positive = signs >> (self.width - 1) & 1;
        let place = (signs ^ positive.wrapping_sub(1)) & ((1 << (self.width - 1)) - 1);
        (place, Choice::from((positive ^ 1 ^ (self.opposite & 1)) as u8))
    }
}

impl Drop for OddDigits {
    fn drop(&mut self) {
        self.signs.zeroize();
        self.opposite.zeroize();
    }
}

/// number − (other & mask) modulo 2^64N.
fn less<const N: usize>(number: &[u64; N], other: &[u64; N], mask: u64) -> [u64; N] {
    let mut borrow = false;
    core::array::from_fn(|at| {
        let (word, other) = (number.get(at).copied().unwrap_or(0), other.get(at).copied().unwrap_or(0));
        let (once, first) = word.overflowing_sub(other & mask);
        let (twice, second) = once.overflowing_sub(u64::from(borrow));
        borrow = first | second;
        twice
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn from_odd_digits(scalar: &Scalar, width: u32) -> Scalar {
        let (digits, base) = (OddDigits::new(scalar, width), Scalar::from(1_u64 << width));
        (0..OddDigits::count(width)).rev().fold(Scalar::from(0_u64), |sum, place| {
            let (place, negative) = digits.digit(place);
            assert!(place < 1 << (width - 1));
            let digit = Scalar::from(2 * place + 1);
            sum * base + if bool::from(negative) { -digit } else { digit }
        })
    }

    #[test]
    fn odd_digits_of_extreme_scalars_stand_for_them() {
        for width in 2..=8 {
            for small in (0..70).map(Scalar::from) {
                assert_eq!(from_odd_digits(&small, width), small);
                assert_eq!(from_odd_digits(&-small, width), -small);
            }
        }
    }

    proptest! {
        #[test]
        fn odd_digits_stand_for_the_scalar(limbs in any::<[u64; 4]>()) {
            let scalar = Scalar::new(ark_ff::BigInt(limbs));
            for width in 2..=8 {
                prop_assert_eq!(from_odd_digits(&scalar, width), scalar);
            }
        }
    }
}
