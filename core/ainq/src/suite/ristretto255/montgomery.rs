//! Arithmetic modulo 2^255 − 19 by fiat-crypto, for the conversion of a ristretto encoding to the
//! u-coordinate of a cofactor multiple.
//!
//! curve25519-dalek keeps its field to itself; fiat-crypto's is generated and proven, and constant-time.

use alloc::vec::Vec;

#[cfg(target_pointer_width = "32")]
use fiat_crypto::curve25519_32 as fiat;
#[cfg(not(target_pointer_width = "32"))]
use fiat_crypto::curve25519_64 as fiat;
use quiver_crypto::Zeroizing;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroize;

#[cfg(target_pointer_width = "32")]
const LIMBS: usize = 10;
#[cfg(not(target_pointer_width = "32"))]
const LIMBS: usize = 5;

/// An element of the field. Erased when dropped: it is, or leads to, a pairwise secret.
#[derive(Clone)]
pub(super) struct FieldElement(fiat::fiat_25519_tight_field_element);

impl Drop for FieldElement {
    fn drop(&mut self) {
        self.0.0.zeroize();
    }
}

impl FieldElement {
    /// A small number.
    fn small(value: u8) -> Self {
        let mut bytes = [0; 32];
        let [low, ..] = &mut bytes;
        *low = value;
        Self::from_bytes(&bytes)
    }

    /// The 32 little-endian bytes modulo p; the top bit must be clear, as it is in every canonical encoding.
    pub(super) fn from_bytes(bytes: &[u8; 32]) -> Self {
        let mut out = fiat::fiat_25519_tight_field_element([0; LIMBS]);
        fiat::fiat_25519_from_bytes(&mut out, bytes);
        Self(out)
    }

    /// 32 little-endian bytes, fully reduced.
    pub(super) fn to_bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        fiat::fiat_25519_to_bytes(&mut out, &self.0);
        out
    }

    /// self².
    pub(super) fn square(&self) -> Self {
        let mut out = self.clone();
        fiat::fiat_25519_carry_square(&mut out.0, &self.relaxed());
        out
    }

    fn relaxed(&self) -> fiat::fiat_25519_loose_field_element {
        let mut loose = fiat::fiat_25519_loose_field_element([0; LIMBS]);
        fiat::fiat_25519_relax(&mut loose, &self.0);
        loose
    }

    fn mul(&self, other: &Self) -> Self {
        let mut out = self.clone();
        fiat::fiat_25519_carry_mul(&mut out.0, &self.relaxed(), &other.relaxed());
        out
    }

    fn add(&self, other: &Self) -> Self {
        let mut loose = self.relaxed();
        fiat::fiat_25519_add(&mut loose, &self.0, &other.0);
        Self::carried(&loose)
    }

    fn sub(&self, other: &Self) -> Self {
        let mut loose = self.relaxed();
        fiat::fiat_25519_sub(&mut loose, &self.0, &other.0);
        Self::carried(&loose)
    }

    fn carried(loose: &fiat::fiat_25519_loose_field_element) -> Self {
        let mut out = fiat::fiat_25519_tight_field_element([0; LIMBS]);
        fiat::fiat_25519_carry(&mut out, loose);
        Self(out)
    }

    fn mul_121666(&self) -> Self {
        let mut out = self.clone();
        fiat::fiat_25519_carry_scmul_121666(&mut out.0, &self.relaxed());
        out
    }

    /// self, or 1 in place of 0; without a branch.
    fn or_one(&self) -> Self {
        let zero = self.to_bytes().ct_eq(&[0; 32]);
        let one = Self::small(1);
        let mut out = self.clone();
        for (limb, one) in out.0.0.iter_mut().zip(one.0.0) {
            limb.conditional_assign(&one, zero);
        }
        out
    }

    fn squared_times(&self, times: usize) -> Self {
        (0..times).fold(self.clone(), |power, _| power.square())
    }

    /// 1 / self, by raising to p − 2 = 2^255 − 21.
    fn invert(&self) -> Self {
        // `a_n` is self to the power 2^n − 1.
        let a_1 = self;
        let a_2 = a_1.square().mul(a_1);
        let a_4 = a_2.squared_times(2).mul(&a_2);
        let a_5 = a_4.square().mul(a_1);
        let a_10 = a_5.squared_times(5).mul(&a_5);
        let a_20 = a_10.squared_times(10).mul(&a_10);
        let a_40 = a_20.squared_times(20).mul(&a_20);
        let a_50 = a_40.squared_times(10).mul(&a_10);
        let a_100 = a_50.squared_times(50).mul(&a_50);
        let a_200 = a_100.squared_times(100).mul(&a_100);
        let a_250 = a_200.squared_times(50).mul(&a_50);
        // 2^255 − 21 = (2^250 − 1)·2^5 + 11
        let eleven = a_1.squared_times(3).mul(&a_1.square()).mul(a_1);
        a_250.squared_times(5).mul(&eleven)
    }
}

/// A u-coordinate as the fraction x / z.
struct ProjectiveCoordinate {
    x: FieldElement,
    z: FieldElement,
}

impl ProjectiveCoordinate {
    /// Twice the point: RFC 7748, section 5, the doubling half of the ladder step.
    fn double(&self) -> Self {
        let a = self.x.add(&self.z).square();
        let b = self.x.sub(&self.z).square();
        let e = a.sub(&b);
        // a + 121665·e is b + 121666·e
        Self { x: a.mul(&b), z: e.mul(&b.add(&e.mul_121666())) }
    }
}

/// The u-coordinates of eight times the points with the given u-coordinates, by one inversion.
///
/// A point of order dividing eight gives 0.
pub(super) fn times_eight(points: &[FieldElement]) -> Vec<Zeroizing<[u8; 32]>> {
    let one = FieldElement::small(1);
    let multiples: Vec<ProjectiveCoordinate> = points
        .iter()
        .map(|u| ProjectiveCoordinate { x: u.clone(), z: one.clone() }.double().double().double())
        .collect();
    // Montgomery's trick: products of all before, one inversion, then back to front.
    let denominators: Vec<FieldElement> = multiples.iter().map(|multiple| multiple.z.or_one()).collect();
    let mut before = Vec::with_capacity(points.len());
    let mut product = one;
    for z in &denominators {
        before.push(product.clone());
        product = product.mul(z);
    }
    let mut inverse = product.invert();
    let mut u: Vec<Zeroizing<[u8; 32]>> = Vec::with_capacity(points.len());
    for ((multiple, z), before) in multiples.iter().zip(&denominators).zip(&before).rev() {
        let affine = multiple.x.mul(&inverse.mul(before));
        let is_zero = multiple.z.to_bytes().ct_eq(&[0; 32]);
        let mut bytes = Zeroizing::new(affine.to_bytes());
        for byte in bytes.iter_mut() {
            byte.conditional_assign(&0, is_zero);
        }
        u.push(bytes);
        inverse = inverse.mul(z);
    }
    u.reverse();
    u
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::montgomery::MontgomeryPoint;

    use super::*;

    #[test]
    fn inversion_inverts_the_edges_of_the_field() {
        let mut largest = [0xff; 32];
        (largest[0], largest[31]) = (0xec, 0x7f);
        for element in [FieldElement::small(1), FieldElement::small(2), FieldElement::from_bytes(&largest)] {
            assert_eq!(element.mul(&element.invert()).to_bytes(), FieldElement::small(1).to_bytes());
        }
    }

    #[test]
    fn three_doublings_are_a_multiplication_by_eight() {
        let points: Vec<[u8; 32]> = (9..60).map(|u| FieldElement::small(u).to_bytes()).collect();
        let elements: Vec<FieldElement> = points.iter().map(FieldElement::from_bytes).collect();
        for (u, multiple) in points.iter().zip(times_eight(&elements)) {
            let expected = MontgomeryPoint(*u).mul_bits_be([true, false, false, false].into_iter());
            assert_eq!(*multiple, expected.to_bytes());
        }
    }

    #[test]
    fn a_point_of_small_order_gives_zero_and_spoils_no_neighbour() {
        let elements = [FieldElement::small(9), FieldElement::small(0), FieldElement::small(10)];
        let multiples = times_eight(&elements);
        assert_eq!(*multiples[1], [0; 32]);
        assert_eq!(multiples[0], times_eight(&elements[..1])[0]);
        assert_eq!(multiples[2], times_eight(&elements[2..])[0]);
    }
}
