//! Multiplication of points by a split scalar: in two on the first curve, in four on the second.
//!
//! Both curves have a map that multiplies a point of order r by a large number at the price of one or two
//! products in the field: on the first (x, y) ↦ (βx, y) with a cube root β of one, which arkworks has; on the
//! second ψ, untwist, Frobenius, twist, which multiplies by p, that is by the parameter x modulo r.

#[allow(unused_imports, reason = "the map of arkworks' own curve; that of `armv7em` needs no trait")]
use ark_ec::scalar_mul::glv::GLVConfig;
use ark_ec::short_weierstrass::Projective;
use ark_ff::{AdditiveGroup, Field, MontFp};

use crate::parameters::{Fq, Fq2, g1, g2};
use crate::recoding::{split, split_in_two};
use crate::{Curve, G1, G1Curve, G2, G2Curve, Point, Scalar, interleaved};

/// A curve whose points are multiplied by a split scalar.
pub trait Endomorphism {
    /// scalar · point. Not constant-time.
    fn multiply_split(point: &Point<Self>, scalar: &Scalar) -> Point<Self>
    where
        Self: Curve;
}

impl Endomorphism for G1Curve {
    fn multiply_split(point: &G1, scalar: &Scalar) -> G1 {
        // k₀ + k₁·z², where (x, y) ↦ (βx, y) multiplies by −z².
        interleaved::multiply(*point, split_in_two(scalar), times_z_squared)
    }
}

impl Endomorphism for G2Curve {
    fn multiply_split(point: &G2, scalar: &Scalar) -> G2 {
        // k₀ + k₁·z + k₂·z² + k₃·z³, where ψ multiplies by x = −z.
        interleaved::multiply(*point, split(scalar).map(u128::from), times_z)
    }
}

/// z² · point with z = |x|: arkworks' map multiplies by −x², a cube root of one modulo r. Of a point of
/// another order, a point that the map takes it to.
pub(crate) fn times_z_squared(point: G1) -> G1 {
    -Point(g1::Config::endomorphism(&point.0))
}

/// 1 / (u + 1)^((p − 1) / 3)
const PSI_X: Fq2 = Fq2::new(
    Fq::ZERO,
    MontFp!(
        "4002409555221667392624310435006688643935503118305586438271171395842971157480381377015405980053539358417135540939437"
    ),
);

/// 1 / (u + 1)^((p − 1) / 2)
const PSI_Y: Fq2 = Fq2::new(
    MontFp!(
        "2973677408986561043442465346520108879172042883009249989176415018091420807192182638567116318576472649347015917690530"
    ),
    MontFp!(
        "1028732146235106349975324479215795277384839936929757896155643118032610843298655225875571310552543014690878354869257"
    ),
);

/// z · point with z = |x|: minus ψ(point), because x is negative.
fn times_z(point: G2) -> G2 {
    -Point(psi(point.0))
}

/// ψ(point), which multiplies by x in the subgroup.
pub(crate) fn psi(point: Projective<g2::Config>) -> Projective<g2::Config> {
    let Projective { mut x, mut y, mut z } = point;
    // Frobenius on each coordinate; the constants untwist and twist.
    for coordinate in [&mut x, &mut y, &mut z] {
        coordinate.frobenius_map_in_place(1);
    }
    Projective { x: x * PSI_X, y: y * PSI_Y, z }
}

#[cfg(test)]
mod tests {
    use ark_ff::{One, PrimeField};

    use super::*;
    use crate::Group;

    /// z, by doubling and adding.
    fn z_times<C: Curve>(point: Point<C>) -> Point<C> {
        let z = 0xd201_0000_0001_0000_u64;
        (0..64).rev().fold(Point::identity(), |sum, bit| {
            if z >> bit & 1 == 1 { sum.double() + point } else { sum.double() }
        })
    }

    #[test]
    fn maps_multiply_by_powers_of_the_parameter() {
        for message in [b"one".as_slice(), b"two", b"three"] {
            let (p, q) = (G1::hash("TEST", &[message]), G2::hash("TEST", &[message]));
            assert_eq!(times_z_squared(p), z_times(z_times(p)));
            assert_eq!(times_z(q), z_times(q));
        }
        assert!(times_z_squared(G1::identity()).is_identity());
        assert!(times_z(G2::identity()).is_identity());
    }

    #[test]
    fn constants_are_powers_of_the_twist() {
        let twist = Fq2::new(Fq::one(), Fq::one());
        let mut exponent = Fq::MODULUS;
        // (p − 1) / 2, for p is odd
        exponent.0[0] -= 1;
        let half = twist.pow(Fq::MODULUS_MINUS_ONE_DIV_TWO);
        assert_eq!(PSI_Y * half, Fq2::one());
        assert_eq!((PSI_X * PSI_X * PSI_X) * twist.pow(exponent), Fq2::one());
    }
}
