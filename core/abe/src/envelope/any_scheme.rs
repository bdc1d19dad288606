//! All schemes as one KEM, chosen at run time by name.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quiver_crypto::Secret;
use quiver_policy::{AccessTree, AttributeSet, PolicyError, Schema};
use rand_core::CryptoRngCore;

use super::Kem;
use crate::{
    AbeError, AuthorityFingerprint, Ciphertext, FabeoCp, FabeoKp, Gpsw06, HasTerms, Key, Parameters,
    PublicEncoding, Scheme, SecretEncoding, Terms,
};

/// Target of an envelope: a policy that a key's attributes must satisfy, or attributes that a key's policy
/// must accept.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
pub enum EnvelopeTarget {
    /// A policy, for ciphertext-policy schemes.
    Policy(AccessTree),
    /// Attributes, for key-policy schemes.
    Attributes(AttributeSet),
}

impl EnvelopeTarget {
    /// Reads a policy as source text.
    ///
    /// # Errors
    /// The error of the text, with its position.
    pub fn policy(text: &str, schema: &Schema) -> Result<Self, PolicyError> {
        AccessTree::parse_new(text, schema).map(Self::Policy)
    }

    /// Reads a list of attributes as source text.
    ///
    /// # Errors
    /// The error of the text, with its position.
    pub fn attributes(text: &str, schema: &Schema) -> Result<Self, PolicyError> {
        AttributeSet::parse(text, schema).map(Self::Attributes)
    }
}

/// Does the same with whichever scheme it is.
macro_rules! with_scheme {
    ($kind:ident, $value:expr, $inner:ident => $body:expr) => {
        match $value {
            $kind::FabeoCp($inner) => $body,
            $kind::FabeoKp($inner) => $body,
            $kind::Gpsw06($inner) => $body,
        }
    };
}

/// Makes one of whichever scheme is named.
macro_rules! by_name {
    ($scheme:expr, $make:expr) => {
        match $scheme {
            FabeoCp::ID => Ok(Self::FabeoCp($make)),
            FabeoKp::ID => Ok(Self::FabeoKp($make)),
            Gpsw06::ID => Ok(Self::Gpsw06($make)),
            _ => Err(AbeError::WrongScheme),
        }
    };
}

/// The public parameters of one authority, of whichever scheme.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each variant is the scheme of its name")]
#[non_exhaustive]
pub enum AnyParameters {
    FabeoCp(Parameters<FabeoCp>),
    FabeoKp(Parameters<FabeoKp>),
    Gpsw06(Parameters<Gpsw06>),
}

impl AnyParameters {
    /// Reads the parameters of the scheme with this name.
    ///
    /// # Errors
    /// [`AbeError::WrongScheme`] for a name that is not known, and as [`PublicEncoding::decode`].
    pub fn decode(scheme: &str, bytes: &[u8]) -> Result<Self, AbeError> {
        by_name!(scheme, PublicEncoding::decode(bytes)?)
    }

    /// The scheme's name.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        match self {
            Self::FabeoCp(_) => FabeoCp::ID,
            Self::FabeoKp(_) => FabeoKp::ID,
            Self::Gpsw06(_) => Gpsw06::ID,
        }
    }

    /// Returns true if it is sealed to policies rather than to attributes.
    #[must_use]
    pub const fn takes_policies(&self) -> bool {
        matches!(self, Self::FabeoCp(_))
    }

    /// The authority that issued them.
    #[must_use]
    pub fn authority(&self) -> &AuthorityFingerprint {
        with_scheme!(Self, self, parameters => parameters.authority())
    }
}

/// A key of whichever scheme.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a drone has few, and opening is slower than moving by far")]
#[allow(missing_docs, reason = "each variant is the scheme of its name")]
#[non_exhaustive]
pub enum AnyKey {
    FabeoCp(Key<FabeoCp>),
    FabeoKp(Key<FabeoKp>),
    Gpsw06(Key<Gpsw06>),
}

impl AnyKey {
    /// Reads a key of the scheme with this name.
    ///
    /// # Errors
    /// [`AbeError::WrongScheme`] for a name that is not known, and as [`SecretEncoding::decode`].
    pub fn decode(scheme: &str, bytes: &[u8]) -> Result<Self, AbeError> {
        by_name!(scheme, SecretEncoding::decode(bytes)?)
    }

    /// The authority that issued it.
    #[must_use]
    pub fn authority(&self) -> &AuthorityFingerprint {
        with_scheme!(Self, self, key => key.authority())
    }

    /// The attributes it has, or the policy.
    #[must_use]
    pub fn terms(&self) -> String {
        with_scheme!(Self, self, key => key.terms().to_string())
    }

    /// Returns true if the key opens envelopes to this policy, or to these attributes, given as
    /// [`Kem::encode_target`] encodes them.
    #[must_use]
    pub fn admits(&self, target: &[u8]) -> bool {
        with_scheme!(Self, self, key => admits(key, target))
    }
}

fn admits<M: crate::scheme_algebra::SchemeAlgebra>(key: &Key<M>, target: &[u8]) -> bool {
    M::CiphertextTerms::decode(target).is_ok_and(|target| <M as Scheme>::admits(key.terms(), &target))
}

/// An encapsulated key of whichever scheme.
#[derive(Debug)]
pub struct AnyCiphertext {
    target: EnvelopeTarget,
    sent: Encapsulated,
}

#[derive(Debug)]
enum Encapsulated {
    FabeoCp(Ciphertext<FabeoCp>),
    FabeoKp(Ciphertext<FabeoKp>),
    Gpsw06(Ciphertext<Gpsw06>),
}

/// All schemes of this crate as one [`Kem`].
#[derive(Clone, Copy, Debug)]
pub struct AnyScheme;

impl Kem for AnyScheme {
    type Parameters = AnyParameters;
    type Key = AnyKey;
    type Target = EnvelopeTarget;
    type Ciphertext = AnyCiphertext;

    fn scheme(parameters: &AnyParameters) -> &'static str {
        parameters.scheme()
    }

    fn encapsulate(
        parameters: &AnyParameters,
        target: &EnvelopeTarget,
        coins: &mut dyn CryptoRngCore,
    ) -> Result<(Vec<u8>, Secret<32>), AbeError> {
        match (parameters, target) {
            (AnyParameters::FabeoCp(own), EnvelopeTarget::Policy(tree)) => {
                encapsulate::<FabeoCp>(own, tree, coins)
            }
            (AnyParameters::FabeoCp(_), EnvelopeTarget::Attributes(_)) => {
                Err(AbeError::WrongKind { expected: "a policy" })
            }
            (_, EnvelopeTarget::Policy(_)) => Err(AbeError::WrongKind { expected: "a list of attributes" }),
            (AnyParameters::FabeoKp(own), EnvelopeTarget::Attributes(set)) => {
                encapsulate::<FabeoKp>(own, set, coins)
            }
            (AnyParameters::Gpsw06(own), EnvelopeTarget::Attributes(set)) => {
                encapsulate::<Gpsw06>(own, set, coins)
            }
        }
    }

    fn decode(parameters: &AnyParameters, bytes: &[u8]) -> Result<AnyCiphertext, AbeError> {
        Ok(match parameters {
            AnyParameters::FabeoCp(_) => {
                let sent = Ciphertext::<FabeoCp>::decode(bytes)?;
                AnyCiphertext {
                    target: EnvelopeTarget::Policy(sent.terms().clone()),
                    sent: Encapsulated::FabeoCp(sent),
                }
            }
            AnyParameters::FabeoKp(_) => of_attributes(bytes, Encapsulated::FabeoKp)?,
            AnyParameters::Gpsw06(_) => of_attributes(bytes, Encapsulated::Gpsw06)?,
        })
    }

    fn target(ciphertext: &AnyCiphertext) -> &EnvelopeTarget {
        &ciphertext.target
    }

    fn decapsulate(
        parameters: &AnyParameters,
        key: &AnyKey,
        ciphertext: &AnyCiphertext,
    ) -> Result<Secret<32>, AbeError> {
        match (parameters, key, &ciphertext.sent) {
            (AnyParameters::FabeoCp(own), AnyKey::FabeoCp(key), Encapsulated::FabeoCp(sent)) => {
                FabeoCp::decapsulate(own, key, sent)
            }
            (AnyParameters::FabeoKp(own), AnyKey::FabeoKp(key), Encapsulated::FabeoKp(sent)) => {
                FabeoKp::decapsulate(own, key, sent)
            }
            (AnyParameters::Gpsw06(own), AnyKey::Gpsw06(key), Encapsulated::Gpsw06(sent)) => {
                Gpsw06::decapsulate(own, key, sent)
            }
            _ => Err(AbeError::WrongScheme),
        }
    }

    fn encode_target(target: &EnvelopeTarget) -> Vec<u8> {
        match target {
            EnvelopeTarget::Policy(tree) => Terms::encode(tree),
            EnvelopeTarget::Attributes(set) => Terms::encode(set),
        }
    }
}

fn encapsulate<S: Scheme>(
    parameters: &S::Parameters,
    terms: &S::CiphertextTerms,
    coins: &mut dyn CryptoRngCore,
) -> Result<(Vec<u8>, Secret<32>), AbeError> {
    let (ciphertext, secret) = S::encapsulate(parameters, terms, coins)?;
    Ok((ciphertext.encode(), secret))
}

fn of_attributes<C: PublicEncoding + HasTerms<Terms = AttributeSet>>(
    bytes: &[u8],
    sent: impl FnOnce(C) -> Encapsulated,
) -> Result<AnyCiphertext, AbeError> {
    let ciphertext = C::decode(bytes)?;
    Ok(AnyCiphertext {
        target: EnvelopeTarget::Attributes(ciphertext.terms().clone()),
        sent: sent(ciphertext),
    })
}

/// The authority that a ciphertext names, without decoding it further. It is a claim, checked when it is
/// opened.
#[must_use]
pub fn named_authority(ciphertext: &[u8]) -> Option<[u8; AuthorityFingerprint::LEN]> {
    // Version, scheme, kind, then the authority: see `encoding`.
    ciphertext.get(3..)?.first_chunk().copied()
}
