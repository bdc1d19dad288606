//! Recoding of integers as signed digits.

use alloc::vec::Vec;

use ark_ff::PrimeField;

use crate::Scalar;

/// The absolute value of the parameter x of BLS12-381, which is negative.
pub(crate) const Z: u64 = 0xd201_0000_0001_0000;

/// The non-adjacent form of an integer: digits that are zero or odd and absolutely below 2^(width − 1), the
/// lowest first; of any `width` neighbours at most one is not zero. The width is from 2 to 8.
pub(crate) fn non_adjacent(integer: u128, width: u32) -> Vec<i8> {
    let mut rest = integer;
    let mut digits = Vec::with_capacity(129);
    while rest != 0 {
        let mut digit = 0;
        if rest & 1 == 1 {
            // The residue nearest to zero: the rest has `width` zeros at its end.
            digit = ((rest as i16) << (16 - width)) >> (16 - width);
        }
        digits.push(digit as i8);
        // (rest − digit) / 2, where the difference may have a bit more than there is room for.
        rest = (rest >> 1).wrapping_add_signed(-i128::from(digit >> 1));
    }
    digits
}

/// The digits of a scalar to the base 2^width, lowest first, each from −2^(width − 1) to 2^(width − 1).
///
/// There are ⌊255 / width⌋ + 1 of them: the highest takes the last carry. The width is from 2 to 8.
pub(crate) fn signed_windows(scalar: &Scalar, width: u32) -> impl Iterator<Item = i16> {
    let limbs = scalar.into_bigint().0;
    let half = 1_i16 << (width - 1);
    let mut carry = 0;
    (0..=255 / width).map(move |window| {
        let digit = bits(&limbs, window * width, width) + carry;
        // A digit above half is taken less 2^width, with a carry.
        carry = i16::from(digit > half);
        digit - (carry << width)
    })
}

/// Bits of a little-endian integer, at most eight, zeros beyond its end.
fn bits(limbs: &[u64; 4], from: u32, width: u32) -> i16 {
    let limb = |index: u32| limbs.get(index as usize).copied().unwrap_or(0);
    let (index, shift) = (from / 64, from % 64);
    let both = u128::from(limb(index)) | u128::from(limb(index + 1)) << 64;
    ((both >> shift) as i16) & ((1 << width) - 1)
}

/// The digits of a scalar to the base z = |x|, x the parameter of the curve: k₀ + k₁·z + k₂·z² + k₃·z³. Since
/// r < z⁴, four are enough.
pub(crate) fn split(scalar: &Scalar) -> [u64; 4] {
    let mut rest = scalar.into_bigint().0;
    [(); 4].map(|()| divide(&mut rest))
}

/// The digits of a scalar to the base z²: k₀ + k₁·z², both below 2^128.
pub(crate) fn split_in_two(scalar: &Scalar) -> [u128; 2] {
    let [k0, k1, k2, k3] = split(scalar).map(u128::from);
    // k₀ + k₁·z + (k₂ + k₃·z)·z²
    [k0 + k1 * u128::from(Z), k2 + k3 * u128::from(Z)]
}

/// Divides by z in place and gives the remainder.
fn divide(number: &mut [u64; 4]) -> u64 {
    let mut remainder = 0_u64;
    for limb in number.iter_mut().rev() {
        let dividend = u128::from(remainder) << 64 | u128::from(*limb);
        // Both fit: the remainder before was below z.
        *limb = (dividend / u128::from(Z)) as u64;
        remainder = (dividend % u128::from(Z)) as u64;
    }
    remainder
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sparse_digits_stand_for_the_integer(wide in any::<u128>(), shift in 0_u32..128, width in 2_u32..=8) {
            let integer = wide >> shift;
            let digits = non_adjacent(integer, width);
            let two = Scalar::from(2_u64);
            let sum = digits.iter().rev().fold(Scalar::from(0_u64), |sum, digit| two * sum + Scalar::from(*digit));
            prop_assert_eq!(sum, Scalar::from(integer));
            for digit in digits.iter().filter(|digit| **digit != 0) {
                prop_assert!(digit & 1 == 1 && i32::from(*digit).abs() < 1 << (width - 1));
            }
            for neighbours in digits.windows(width as usize) {
                prop_assert!(neighbours.iter().filter(|digit| **digit != 0).count() <= 1);
            }
        }

        #[test]
        fn quarters_stand_for_the_scalar(limbs in any::<[u64; 4]>()) {
            let scalar = Scalar::new(ark_ff::BigInt(limbs));
            let z = Scalar::from(Z);
            let sum = split(&scalar).iter().rev().fold(Scalar::from(0_u64), |sum, digit| sum * z + Scalar::from(*digit));
            prop_assert_eq!(sum, scalar);
            prop_assert!(split(&scalar).iter().all(|quarter| *quarter < Z));
            let [low, high] = split_in_two(&scalar).map(Scalar::from);
            prop_assert_eq!(low + high * z * z, scalar);
        }
    }

    #[test]
    fn the_largest_magnitude_of_an_integer_has_digits() {
        let digits = non_adjacent(i128::MIN.unsigned_abs(), 2);
        assert_eq!((digits.len(), digits.iter().sum::<i8>(), digits.last()), (128, 1, Some(&1)));
    }

    #[test]
    fn the_parameter_is_that_of_the_curve() {
        use ark_ec::bls12::Bls12Config;
        assert_eq!(ark_bls12_381::Config::X, [Z]);
        const { assert!(ark_bls12_381::Config::X_IS_NEGATIVE) };
    }
}
