//! Pairwise secrets of one scalar with many points, by the fastest way of this machine.
//!
//! Either way starts from what a ristretto library does fast for many points: encode their doubles, with one
//! inversion for all. So k/2 takes the place of k.
//!
//! | | when | how |
//! |---|---|---|
//! | [`in_lanes`] | the processor has a vector unit for it | encode 2Q, square s, go up the Montgomery ladder eight or four points at a time: DH(k/2, 2Q) = DH(k, Q) |
//! | [`on_the_edwards_curve`] | otherwise, and for a single point | multiply by k/2, encode the double, square s, double three times in x-only coordinates, which multiplies by the cofactor |

use alloc::vec::Vec;

use curve25519_dalek::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use quiver_crypto::Zeroizing;
use quiver_simd::x25519::{self, X25519Backend};
use subtle::ConstantTimeEq;

use super::montgomery::{self, FieldElement};
use super::normalised;
use crate::Error;
use crate::suite::AgreedSecret;

/// Points that share one inversion, and that one core takes at a time.
pub(super) const LEN: usize = 128;

/// Points from which on a ladder for a whole vector is faster than one multiplication after the other.
const WORTH_A_VECTOR: usize = 2;

/// (q + 1) / 2, the scalar that halves.
const HALF: [u8; 32] = [
    0xf7, 0xe9, 0x7a, 0x2e, 0x8d, 0x31, 0x09, 0x2c, 0x6b, 0xce, 0x7b, 0x51, 0xef, 0x7c, 0x6f, 0x0a, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08,
];

/// The pairwise secrets, in the order of the points.
pub(super) fn agree(k: &Scalar, qs: &[RistrettoPoint]) -> Vec<Result<AgreedSecret, Error>> {
    if !bool::from(normalised(k).1) {
        return qs.iter().map(|_| Err(Error::InvalidScalar)).collect();
    }
    // §1.3: half the scalar times the doubled point.
    let half = Zeroizing::new(*k * Scalar::from_bytes_mod_order(HALF));
    let (clamped, fits) = normalised(&half);
    let has_lanes = x25519::backend() != X25519Backend::Serial;
    // A usable k whose half is not is one in 2^126.
    if has_lanes && qs.len() >= WORTH_A_VECTOR && bool::from(fits) {
        in_lanes(&clamped, qs)
    } else {
        on_the_edwards_curve(&half, qs)
    }
}

/// DH(k/2, 2Q), where `clamped` is what DH normalises k/2 to.
fn in_lanes(clamped: &[u8; 32], qs: &[RistrettoPoint]) -> Vec<Result<AgreedSecret, Error>> {
    let doubles = RistrettoPoint::double_and_compress_batch(qs);
    let u = |s: &[u8; 32]| FieldElement::from_bytes(s).square().to_bytes();
    let mut secrets = Zeroizing::new(Vec::with_capacity(qs.len()));
    secrets.extend(doubles.iter().map(|double| u(double.as_bytes())));
    x25519::multiply_in_place(clamped, &mut secrets);
    secrets.iter().map(checked).collect()
}

/// u(8·k·Q) out of the encoding of 2·(k/2)·Q.
fn on_the_edwards_curve(half: &Scalar, qs: &[RistrettoPoint]) -> Vec<Result<AgreedSecret, Error>> {
    // 2·(k/2)·Q, encoded with one inversion for all.
    let products = Zeroizing::new(qs.iter().map(|q| half * q).collect::<Vec<_>>());
    let encodings = Zeroizing::new(RistrettoPoint::double_and_compress_batch(products.iter()));
    let points: Vec<FieldElement> =
        encodings.iter().map(|s| FieldElement::from_bytes(s.as_bytes()).square()).collect();
    // Three doublings multiply by the cofactor.
    montgomery::times_eight(&points).iter().map(|secret| checked(secret)).collect()
}

/// Refuses the secret with the identity, which is public: zero.
fn checked(secret: &[u8; 32]) -> Result<AgreedSecret, Error> {
    let known = bool::from(secret.ct_eq(&[0; 32]));
    if known { Err(Error::IdentityPoint) } else { Ok(AgreedSecret::new(secret)) }
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::traits::Identity;

    use super::*;
    use crate::{Element, Ristretto255, Suite};

    fn points(count: u64) -> Vec<RistrettoPoint> {
        (0..count).map(|seed| RistrettoPoint::mul_base(&Scalar::from(seed + 3).invert())).collect()
    }

    fn one_by_one(k: &Scalar, points: &[RistrettoPoint]) -> Vec<Result<AgreedSecret, Error>> {
        let element = |point: &RistrettoPoint| Element::<Ristretto255>::from_point(*point);
        points.iter().map(|point| Ristretto255::agree(k, &element(point)?)).collect()
    }

    #[test]
    fn both_ways_and_every_batch_size_give_the_secrets_of_single_points() {
        let k = Scalar::from(7_u8).invert();
        let points = points(130);
        let all = one_by_one(&k, &points);
        for count in [0, 1, 2, 3, 7, 8, 9, 127, 128, 129, 130] {
            assert!(Ristretto255::agree_many(&k, &points[..count]) == all[..count], "{count} points");
        }
        let half = k * Scalar::from_bytes_mod_order(HALF);
        assert_eq!(half + half, k);
        assert!(in_lanes(&normalised(&half).0, &points) == all);
        assert!(on_the_edwards_curve(&half, &points) == all);
    }

    #[test]
    fn a_batch_refuses_the_identity_alone() {
        let k = Scalar::from(7_u8).invert();
        let mut points = points(20);
        points[11] = RistrettoPoint::identity();
        let expected = one_by_one(&k, &points);
        assert_eq!(expected[11], Err(Error::IdentityPoint));
        assert!(expected.iter().enumerate().all(|(i, secret)| secret.is_ok() == (i != 11)));
        assert!(agree(&k, &points) == expected);
        let half = k * Scalar::from_bytes_mod_order(HALF);
        assert!(on_the_edwards_curve(&half, &points) == expected);
    }

    #[test]
    fn a_scalar_whose_half_is_unusable_agrees_all_the_same() {
        // 2^124 is below q − 2^252 and so is no key; twice that is above, and is one.
        let half = Scalar::from(1_u128 << 124);
        let k = half + half;
        assert!(!Ristretto255::secret_scalar_ok(&half));
        assert!(Ristretto255::secret_scalar_ok(&k));
        let points = points(9);
        assert!(agree(&k, &points) == one_by_one(&k, &points));
    }
}
