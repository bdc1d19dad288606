//! Recoding of scalars as signed digits, one number per lane.

use core::arch::x86_64::_mm512_testn_epi64_mask;

use zeroize::Zeroize;

use crate::words::{LANES, Mask, Words, load};

/// Bits of a digit.
pub(crate) const WIDTH: u32 = 5;
/// Digits of a half at most: ⌈128 / 5⌉.
pub(crate) const DIGITS: usize = 26;

/// z², z the absolute value of the curve's parameter; r = z⁴ − z² + 1.
const Z_SQUARED: u128 = 0xac45_a401_0001_a402_0000_0001_0000_0000;

/// r
const ORDER: [u64; 4] =
    [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

/// 2^125: one at the highest place of digits, in the lower half of a scalar.
pub(crate) const TOP: [u64; 4] = [0, 1 << 61, 0, 0];

/// The digits at one place of numbers in all lanes, from −16 to 16.
#[derive(Clone, Copy, Default)]
pub(crate) struct Digit {
    pub(crate) magnitudes: Words,
    pub(crate) negative: Mask,
}

impl Digit {
    /// The lanes in which it is 0.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(crate) fn is_zero(&self) -> Mask {
        let magnitudes = load(&self.magnitudes);
        _mm512_testn_epi64_mask(magnitudes, magnitudes)
    }
}

/// Numbers of up to 128 bits, one in each lane, the lowest digit first. Erased when dropped, and recoded where they
/// stay: a move would leave a copy behind.
#[derive(Default)]
pub(crate) struct Digits(pub(crate) [Digit; DIGITS]);

impl Digits {
    /// Sets one lane's number.
    pub(crate) fn set(&mut self, lane: usize, number: u128) {
        let (mut rest, mut carry) = (number, 0);
        for digit in &mut self.0 {
            // From 0 to 32; above 16, it is 32 less and the next one more. The last has three bits of its own and
            // carries nothing.
            let sum = (rest as u64 & ((1 << WIDTH) - 1)) + carry;
            carry = (sum + 15) >> WIDTH;
            rest >>= WIDTH;
            let minus = 0_u64.wrapping_sub(carry);
            // |sum − 32·carry|
            let signed = sum.wrapping_sub(carry << WIDTH);
            if let Some(magnitude) = digit.magnitudes.get_mut(lane) {
                *magnitude = (signed ^ minus).wrapping_sub(minus);
            }
            digit.negative = digit.negative & !(1 << lane) | (carry as Mask) << lane;
        }
        rest.zeroize();
        carry.zeroize();
    }

    /// Sets both halves of up to eight scalars below r, one in each lane.
    pub(crate) fn set_halves(halves: &mut [Self; 2], scalars: impl Iterator<Item = [u64; 4]>) {
        for (lane, mut scalar) in scalars.enumerate().take(LANES) {
            let mut parts = split(&scalar);
            for (digits, part) in halves.iter_mut().zip(&parts) {
                digits.set(lane, *part);
            }
            parts.zeroize();
            scalar.zeroize();
        }
    }
}

impl Drop for Digits {
    fn drop(&mut self) {
        for digit in &mut self.0 {
            digit.magnitudes.zeroize();
            digit.negative.zeroize();
        }
    }
}

/// number − other modulo r, both below r; by masks.
pub(crate) fn less(number: &[u64; 4], other: &[u64; 4]) -> [u64; 4] {
    let (mut difference, mut borrow) = (*number, false);
    for (word, other) in difference.iter_mut().zip(other) {
        (*word, borrow) = word.borrowing_sub(*other, borrow);
    }
    let (mask, mut carry) = (0_u64.wrapping_sub(u64::from(borrow)), false);
    for (word, order) in difference.iter_mut().zip(ORDER) {
        (*word, carry) = word.carrying_add(order & mask, carry);
    }
    difference
}

/// The digits of a number below r to the base z²: k₀ + k₁·z², both below 2^128. Long division, bit by bit, by
/// masks.
fn split(scalar: &[u64; 4]) -> [u128; 2] {
    let [w0, w1, w2, w3] = scalar.map(u128::from);
    let (mut high, mut low) = (w3 << 64 | w2, w1 << 64 | w0);
    // k < r < 2^255 and z² > 2^127: the higher half is the remainder to begin with, if it is below z², as it
    // is.
    for _ in 0..128 {
        // The bit that is shifted out of the remainder counts, too.
        let over = high >> 127;
        high = high << 1 | low >> 127;
        low <<= 1;
        let (less, borrow) = high.overflowing_sub(Z_SQUARED);
        let fits = over | u128::from(!borrow);
        let mask = 0_u128.wrapping_sub(fits);
        high ^= mask & (high ^ less);
        low |= fits;
    }
    [high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_make_the_number_again_and_have_few_bits() {
        let numbers = [
            0,
            1,
            15,
            16,
            17,
            31,
            32,
            u128::MAX,
            1 << 127,
            u128::MAX / 33 * 17,
            0x5555 << 100,
            u128::MAX - 15,
        ];
        for numbers in numbers.chunks(LANES) {
            let mut digits = Digits::default();
            numbers.iter().enumerate().for_each(|(lane, number)| digits.set(lane, *number));
            for lane in 0..LANES {
                let sum = digits.0.iter().rev().fold(0_u128, |sum, digit| {
                    assert!(digit.magnitudes[lane] <= 16);
                    let sum = sum.wrapping_shl(WIDTH);
                    let magnitude = u128::from(digit.magnitudes[lane]);
                    if digit.negative >> lane & 1 == 1 {
                        sum.wrapping_sub(magnitude)
                    } else {
                        sum + magnitude
                    }
                });
                assert_eq!(sum, numbers.get(lane).copied().unwrap_or(0));
            }
        }
    }

    #[test]
    fn one_at_the_highest_place_is_subtracted_modulo_the_order() {
        assert_eq!(split(&TOP), [1 << (WIDTH as usize * (DIGITS - 1)), 0]);
        assert_eq!(less(&[7, 1 << 61, 0, 9], &TOP), [7, 0, 0, 9]);
        // r − 1 = z²·(z² − 1)
        assert_eq!(split(&less(&[0; 4], &[1, 0, 0, 0])), [0, Z_SQUARED - 1]);
        for number in [[0; 4], [7, 0, 0, 0], [u64::MAX, (1 << 61) - 1, 0, 0]] {
            assert_eq!(less(&number, &less(&number, &TOP)), TOP);
        }
    }

    #[test]
    fn splitting_divides_by_the_square_of_the_parameter() {
        // r − 1 = z²·(z² − 1)
        let r_minus_one =
            [0xffff_ffff_0000_0000, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];
        assert_eq!(split(&r_minus_one), [0, Z_SQUARED - 1]);
        assert_eq!(split(&[0; 4]), [0, 0]);
        assert_eq!(split(&[7, 0, 0, 0]), [7, 0]);
        let [low, high] = [Z_SQUARED as u64, (Z_SQUARED >> 64) as u64];
        assert_eq!(split(&[low, high, 0, 0]), [0, 1]);
        assert_eq!(
            split(&[low - 1, high, 0, 0].map(|word: u64| word)),
            split(&[low.wrapping_sub(1), high, 0, 0])
        );
        assert_eq!(split(&[u64::MAX, u64::MAX, 0, 0]), [u128::MAX - Z_SQUARED, 1]);
    }
}
