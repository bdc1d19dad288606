//! Comb multiplication of a fixed public point, for machines without 30 KiB for a table.
//!
//! Lim and Lee, *More Flexible Exponentiation with Precomputation*, CRYPTO 1994: a scalar is cut into four
//! pieces of 64 bits, which are worked off side by side. With the sums of the four points that the pieces
//! belong to, that takes 64 doublings and at most as many additions, in place of 252 and some 50. On a
//! Cortex-M4 half the instructions.

use alloc::vec::Vec;

use curve25519_dalek::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;

/// Bits of a piece of a scalar.
const PIECE: usize = 64;

/// The sums of every choice out of P, 2^64·P, 2^128·P and 2^192·P: sixteen points, 2.5 KB.
#[derive(Clone)]
pub struct Comb(Vec<RistrettoPoint>);

impl Comb {
    pub(super) fn new(point: &RistrettoPoint) -> Self {
        let mut sums = Vec::with_capacity(16);
        sums.push(RistrettoPoint::identity());
        let mut tooth = *point;
        for piece in 0..4 {
            // Those chosen before, with this one.
            sums.extend_from_within(..);
            sums.iter_mut().skip(1 << piece).for_each(|sum| *sum += tooth);
            tooth = (0..PIECE).fold(tooth, |double, _| double + double);
        }
        Self(sums)
    }

    /// scalar · point. Public scalars only.
    pub(super) fn vartime_mul(&self, scalar: &Scalar) -> RistrettoPoint {
        let bytes = scalar.to_bytes();
        let (pieces, _) = bytes.as_chunks::<8>();
        let mut product = RistrettoPoint::identity();
        for bit in (0..PIECE).rev() {
            product += product;
            let ones = pieces.iter().map(|piece| u64::from_le_bytes(*piece) >> bit & 1);
            // One bit of each of the four pieces chooses the sum.
            let choice = ones.zip(0..).fold(0, |choice, (one, piece)| choice | one << piece);
            if let Some(sum) = self.0.get(choice as usize).filter(|_| choice != 0) {
                product += sum;
            }
        }
        product
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_library() {
        let point = RistrettoPoint::mul_base(&Scalar::from(7_u8));
        let comb = Comb::new(&point);
        let one = Scalar::ONE;
        let edges = [Scalar::ZERO, one, -one, Scalar::from(u64::MAX), Scalar::from(u64::MAX) + one];
        let others = (1..50_u64).map(|seed| Scalar::from(seed).invert());
        for scalar in edges.into_iter().chain(others) {
            assert_eq!(comb.vartime_mul(&scalar), scalar * point);
        }
    }

    #[test]
    fn every_bit_of_a_scalar_counts() {
        let comb = Comb::new(&RistrettoPoint::mul_base(&Scalar::ONE));
        let mut power = Scalar::ONE;
        for _ in 0..253 {
            assert_eq!(comb.vartime_mul(&power), RistrettoPoint::mul_base(&power));
            power += power;
        }
    }
}
