//! The schemes of `quiver-abe` at work for an authority: which there are, what they grant, and the choice
//! among them at run time. Their delivery is the kernel's, to which statements, grants and keys are bytes
//! ([`quiver_delivery::attributes`]).
#![doc = concat!(
    "\nWithout sockets, on the deterministic testbed:\n\n```\n",
    include_str!("../examples/attribute_key.rs"),
    "```"
)]
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::FromStr;

use quiver_abe::{
    AbeError, FabeoCp, FabeoKp, Gpsw06, PublicEncoding, Scheme, SecretEncoding, Terms, Universe,
};
use quiver_crypto::Zeroizing;
use quiver_delivery::attributes::{Granted, KeyMaker, MakeError};
use quiver_policy::{AccessTree, AttributeSet, PolicyError, Schema};
use rand_core::CryptoRngCore;

/// A scheme that an authority can run. Its name is the scheme's ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, derive_more::Display)]
#[display("{}", self.id())]
#[non_exhaustive]
pub enum SchemeKind {
    /// Keys for attributes, messages for policies; any attribute.
    #[default]
    FabeoCp,
    /// Keys for policies, messages for attributes; any attribute.
    FabeoKp,
    /// Keys for policies, messages for attributes; a closed list of attributes. The reference.
    Gpsw06,
}

/// Name of a scheme that no authority can run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownScheme {
    /// One that earlier builds could have.
    #[error(
        "the scheme {0} is broken, two of its keys make others, and services do not have it: set up an authority of another \
         scheme (`kgc abe setup`)"
    )]
    Broken(String),
    /// Another.
    #[error("this program does not know the scheme {0}")]
    Unknown(String),
}

/// YCT14, which `quiver-yct14` has for measurements.
const BROKEN: &str = "insecure-yct14";

/// Runs `$body` with `$K` standing for the chosen scheme: the only place where the choice at run time becomes
/// a type.
macro_rules! with_scheme {
    ($choice:expr, $K:ident => $body:expr) => {
        match $choice {
            SchemeKind::FabeoCp => {
                type $K = FabeoCp;
                $body
            }
            SchemeKind::FabeoKp => {
                type $K = FabeoKp;
                $body
            }
            SchemeKind::Gpsw06 => {
                type $K = Gpsw06;
                $body
            }
        }
    };
}

/// Kind of a key's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granting {
    /// A policy: the key opens messages whose attributes satisfy it.
    Policy,
    /// Attributes: the key opens messages whose policy they satisfy.
    Attributes,
}

/// A new authority's public parameters and master key.
#[derive(Debug)]
pub struct Founded {
    /// The public parameters, encoded.
    pub parameters: Vec<u8>,
    /// The master key, encoded.
    pub master: Zeroizing<Vec<u8>>,
}

impl FromStr for SchemeKind {
    type Err = &'static str;

    fn from_str(id: &str) -> Result<Self, Self::Err> {
        Self::from_id(id).map_err(|_| "`fabeo22-cp`, `fabeo22-kp` or `gpsw06`")
    }
}

impl SchemeKind {
    /// All there are.
    pub const ALL: &[Self] = &[Self::FabeoCp, Self::FabeoKp, Self::Gpsw06];

    /// The scheme's ID, as encodings and statements have it.
    #[must_use]
    pub fn id(self) -> &'static str {
        with_scheme!(self, K => K::ID)
    }

    /// The scheme with this ID, which an authority's statement names.
    ///
    /// # Errors
    /// [`UnknownScheme`]
    pub fn from_id(id: &str) -> Result<Self, UnknownScheme> {
        let known = Self::ALL.iter().copied().find(|scheme| scheme.id() == id);
        known.ok_or_else(|| match id {
            // Told apart from a name that nobody knows, because earlier builds had it and an operator may
            // have used it.
            BROKEN => UnknownScheme::Broken(id.into()),
            _ => UnknownScheme::Unknown(id.into()),
        })
    }

    /// Kind of its keys' terms.
    #[must_use]
    pub const fn granting(self) -> Granting {
        match self {
            Self::FabeoCp => Granting::Attributes,
            _ => Granting::Policy,
        }
    }

    /// Returns true if the list of attributes must be closed when an authority is set up.
    #[must_use]
    pub const fn needs_closed_list(self) -> bool {
        !matches!(self, Self::FabeoCp | Self::FabeoKp)
    }

    /// Parses a grant: a policy or a list of attributes, depending on the scheme.
    ///
    /// # Errors
    /// The text's mistake, and its position.
    pub fn read(self, text: &str, schema: &Schema) -> Result<Granted, PolicyError> {
        Ok(match self.granting() {
            Granting::Policy => granted(&AccessTree::parse_new(text, schema)?),
            Granting::Attributes => granted(&AttributeSet::parse(text, schema)?),
        })
    }

    /// Draws the keys of a new authority for the attributes that the schema declares.
    ///
    /// # Errors
    /// [`AbeError::ClosedUniverseNeeded`] if the scheme needs a closed list and the schema has none,
    /// [`AbeError::TooLong`].
    pub fn found(
        self,
        schema: &Schema,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Founded, AbeError> {
        // §4.2: the schema is part of the statement, so that a list, once closed, stays as it was signed.
        let universe = if self.needs_closed_list() {
            Universe::closed(schema.universe().ok_or(AbeError::ClosedUniverseNeeded)?)?
        } else {
            Universe::Open
        };
        with_scheme!(self, K => {
            let (parameters, master) = K::setup(&universe, rng)?;
            Ok(Founded { parameters: parameters.encode(), master: master.encode() })
        })
    }

    /// Puts an authority's scheme to work.
    ///
    /// # Errors
    /// The error of malformed bytes; [`AbeError::WrongAuthority`] if the two do not belong together.
    pub fn maker(self, parameters: &[u8], master: &[u8]) -> Result<Box<dyn KeyMaker>, AbeError> {
        with_scheme!(self, K => Ok(Box::new(Working::<K>::new(parameters, master)?)))
    }
}

fn granted<T: Terms>(terms: &T) -> Granted {
    Granted { encoded: terms.encode(), text: terms.to_string() }
}

/// A scheme with an authority's keys.
#[derive(Debug)]
struct Working<K: Scheme> {
    parameters: K::Parameters,
    master: K::MasterKey,
}

impl<K: Scheme> Working<K> {
    fn new(parameters: &[u8], master: &[u8]) -> Result<Self, AbeError> {
        let (parameters, master) = (K::Parameters::decode(parameters)?, K::MasterKey::decode(master)?);
        // Keys of another master key would open nothing under these parameters.
        if parameters.authority() != master.authority() {
            return Err(AbeError::WrongAuthority);
        }
        Ok(Self { parameters, master })
    }

    fn derive(&self, granted: &[u8], rng: &mut dyn CryptoRngCore) -> Result<Zeroizing<Vec<u8>>, AbeError> {
        // §4.2: the key's terms are the operator's grant, never the drone's query.
        let terms = K::KeyTerms::decode(granted)?;
        Ok(K::derive(&self.parameters, &self.master, &terms, rng)?.encode())
    }
}

impl<K: Scheme> KeyMaker for Working<K>
where
    K::Parameters: Send,
    K::MasterKey: Send,
{
    fn make(&mut self, granted: &[u8], rng: &mut dyn CryptoRngCore) -> Result<Zeroizing<Vec<u8>>, MakeError> {
        self.derive(granted, rng).map_err(|error| MakeError(error.to_string()))
    }
}
