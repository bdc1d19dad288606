//! A FROST ciphersuite over any suite of AinQ, for simulations.
//!
//! The hashes follow the pattern of RFC 9591, section 6: each starts with the suite's ID and its own tag. H2
//! is [`Suite::challenge`].

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::{Add, Mul, Sub};

use frost_core::{Ciphersuite, Field, FieldError, Group, GroupError};
use quiver_ainq::Suite;
use quiver_crypto::{Digest, Hasher, ct_eq};
use rand_core::{CryptoRng, RngCore};

use super::SCALAR_LEN;

/// The ciphersuite over `S`, its field and its group.
#[derive(derive_more::Debug)]
#[debug("Over({})", S::ID)]
#[debug(bound(S: Suite))]
pub struct Over<S>(PhantomData<S>);

/// A scalar of `S`. Compared in constant time.
pub struct Scalar<S: Suite>(S::Scalar);

/// A point of `S`. Identity and generator are variants, because no [`Suite`] stores them.
pub enum SuitePoint<S: Suite> {
    /// The neutral element.
    Identity,
    /// The generator.
    Generator,
    /// Any element.
    Other(S::Point),
}

impl<S: Suite> SuitePoint<S> {
    fn point(self) -> S::Point {
        match self {
            Self::Identity => S::mul_base(&S::scalar_from_u128(0)),
            Self::Generator => S::mul_base(&S::scalar_from_u128(1)),
            Self::Other(point) => point,
        }
    }

    fn is_identity(self) -> bool {
        match self {
            Self::Identity => true,
            Self::Generator => false,
            Self::Other(point) => S::is_identity(&point),
        }
    }
}

/// Derived implementations would ask for the same of `S`.
macro_rules! copy {
    ($type:ident) => {
        impl<S: Suite> Clone for $type<S> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<S: Suite> Copy for $type<S> {}

        impl<S: Suite> Eq for $type<S> {}
    };
}

copy!(Over);
copy!(Scalar);
copy!(SuitePoint);

impl<S: Suite> PartialEq for Over<S> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<S: Suite> PartialEq for Scalar<S> {
    fn eq(&self, other: &Self) -> bool {
        ct_eq(&*S::scalar_encode(&self.0), &*S::scalar_encode(&other.0))
    }
}

impl<S: Suite> Add for Scalar<S> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl<S: Suite> Sub for Scalar<S> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl<S: Suite> Mul for Scalar<S> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
}

impl<S: Suite> PartialEq for SuitePoint<S> {
    fn eq(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::Identity, point) | (point, Self::Identity) => point.is_identity(),
            (a, b) => a.point() == b.point(),
        }
    }
}

impl<S: Suite> Add for SuitePoint<S> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        match (self, other) {
            (Self::Identity, point) | (point, Self::Identity) => point,
            (a, b) => Self::Other(a.point() + b.point()),
        }
    }
}

impl<S: Suite> Sub for SuitePoint<S> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        match other {
            Self::Identity => self,
            other => Self::Other(self.point() - other.point()),
        }
    }
}

impl<S: Suite> Mul<Scalar<S>> for SuitePoint<S> {
    type Output = Self;

    fn mul(self, scalar: Scalar<S>) -> Self {
        match self {
            Self::Identity => Self::Identity,
            Self::Generator => Self::Other(S::mul_base(&scalar.0)),
            Self::Other(point) => Self::Other(S::mul(&scalar.0, &point)),
        }
    }
}

impl<S: Suite> Field for Over<S> {
    type Scalar = Scalar<S>;
    type Serialization = [u8; SCALAR_LEN];

    fn zero() -> Scalar<S> {
        Scalar(S::scalar_from_u128(0))
    }

    fn one() -> Scalar<S> {
        Scalar(S::scalar_from_u128(1))
    }

    fn invert(scalar: &Scalar<S>) -> Result<Scalar<S>, FieldError> {
        if S::scalar_is_zero(&scalar.0) {
            return Err(FieldError::InvalidZeroScalar);
        }
        // Fermat: x^(q − 2) = 1/x. The canonical encoding of −2 spells the exponent, which is public.
        let exponent = S::scalar_encode(&-S::scalar_from_u128(2));
        let mut inverse = S::scalar_from_u128(1);
        for byte in exponent.iter().rev() {
            for bit in (0..8).rev() {
                inverse = inverse * inverse;
                if (byte >> bit) & 1 == 1 {
                    inverse = inverse * scalar.0;
                }
            }
        }
        Ok(Scalar(inverse))
    }

    fn random<R: RngCore + CryptoRng>(rng: &mut R) -> Scalar<S> {
        Scalar(S::scalar_random(rng))
    }

    fn serialize(scalar: &Scalar<S>) -> [u8; SCALAR_LEN] {
        *S::scalar_encode(&scalar.0)
    }

    fn little_endian_serialize(scalar: &Scalar<S>) -> [u8; SCALAR_LEN] {
        <Self as Field>::serialize(scalar)
    }

    fn deserialize(bytes: &[u8; SCALAR_LEN]) -> Result<Scalar<S>, FieldError> {
        S::scalar_decode(bytes).map(Scalar).ok_or(FieldError::MalformedScalar)
    }
}

impl<S: Suite> Group for Over<S> {
    type Field = Self;
    type Element = SuitePoint<S>;
    type Serialization = Vec<u8>;

    fn cofactor() -> Scalar<S> {
        Self::one()
    }

    fn identity() -> SuitePoint<S> {
        SuitePoint::Identity
    }

    fn generator() -> SuitePoint<S> {
        SuitePoint::Generator
    }

    fn serialize(element: &SuitePoint<S>) -> Result<Vec<u8>, GroupError> {
        if element.is_identity() {
            return Err(GroupError::InvalidIdentityElement);
        }
        Ok(S::encode(&element.point()).as_ref().to_vec())
    }

    fn deserialize(bytes: &Vec<u8>) -> Result<SuitePoint<S>, GroupError> {
        let point = S::decode(bytes).ok_or(GroupError::MalformedElement)?;
        if S::is_identity(&point) {
            return Err(GroupError::InvalidIdentityElement);
        }
        Ok(SuitePoint::Other(point))
    }
}

fn to_scalar<S: Suite>(tag: &str, message: &[u8]) -> Scalar<S> {
    Scalar(S::hash_to_scalar("quiver/1 frost", &[S::ID.as_bytes(), tag.as_bytes(), message]))
}

fn to_bytes<S: Suite>(tag: &str, message: &[u8]) -> Digest {
    Hasher::new("quiver/1 frost").lp(S::ID.as_bytes()).lp(tag.as_bytes()).lp(message).finish()
}

impl<S: Suite> Ciphersuite for Over<S> {
    const ID: &'static str = S::ID;
    type Group = Self;
    type HashOutput = Digest;
    type SignatureSerialization = Vec<u8>;

    fn H1(message: &[u8]) -> Scalar<S> {
        to_scalar("rho", message)
    }

    fn H2(message: &[u8]) -> Scalar<S> {
        Scalar(S::challenge(&[message]))
    }

    fn H3(message: &[u8]) -> Scalar<S> {
        to_scalar("nonce", message)
    }

    fn H4(message: &[u8]) -> Digest {
        to_bytes::<S>("msg", message)
    }

    fn H5(message: &[u8]) -> Digest {
        to_bytes::<S>("com", message)
    }

    fn HDKG(message: &[u8]) -> Option<Scalar<S>> {
        Some(to_scalar("dkg", message))
    }
}
