//! G1 of BLS12-381 over arkworks. **Not constant-time**: for comparison and for machines whose timing cannot
//! be observed.
//!
//! Points are compressed, 48 bytes, as in the Zcash serialisation; scalars 32 bytes little-endian. The
//! pairwise secret is the compressed point.

use alloc::vec::Vec;

use ark_bls12_381::{Fr, G1Affine, G1Projective};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup, VariableBaseMSM};
use ark_ff::{PrimeField, Zero};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use quiver_crypto::{Zeroizing, expand_message};
use zeroize::Zeroize;

use crate::suite::{AgreedSecret, BLS12381G1_ID, in_chunks};
use crate::{Element, Error, Suite};

/// The suite `QUIVER-AINQ-BLS12381G1-SHA256-v1`. Not constant-time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bls12381G1;

/// The context string of FROST over this group, after the pattern of RFC 9591.
const FROST_CONTEXT: &[u8] = b"QUIVER-FROST-BLS12381G1-SHA256-v1";

/// Points that share one inversion, and that one core takes at a time.
const BATCH: usize = 128;

/// Bytes that are reduced to a scalar: 255 bits and 128 more (RFC 9380, section 5.1).
const WIDE: usize = 48;

impl Suite for Bls12381G1 {
    const ID: &'static str = BLS12381G1_ID;
    const POINT_LEN: usize = 48;
    const SCALAR_LEN: usize = 32;
    const SECRET_LEN: usize = 48;

    type Scalar = Fr;
    type Point = G1Projective;
    type Encoding = [u8; 48];
    type Prepared = G1Projective;

    fn mul_base(scalar: &Fr) -> G1Projective {
        G1Projective::generator() * scalar
    }

    fn mul(scalar: &Fr, point: &G1Projective) -> G1Projective {
        *point * scalar
    }

    fn encode(point: &G1Projective) -> [u8; 48] {
        compressed(&point.into_affine())
    }

    fn decode(bytes: &[u8]) -> Option<G1Projective> {
        let bytes: &[u8; 48] = bytes.try_into().ok()?;
        // Checks the curve equation and the subgroup.
        let point = G1Affine::deserialize_compressed(&bytes[..]).ok()?;
        // Only the encoding that this suite writes is accepted, although a decoder may allow others.
        (compressed(&point) == *bytes).then(|| point.into_group())
    }

    fn is_identity(point: &G1Projective) -> bool {
        point.is_zero()
    }

    fn prepare(point: &G1Projective) -> G1Projective {
        *point
    }

    fn vartime_mul_prepared(scalar: &Fr, point: &G1Projective) -> G1Projective {
        *point * scalar
    }

    fn vartime_mul_with_base(a: &Fr, point: &G1Projective, b: &Fr) -> G1Projective {
        *point * a + G1Projective::generator() * b
    }

    fn vartime_multiscalar(scalars: &[Fr], points: &[G1Projective]) -> G1Projective {
        G1Projective::msm_unchecked(&G1Projective::normalize_batch(points), scalars)
    }

    fn scalar_from_wide(bytes: &[u8; 64]) -> Fr {
        Fr::from_le_bytes_mod_order(bytes)
    }

    fn scalar_from_u128(value: u128) -> Fr {
        Fr::from(value)
    }

    fn scalar_decode(bytes: &[u8]) -> Option<Fr> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        Fr::deserialize_compressed(&bytes[..]).ok()
    }

    fn scalar_encode(scalar: &Fr) -> Zeroizing<[u8; 32]> {
        let mut bytes = Zeroizing::new([0; 32]);
        let mut integer = scalar.into_bigint();
        let limbs = integer.as_ref().iter().flat_map(|limb| limb.to_le_bytes());
        bytes.iter_mut().zip(limbs).for_each(|(to, from)| *to = from);
        integer.zeroize();
        bytes
    }

    fn scalar_is_zero(scalar: &Fr) -> bool {
        scalar.is_zero()
    }

    fn challenge(parts: &[&[u8]]) -> Fr {
        // As H2 of FROST over P-256 (RFC 9591, 6.4): hash_to_field with the context string and "chal" as its
        // domain
        Fr::from_be_bytes_mod_order(&expand_message::<WIDE>(&[FROST_CONTEXT, b"chal"], parts))
    }

    fn hash_to_scalar(domain: &str, parts: &[&[u8]]) -> Fr {
        let mut message = Vec::new();
        for part in parts {
            message.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            message.extend_from_slice(part);
        }
        Fr::from_be_bytes_mod_order(&expand_message::<WIDE>(&[domain.as_bytes()], &[&message]))
    }

    fn secret_scalar_ok(scalar: &Fr) -> bool {
        !scalar.is_zero()
    }

    fn agree(k: &Fr, q: &Element<Self>) -> Result<AgreedSecret, Error> {
        if k.is_zero() {
            return Err(Error::InvalidScalar);
        }
        secret_of(&(*q.point() * k).into_affine())
    }

    fn agree_many(k: &Fr, qs: &[G1Projective]) -> Vec<Result<AgreedSecret, Error>> {
        if k.is_zero() {
            return qs.iter().map(|_| Err(Error::InvalidScalar)).collect();
        }
        in_chunks(qs, BATCH, |chunk| {
            let products = Zeroizing::new(chunk.iter().map(|q| *q * k).collect::<Vec<_>>());
            let affine = Zeroizing::new(G1Projective::normalize_batch(&products));
            affine.iter().map(secret_of).collect()
        })
    }
}

fn secret_of(point: &G1Affine) -> Result<AgreedSecret, Error> {
    match point.is_zero() {
        true => Err(Error::IdentityPoint),
        false => Ok(AgreedSecret::new(&Zeroizing::new(compressed(point)))),
    }
}

fn compressed(point: &G1Affine) -> [u8; 48] {
    let mut bytes = [0; 48];
    // Writing 48 bytes into 48 cannot fail; should it, zeros are no point's encoding, and every decoder
    // refuses them.
    if point.serialize_compressed(&mut bytes[..]).is_err() {
        bytes = [0; 48];
    }
    bytes
}
