//! FROST over G1 of BLS12-381, for the master key of identity-based encryption and for AinQ's second suite.
//!
//! RFC 9591 has no such ciphersuite. This one follows that over P-256 (section 6.4): scalars are hashed with
//! `hash_to_field` of RFC 9380 over SHA-256; digests are 32 bytes of its `expand_message_xmd`. H2 is that of
//! [`quiver_ainq::Bls12381G1`], and so are the encodings: points are compressed, 48 bytes; scalars
//! little-endian, 32 bytes. Points are multiplied by `quiver-pairing`, in constant time where blst does it.

use frost_core::{Ciphersuite, Field, FieldError, Group as FrostGroup, GroupError};
use quiver_ainq::{Bls12381G1, Suite};
use quiver_crypto::expand_message;
use quiver_pairing::{G1, Group, PairingError, Scalar, scalar_random};
use rand_core::{CryptoRng, RngCore};

use super::{QuorumSuite, SCALAR_LEN};

/// The context string, after the pattern of RFC 9591.
const CONTEXT: &str = "QUIVER-FROST-BLS12381G1-SHA256-v1";

/// Bytes that are reduced to a scalar: 255 bits and 128 more (RFC 9380, section 5.1).
const WIDE: usize = 48;

/// Integers modulo the order of G1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarField;

/// G1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct G1Group;

/// FROST(BLS12-381 G1, SHA-256).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bls12381G1Sha256;

impl QuorumSuite for Bls12381G1 {
    type Frost = Bls12381G1Sha256;
}

impl Field for ScalarField {
    type Scalar = Scalar;
    type Serialization = [u8; SCALAR_LEN];

    fn zero() -> Scalar {
        Scalar::from(0_u64)
    }

    fn one() -> Scalar {
        Scalar::from(1_u64)
    }

    fn invert(scalar: &Scalar) -> Result<Scalar, FieldError> {
        if *scalar == Self::zero() {
            return Err(FieldError::InvalidZeroScalar);
        }
        Ok(Self::one() / scalar)
    }

    fn random<R: RngCore + CryptoRng>(rng: &mut R) -> Scalar {
        scalar_random(rng)
    }

    fn serialize(scalar: &Scalar) -> [u8; SCALAR_LEN] {
        *Bls12381G1::scalar_encode(scalar)
    }

    fn little_endian_serialize(scalar: &Scalar) -> [u8; SCALAR_LEN] {
        Self::serialize(scalar)
    }

    fn deserialize(bytes: &[u8; SCALAR_LEN]) -> Result<Scalar, FieldError> {
        Bls12381G1::scalar_decode(bytes).ok_or(FieldError::MalformedScalar)
    }
}

impl FrostGroup for G1Group {
    type Field = ScalarField;
    type Element = G1;
    type Serialization = [u8; 48];

    /// The subgroup is all there is: decoding checks that a point is in it.
    fn cofactor() -> Scalar {
        ScalarField::one()
    }

    fn identity() -> G1 {
        G1::identity()
    }

    fn generator() -> G1 {
        G1::generator()
    }

    fn serialize(element: &G1) -> Result<[u8; 48], GroupError> {
        if element.is_identity() {
            return Err(GroupError::InvalidIdentityElement);
        }
        Ok(element.encode())
    }

    fn deserialize(bytes: &[u8; 48]) -> Result<G1, GroupError> {
        G1::decode(bytes).map_err(|error| match error {
            PairingError::Identity => GroupError::InvalidIdentityElement,
            PairingError::WrongSubgroup => GroupError::InvalidNonPrimeOrderElement,
            _ => GroupError::MalformedElement,
        })
    }
}

fn to_scalar(tag: &str, message: &[u8]) -> Scalar {
    // RFC 9380, section 5.2: hash_to_field.
    let mut bytes = expand_message::<WIDE>(&[CONTEXT.as_bytes(), tag.as_bytes()], &[message]);
    // Big-endian bytes, reversed into the low end of a little-endian integer that is reduced.
    bytes.reverse();
    let mut wide = [0; 64];
    wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    Bls12381G1::scalar_from_wide(&wide)
}

fn to_bytes(tag: &str, message: &[u8]) -> [u8; 32] {
    expand_message(&[CONTEXT.as_bytes(), tag.as_bytes()], &[message])
}

impl Ciphersuite for Bls12381G1Sha256 {
    const ID: &'static str = CONTEXT;
    type Group = G1Group;
    type HashOutput = [u8; 32];
    type SignatureSerialization = [u8; 80];

    fn H1(message: &[u8]) -> Scalar {
        // RFC 9591, section 6.4: the tags of H1 to H5.
        to_scalar("rho", message)
    }

    fn H2(message: &[u8]) -> Scalar {
        Bls12381G1::challenge(&[message])
    }

    fn H3(message: &[u8]) -> Scalar {
        to_scalar("nonce", message)
    }

    fn H4(message: &[u8]) -> [u8; 32] {
        to_bytes("msg", message)
    }

    fn H5(message: &[u8]) -> [u8; 32] {
        to_bytes("com", message)
    }

    fn HDKG(message: &[u8]) -> Option<Scalar> {
        Some(to_scalar("dkg", message))
    }
}
