//! ristretto255 (RFC 9496) over curve25519-dalek: the default suite, constant-time.
//!
//! # The pairwise secret as bytes
//! A ristretto element is a coset of curve points, so "its u-coordinate" is not one value. It becomes one by
//! clearing the cofactor and normalising the scalar. With s the 32-byte encoding of Q and k a scalar,
//!
//! ```text
//! k̂        = k if 2^251 ≤ k < 2^252, else q − k       (a k for which neither fits, one in 2^127, is no key)
//! DH(k, Q) = X25519(8·k̂, s² mod p) = u([8k]P)          for every representative P of Q
//! ```
//!
//! 8·k̂ already is a clamped X25519 scalar, so any RFC 7748 code computes this, among it assembly for
//! microcontrollers ([`quiver_simd::x25519::x25519`]). The sign of k is lost, which is why the hash that uses
//! T includes both public points.
//!
//! Many points at once are faster in other ways, which give the same bytes: [`batch`].

use alloc::vec::Vec;

use curve25519_dalek::RistrettoPoint;
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{IsIdentity, VartimeMultiscalarMul};
use quiver_crypto::{Sha512, Zeroizing, erasing_stack};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::suite::{AgreedSecret, in_chunks};
use crate::{Element, Error, Suite};

mod batch;
#[allow(dead_code, unreachable_pub, reason = "a type of the suite's interface where there is no `std`")]
mod comb;
mod montgomery;
#[cfg_attr(not(feature = "std"), path = "ristretto255/prepared/small.rs")]
mod prepared;
#[cfg_attr(not(feature = "verification-cache"), path = "ristretto255/verification_cache/absent.rs")]
pub(super) mod verification_cache;

use montgomery::FieldElement;

/// The suite `QUIVER-AINQ-RISTRETTO255-SHA512-v1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ristretto255;

/// The context string of FROST(ristretto255, SHA-512), RFC 9591 section 6.2.
const FROST_CONTEXT: &[u8] = b"FROST-RISTRETTO255-SHA512-v1";

impl Suite for Ristretto255 {
    const ID: &'static str = "QUIVER-AINQ-RISTRETTO255-SHA512-v1";
    const POINT_LEN: usize = 32;
    const SCALAR_LEN: usize = 32;
    const SECRET_LEN: usize = 32;

    type Scalar = Scalar;
    type Point = RistrettoPoint;
    type Encoding = [u8; 32];
    type Prepared = prepared::PreparedPoint;

    fn mul_base(scalar: &Scalar) -> RistrettoPoint {
        RistrettoPoint::mul_base(scalar)
    }

    fn mul(scalar: &Scalar, point: &RistrettoPoint) -> RistrettoPoint {
        scalar * point
    }

    fn encode(point: &RistrettoPoint) -> [u8; 32] {
        point.compress().to_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<RistrettoPoint> {
        let bytes = bytes.try_into().ok()?;
        let decompress = |bytes: &[u8; 32]| CompressedRistretto(*bytes).decompress();
        verification_cache::decode(bytes, decompress)
    }

    fn is_identity(point: &RistrettoPoint) -> bool {
        point.is_identity()
    }

    fn prepare(point: &RistrettoPoint) -> Self::Prepared {
        prepared::prepare(point)
    }

    fn vartime_mul_prepared(scalar: &Scalar, point: &Self::Prepared) -> RistrettoPoint {
        verification_cache::product(scalar, point, || point.vartime_mul(scalar))
    }

    fn vartime_mul_with_base(a: &Scalar, point: &RistrettoPoint, b: &Scalar) -> RistrettoPoint {
        let compute = || RistrettoPoint::vartime_double_scalar_mul_basepoint(a, point, b);
        verification_cache::sum((a, point, b), compute)
    }

    fn vartime_multiscalar(scalars: &[Scalar], points: &[RistrettoPoint]) -> RistrettoPoint {
        RistrettoPoint::vartime_multiscalar_mul(scalars, points)
    }

    fn scalar_from_wide(bytes: &[u8; 64]) -> Scalar {
        Scalar::from_bytes_mod_order_wide(bytes)
    }

    fn scalar_from_u128(value: u128) -> Scalar {
        Scalar::from(value)
    }

    fn scalar_decode(bytes: &[u8]) -> Option<Scalar> {
        Scalar::from_canonical_bytes(bytes.try_into().ok()?).into()
    }

    fn scalar_encode(scalar: &Scalar) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(scalar.to_bytes())
    }

    fn scalar_is_zero(scalar: &Scalar) -> bool {
        scalar.ct_eq(&Scalar::ZERO).into()
    }

    fn challenge(parts: &[&[u8]]) -> Scalar {
        // RFC 9591, 6.2: H2(m) = H(contextString ‖ "chal" ‖ m), 64 bytes reduced modulo the order
        let mut hash = Sha512::new();
        [FROST_CONTEXT, b"chal"].iter().chain(parts).for_each(|part| hash.update(part));
        Scalar::from_bytes_mod_order_wide(&hash.finish())
    }

    fn hash_to_scalar(domain: &str, parts: &[&[u8]]) -> Scalar {
        // §2.4: never FROST's hash: a domain in place of its context string.
        let mut hash = Sha512::new();
        for part in [domain.as_bytes()].iter().chain(parts) {
            hash.update(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            hash.update(part);
        }
        Scalar::from_bytes_mod_order_wide(&hash.finish())
    }

    fn secret_scalar_ok(scalar: &Scalar) -> bool {
        normalised(scalar).1.into()
    }

    fn agree(k: &Scalar, q: &Element<Self>) -> Result<AgreedSecret, Error> {
        // No ladder erases its steps, from which k could be read.
        erasing_stack(|| agree(k, q.encoding()))
    }

    fn agree_many(k: &Scalar, qs: &[RistrettoPoint]) -> Vec<Result<AgreedSecret, Error>> {
        in_chunks(qs, batch::LEN, |points| batch::agree(k, points))
    }
}

/// DH(k, Q) for the encoding of Q.
fn agree(k: &Scalar, q: &[u8; 32]) -> Result<AgreedSecret, Error> {
    let (clamped, fits) = normalised(k);
    if !bool::from(fits) {
        return Err(Error::InvalidScalar);
    }
    // X25519(8·k̂, s² mod p) is u([8k]P) for every representative P of Q.
    let u = FieldElement::from_bytes(q).square().to_bytes();
    let secret = quiver_simd::x25519::x25519(&clamped, &u);
    // Q is of prime order and k is not zero, so this never happens; a public secret must not pass.
    if bool::from(secret.ct_eq(&[0; 32])) {
        return Err(Error::IdentityPoint);
    }
    Ok(AgreedSecret::new(&secret))
}

/// 8·k̂ as 32 little-endian bytes, and whether k̂ exists. Without a branch on the scalar.
fn normalised(k: &Scalar) -> (Zeroizing<[u8; 32]>, Choice) {
    let (plain, negated) =
        (Zeroizing::new(k.to_bytes()), Zeroizing::new(Ristretto255::negated(k).to_bytes()));
    let [.., top] = *plain;
    let [.., negated_top] = *negated;
    // 2^251 ≤ k < 2^252: of the top byte, bits 248 to 255, the upper five are 00001.
    let in_range = |top: u8| (top & 0xf8).ct_eq(&0x08);
    let fits = in_range(top);
    let mut clamped = Zeroizing::new([0; 32]);
    let mut carry = 0;
    for ((byte, plain), negated) in clamped.iter_mut().zip(plain.iter()).zip(negated.iter()) {
        let chosen = u8::conditional_select(negated, plain, fits);
        *byte = (chosen << 3) | carry;
        carry = chosen >> 5;
    }
    (clamped, fits | in_range(negated_top))
}
