//! The target group.

use alloc::vec::Vec;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

use ark_ff::{AdditiveGroup, CyclotomicMultSubgroup, Field, One};
use zeroize::Zeroize;

use crate::encoding::{exactly, read_field, write_field};
use crate::group::tabled::Tabled;
use crate::parameters::Fq12;
use crate::{Group, PairingError, Scalar};

mod power;

/// Bytes of an encoded element.
const ENCODED_LEN: usize = 576;

/// The result of pairings: an element of order r of the multiplicative group of Fp¹².
///
/// Written additively, as the other groups: `+` multiplies in the field, `*` raises to a power. Encoded as
/// twelve coefficients of 48 bytes, big-endian, the highest first. Nothing here is constant-time.
#[derive(Clone, Copy, PartialEq, Eq, derive_more::Debug)]
#[debug("Gt(..)")]
pub struct Gt(pub(crate) Fq12);

impl Group for Gt {
    const ENCODED_LEN: usize = ENCODED_LEN;
    type Encoding = [u8; ENCODED_LEN];

    fn identity() -> Self {
        Self(Fq12::ONE)
    }

    fn is_identity(&self) -> bool {
        self.0.is_one()
    }

    fn double(&self) -> Self {
        Self(self.0.cyclotomic_square())
    }

    fn encode(&self) -> [u8; ENCODED_LEN] {
        let mut bytes = [0; ENCODED_LEN];
        write_field(&self.0, &mut bytes);
        bytes
    }

    fn decode_or_identity(bytes: &[u8]) -> Result<Self, PairingError> {
        let bytes: [u8; ENCODED_LEN] = exactly(bytes, ENCODED_LEN)?;
        let element = read_field(&bytes).ok_or(PairingError::NotCanonical)?;
        if has_order_r(&element) { Ok(Self(element)) } else { Err(PairingError::WrongSubgroup) }
    }
}

/// Returns true if the order of f divides r.
///
/// M. Scott, "A note on group membership tests for G1, G2 and GT on BLS pairing-friendly curves" (eprint
/// 2021/1130), section 5: f lies in the cyclotomic subgroup, of order p⁴ − p² + 1, and f^p = f^x; the
/// greatest common divisor of that order and p − x is r.
fn has_order_r(f: &Fq12) -> bool {
    // Zero is in no group, but meets both equations.
    if *f == Fq12::ZERO {
        return false;
    }
    let frobenius = |power| {
        let mut image = *f;
        image.frobenius_map_in_place(power);
        image
    };
    // f^(p⁴)·f = f^(p²): f is in the cyclotomic subgroup; f^p = f^x: its order divides r.
    frobenius(4) * f == frobenius(2) && frobenius(1) == power::to_the_x(f)
}

impl Tabled for Gt {
    type Entry = Self;

    fn entries(elements: &[Self]) -> Vec<Self> {
        elements.to_vec()
    }

    fn add_entry(&mut self, entry: &Self) {
        *self += *entry;
    }

    fn subtract_entry(&mut self, entry: &Self) {
        *self -= *entry;
    }
}

impl Default for Gt {
    fn default() -> Self {
        Self::identity()
    }
}

impl Zeroize for Gt {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl Add for Gt {
    type Output = Self;

    #[expect(clippy::suspicious_arithmetic_impl, reason = "what the field multiplies, the group adds")]
    fn add(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
}

impl AddAssign for Gt {
    #[expect(clippy::suspicious_op_assign_impl, reason = "what the field multiplies, the group adds")]
    fn add_assign(&mut self, other: Self) {
        self.0 *= other.0;
    }
}

impl Sub for Gt {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl SubAssign for Gt {
    fn sub_assign(&mut self, other: Self) {
        *self += -other;
    }
}

impl Neg for Gt {
    type Output = Self;

    fn neg(self) -> Self {
        // The inverse in the cyclotomic subgroup is the conjugate.
        let mut inverse = self.0;
        inverse.conjugate_in_place();
        Self(inverse)
    }
}

impl Mul<&Scalar> for Gt {
    type Output = Self;

    fn mul(self, scalar: &Scalar) -> Self {
        power::multiply(&self, scalar)
    }
}

impl Mul<Scalar> for Gt {
    type Output = Self;

    fn mul(self, scalar: Scalar) -> Self {
        power::multiply(&self, &scalar)
    }
}

impl Sum for Gt {
    fn sum<I: Iterator<Item = Self>>(elements: I) -> Self {
        elements.fold(Self::identity(), Add::add)
    }
}

impl<'a> Sum<&'a Self> for Gt {
    fn sum<I: Iterator<Item = &'a Self>>(elements: I) -> Self {
        elements.copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements of the cyclotomic subgroup, of which one in 2^1268 has order r.
    fn cyclotomic(seed: u64) -> Fq12 {
        let mut element = Fq12::from(seed);
        element.c1.c0.c0 = crate::parameters::Fq::from(seed + 1);
        // f^((p^6 - 1)(p^2 + 1))
        let mut inverse = element.inverse().unwrap();
        element.conjugate_in_place();
        inverse *= element;
        let mut image = inverse;
        image.frobenius_map_in_place(2);
        image * inverse
    }

    #[test]
    fn elements_of_the_cyclotomic_subgroup_with_another_order_are_refused() {
        for seed in 1..20 {
            let element = cyclotomic(seed);
            assert_eq!(element.cyclotomic_square(), element.square());
            assert!(!element.pow(ark_bls12_381::Fr::characteristic()).is_one());
            assert!(!has_order_r(&element));
            assert_eq!(Gt::decode(&Gt(element).encode()), Err(PairingError::WrongSubgroup));
        }
    }

    #[test]
    fn what_a_final_exponentiation_gives_has_order_r() {
        use ark_ec::pairing::{MillerLoopOutput, Pairing};
        for seed in 1..20 {
            let output = MillerLoopOutput(cyclotomic(seed));
            let element = crate::parameters::Bls12_381::final_exponentiation(output).unwrap().0;
            assert!(element.pow(ark_bls12_381::Fr::characteristic()).is_one());
            assert!(has_order_r(&element));
        }
    }
}
