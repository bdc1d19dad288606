//! Scalars: integers modulo r.

use ark_ff::{BigInt, PrimeField};
use quiver_crypto::{Zeroizing, expand_message};
use rand_core::CryptoRngCore;
use zeroize::Zeroize;

use crate::PairingError;
use crate::encoding::exactly;

/// An integer modulo r, the order of all three groups: arkworks' own type, so that code generic over fields
/// can take it.
///
/// Its `Debug` and `Display` print the value, and its arithmetic is not promised to be constant-time: secret
/// ones belong into types that print nothing and erase themselves.
pub use ark_bls12_381::Fr as Scalar;

/// Bytes of an encoded scalar.
pub const SCALAR_LEN: usize = 32;

/// Bytes that are reduced to a scalar when hashing: 255 bits and 128 more (RFC 9380, section 5.1).
const HASHED: usize = 48;

/// The one encoding of a scalar: 32 bytes, big-endian. Erased when dropped.
#[must_use]
pub fn scalar_encode(scalar: &Scalar) -> Zeroizing<[u8; SCALAR_LEN]> {
    let mut integer = scalar.into_bigint();
    let mut bytes = Zeroizing::new([0; SCALAR_LEN]);
    for (to, limb) in bytes.rchunks_mut(8).zip(integer.0) {
        to.copy_from_slice(&limb.to_be_bytes());
    }
    integer.zeroize();
    bytes
}

/// The scalar that 32 bytes encode, which may be zero.
///
/// # Errors
/// [`PairingError::WrongLength`], or [`PairingError::NotCanonical`] for an integer that is not below r.
pub fn scalar_decode(bytes: &[u8]) -> Result<Scalar, PairingError> {
    let mut bytes: [u8; SCALAR_LEN] = exactly(bytes, SCALAR_LEN)?;
    let mut limbs = [0; 4];
    for (limb, from) in limbs.iter_mut().zip(bytes.rchunks(8)) {
        *limb = u64::from_be_bytes(from.try_into().unwrap_or_default());
    }
    bytes.zeroize();
    let scalar = Scalar::from_bigint(BigInt(limbs)).ok_or(PairingError::NotCanonical);
    limbs.zeroize();
    scalar
}

/// The 64 bytes as a big-endian integer, reduced modulo r: uniform if they are.
#[must_use]
pub fn scalar_from_wide(bytes: &[u8; 64]) -> Scalar {
    Scalar::from_be_bytes_mod_order(bytes)
}

/// A uniform scalar, made of 64 bytes of the source of randomness.
#[must_use]
pub fn scalar_random(rng: &mut (impl CryptoRngCore + ?Sized)) -> Scalar {
    let mut wide = Zeroizing::new([0; 64]);
    rng.fill_bytes(&mut *wide);
    scalar_from_wide(&wide)
}

/// Hashes to a scalar: RFC 9380, `hash_to_field` with SHA-256 for a field of r elements (48 bytes are
/// reduced), of the parts one after the other. The domain is as for [`Point::hash`](crate::Point::hash).
#[must_use]
pub fn hash_to_scalar(domain: &str, parts: &[&[u8]]) -> Scalar {
    // RFC 9380, section 5.2: 48 bytes reduced modulo r.
    Scalar::from_be_bytes_mod_order(&*Zeroizing::new(expand_message::<HASHED>(&[domain.as_bytes()], parts)))
}
