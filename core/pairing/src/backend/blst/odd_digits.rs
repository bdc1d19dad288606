//! Recoding of secret scalars with odd digits, in constant time. None of the digits is zero, so that whoever
//! adds up multiples never adds the identity (M. Joye, M. Tunstall, "Exponent recoding and regular
//! exponentiation algorithms", AFRICACRYPT 2009).

use ark_ff::PrimeField as _;
use subtle::Choice;
use zeroize::Zeroize as _;

use crate::Scalar;
use crate::recoding::Z;

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

    /// For the digit in a place: p for ±(2p + 1), and whether it is negative.
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

/// Teeth of a comb for halves of scalars.
pub(super) const TEETH: usize = 5;

/// Columns of a comb for halves of scalars: 5 · 26 is 130 digits.
pub(super) const COLUMNS: usize = 26;

/// A scalar as k₀ + k₁·z² with odd k₀ and k₁, absolutely below 2^128, each with 130 digits 1 and −1. Made and
/// read in constant time, and erased when dropped.
pub(super) struct OddHalves {
    /// Bit i is one where digit i is 1: (k + 2^130 − 1)/2.
    signs: [[u64; 3]; 2],
}

impl OddHalves {
    pub(super) fn new(scalar: &Scalar) -> Self {
        const Z_SQUARED: u128 = Z as u128 * Z as u128;
        let wide = |number: u128| [number as u64, (number >> 64) as u64, 0];
        let mut parts = divide_by_square(scalar);
        let [mut k0, mut k1] = parts.map(wide);
        parts.zeroize();
        // 1 + (z² − 1)·z² = r, so that taking off both multiples changes nothing; z² is even.
        let even = even(&k0);
        k0 = less(&k0, &[1, 0, 0], even);
        k1 = less(&k1, &wide(Z_SQUARED - 1), even);
        // Nor does taking z² off k₀ and adding 1 to k₁.
        let even = self::even(&k1);
        k0 = less(&k0, &wide(Z_SQUARED), even);
        k1 = less(&k1, &[u64::MAX; 3], even);
        // (k − 1)/2 + 2^129, of two's complement.
        let signs = [&k0, &k1].map(|[low, middle, high]| {
            let highest = ((*high as i64) >> 1) as u64;
            [low >> 1 | middle << 63, middle >> 1 | high << 63, highest.wrapping_add(2)]
        });
        k0.zeroize();
        k1.zeroize();
        Self { signs }
    }

    /// The digits of a column of either half: the place of an entry, whose bit t is one if digit t of the
    /// column is that of the highest tooth, and whether the highest is −1.
    pub(super) fn digits(&self, column: usize) -> [(u64, Choice); 2] {
        self.signs.each_ref().map(|signs| {
            let sign = |tooth: usize| {
                let at = column + COLUMNS * tooth;
                signs.get(at / 64).map_or(0, |word| word >> (at % 64) & 1)
            };
            let highest = sign(TEETH - 1);
            let place = (0..TEETH - 1).fold(0, |place, tooth| place | (sign(tooth) ^ highest ^ 1) << tooth);
            (place, Choice::from(highest as u8 ^ 1))
        })
    }
}

impl Drop for OddHalves {
    fn drop(&mut self) {
        self.signs.zeroize();
    }
}

/// The digits of a scalar to the base z², in constant time: long division, bit by bit.
fn divide_by_square(scalar: &Scalar) -> [u128; 2] {
    const Z_SQUARED: u128 = Z as u128 * Z as u128;
    let [w0, w1, w2, w3] = scalar.into_bigint().0.map(u128::from);
    // The higher half is below z², since r < z⁴: it is the remainder to begin with.
    let (mut remainder, mut quotient) = (w3 << 64 | w2, w1 << 64 | w0);
    for _ in 0..u128::BITS {
        let carry = remainder >> 127;
        remainder = remainder << 1 | quotient >> 127;
        let (rest, borrow) = remainder.overflowing_sub(Z_SQUARED);
        // It fits in if there is a bit above, too.
        let bit = carry | u128::from(!borrow);
        remainder ^= (remainder ^ rest) & 0_u128.wrapping_sub(bit);
        quotient = quotient << 1 | bit;
    }
    [remainder, quotient]
}

/// All ones for an even number.
fn even([low, ..]: &[u64; 3]) -> u64 {
    (low & 1).wrapping_sub(1)
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
    use crate::recoding::split_in_two;

    fn from_odd_halves(scalar: &Scalar) -> Scalar {
        let halves = OddHalves::new(scalar);
        let one = Scalar::from(1_u64);
        let power = |exponent: usize| (0..exponent).fold(one, |power, _| power + power);
        let teeth: [Scalar; TEETH] = core::array::from_fn(|tooth| power(COLUMNS * tooth));
        let mut sums = [Scalar::from(0_u64); 2];
        for column in (0..COLUMNS).rev() {
            for (sum, (place, negative)) in sums.iter_mut().zip(halves.digits(column)) {
                assert!(place < 16);
                let entry = (0..TEETH).map(|tooth| {
                    if tooth == TEETH - 1 || place >> tooth & 1 == 1 { teeth[tooth] } else { -teeth[tooth] }
                });
                let entry: Scalar = entry.sum();
                *sum = *sum + *sum + if bool::from(negative) { -entry } else { entry };
            }
        }
        let z = Scalar::from(Z);
        sums[0] + sums[1] * z * z
    }

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

    #[test]
    fn odd_halves_of_extreme_scalars_stand_for_them() {
        let z_squared = Scalar::from(Z) * Scalar::from(Z);
        for small in 0..5_u64 {
            let small = Scalar::from(small);
            for scalar in [small, z_squared + small, z_squared - small, z_squared * small + small] {
                assert_eq!(from_odd_halves(&scalar), scalar);
                assert_eq!(from_odd_halves(&-scalar), -scalar);
            }
        }
    }

    proptest! {
        #[test]
        fn odd_halves_stand_for_the_scalar(limbs in any::<[u64; 4]>()) {
            let scalar = Scalar::new(ark_ff::BigInt(limbs));
            prop_assert_eq!(from_odd_halves(&scalar), scalar);
            prop_assert_eq!(divide_by_square(&scalar), split_in_two(&scalar));
            for width in 2..=8 {
                prop_assert_eq!(from_odd_digits(&scalar, width), scalar);
            }
        }
    }
}
