//! Encoding of numbers and points: big-endian, an extension's highest coefficient first, three flags in a
//! point's first byte.

use alloc::vec::Vec;

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::Affine;
use ark_ff::{BigInt, Field, PrimeField, Zero};

use crate::parameters::Fq;
use crate::{Curve, PairingError};

/// Bytes of an integer modulo p.
pub(crate) const FIELD_LEN: usize = 48;

/// Set in every compressed point.
const COMPRESSED: u8 = 0x80;
/// Set in the encoding of the identity, where everything else is zero.
const INFINITY: u8 = 0x40;
/// Set if y is the larger one of the two square roots.
const LARGER: u8 = 0x20;

/// Writes an element of an extension of Fp, of as many bytes as `out` has.
pub(crate) fn write_field<F: Field<BasePrimeField = Fq>>(element: &F, out: &mut [u8]) {
    for (bytes, coefficient) in out.rchunks_mut(FIELD_LEN).zip(element.to_base_prime_field_elements()) {
        let limbs = coefficient.into_bigint().0;
        for (to, limb) in bytes.rchunks_mut(8).zip(limbs) {
            to.copy_from_slice(&limb.to_be_bytes());
        }
    }
}

/// Reads what [`write_field`] writes. None if a coefficient is not below p.
pub(crate) fn read_field<F: Field<BasePrimeField = Fq>>(bytes: &[u8]) -> Option<F> {
    let coefficients = bytes.rchunks(FIELD_LEN).map(read_coefficient).collect::<Option<Vec<Fq>>>()?;
    F::from_base_prime_field_elems(coefficients)
}

pub(crate) fn read_coefficient(bytes: &[u8]) -> Option<Fq> {
    let mut limbs = [0; 6];
    for (limb, from) in limbs.iter_mut().zip(bytes.rchunks(8)) {
        *limb = u64::from_be_bytes(from.try_into().ok()?);
    }
    Fq::from_bigint(BigInt(limbs))
}

/// The compressed form of a point.
pub(crate) fn compress<C: Curve>(point: &Affine<C::Config>) -> C::Encoding {
    let mut bytes = C::ZEROS;
    let mut flags = COMPRESSED;
    match point.xy() {
        None => flags |= INFINITY,
        Some((x, y)) => {
            write_field(&x, bytes.as_mut());
            // Of the two roots the larger one is flagged.
            if y > -y {
                flags |= LARGER;
            }
        }
    }
    if let Some(first) = bytes.as_mut().first_mut() {
        *first |= flags;
    }
    bytes
}

/// The point of the curve that the bytes are the compressed form of: not yet known to lie in the subgroup.
pub(crate) fn decompress<C: Curve>(bytes: &C::Encoding) -> Result<Affine<C::Config>, PairingError> {
    let mut rest = *bytes;
    let first = rest.as_mut().first_mut().ok_or(PairingError::NotCanonical)?;
    let flags = *first & (COMPRESSED | INFINITY | LARGER);
    *first ^= flags;
    if flags & COMPRESSED == 0 {
        return Err(PairingError::NotCanonical);
    }
    if flags & INFINITY != 0 {
        // The identity has one encoding: its flags, and zeros.
        let alone = flags & LARGER == 0 && rest.as_ref().iter().all(Zero::is_zero);
        return if alone { Ok(Affine::zero()) } else { Err(PairingError::NotCanonical) };
    }
    let x = read_field(rest.as_ref()).ok_or(PairingError::NotCanonical)?;
    Affine::get_point_from_x_unchecked(x, flags & LARGER != 0).ok_or(PairingError::NotOnCurve)
}

/// The bytes as an array of the right length.
pub(crate) fn exactly<T: for<'a> TryFrom<&'a [u8]>>(
    bytes: &[u8],
    expected: usize,
) -> Result<T, PairingError> {
    bytes.try_into().map_err(|_| PairingError::WrongLength { expected, actual: bytes.len() })
}
