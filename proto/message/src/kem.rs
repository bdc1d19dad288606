//! The exchange for the second factor of pairwise secrets, between an edge that joins and a leader.

use alloc::vec::Vec;

use quiver_ainq::{KemTag, KemTerm};
use quiver_kem::KemSet;

use crate::enrolment::Nonce;
use crate::{MessageError, field, wire};

/// An edge's part of the second factor in a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KemOffer {
    /// An encapsulation key, for a new κ.
    Key {
        /// The parameter set.
        set: KemSet,
        /// As long as the set says.
        key: Vec<u8>,
    },
    /// An encapsulation key of a member, for a new κ with a leader that it may follow one day. The request asks for no
    /// membership.
    Ahead {
        /// The parameter set.
        set: KemSet,
        /// As long as the set says.
        key: Vec<u8>,
    },
    /// The name of κ that both ends have.
    Held {
        /// Set and count of κ.
        term: KemTerm,
        /// Its tag.
        tag: KemTag,
    },
}

/// The leader's ciphertext for the encapsulation key of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinCiphertext {
    /// n_e of the request.
    pub nonce: Nonce,
    /// Set and count that κ begins with.
    pub term: KemTerm,
    /// As long as the set says.
    pub ciphertext: Vec<u8>,
}

impl KemOffer {
    /// The parameter set.
    #[must_use]
    pub const fn set(&self) -> KemSet {
        match self {
            Self::Key { set, .. } | Self::Ahead { set, .. } => *set,
            Self::Held { term, .. } => term.set(),
        }
    }

    /// Reads an offer.
    ///
    /// # Errors
    /// If no set is named, or the fields are not those of one offer.
    pub fn from_wire(wire: wire::KemOffer) -> Result<Self, MessageError> {
        let set = field::present("kem.set", set_from_wire("kem.set", wire.set)?)?;
        if wire.tag.is_empty() {
            // One encoding for each offer.
            return match wire.g == 0 && wire.key.len() == set.key_len() {
                true if wire.ahead => Ok(Self::Ahead { set, key: wire.key }),
                true => Ok(Self::Key { set, key: wire.key }),
                false => Err(MessageError::Invalid("kem")),
            };
        }
        if wire.ahead || !wire.key.is_empty() {
            return Err(MessageError::Invalid("kem"));
        }
        Ok(Self::Held { term: term("kem.g", set, wire.g)?, tag: field::array("kem.tag", &wire.tag)? })
    }

    /// Writes the offer.
    #[must_use]
    pub fn to_wire(&self) -> wire::KemOffer {
        let set = set_to_wire(Some(self.set()));
        match self {
            Self::Key { key, .. } => wire::KemOffer { set, key: key.clone(), ..wire::KemOffer::default() },
            Self::Ahead { key, .. } => {
                wire::KemOffer { set, key: key.clone(), ahead: true, ..wire::KemOffer::default() }
            }
            Self::Held { term, tag } => {
                wire::KemOffer { set, g: term.g(), tag: tag.to_vec(), ..wire::KemOffer::default() }
            }
        }
    }
}

impl JoinCiphertext {
    pub(crate) fn from_wire(wire: wire::JoinCiphertext) -> Result<Self, MessageError> {
        let term = term_from_wire(field::present("term", wire.term.as_ref())?)?;
        if wire.ciphertext.len() != term.set().ciphertext_len() {
            return Err(MessageError::Invalid("ciphertext"));
        }
        Ok(Self { nonce: field::array("nonce", &wire.nonce)?, term, ciphertext: wire.ciphertext })
    }

    pub(crate) fn to_wire(&self) -> wire::JoinCiphertext {
        wire::JoinCiphertext {
            nonce: self.nonce.to_vec(),
            term: Some(term_to_wire(self.term)),
            ciphertext: self.ciphertext.clone(),
        }
    }
}

/// A parameter set, if there is one.
///
/// # Errors
/// If the number is none's.
pub fn set_from_wire(field: &'static str, number: i32) -> Result<Option<KemSet>, MessageError> {
    match wire::KemSet::try_from(number) {
        Ok(wire::KemSet::Unspecified) => Ok(None),
        Ok(wire::KemSet::MlKem768) => Ok(Some(KemSet::MlKem768)),
        Ok(wire::KemSet::MlKem1024) => Ok(Some(KemSet::MlKem1024)),
        Err(_) => Err(MessageError::Invalid(field)),
    }
}

/// The number of a parameter set, or that of none.
#[must_use]
pub const fn set_to_wire(set: Option<KemSet>) -> i32 {
    match set {
        None => wire::KemSet::Unspecified as i32,
        Some(KemSet::MlKem768) => wire::KemSet::MlKem768 as i32,
        Some(KemSet::MlKem1024) => wire::KemSet::MlKem1024 as i32,
    }
}

/// The parameter set and count of a term.
///
/// # Errors
/// If no set is named, or the count is none.
pub fn term_from_wire(wire: &wire::KemTerm) -> Result<KemTerm, MessageError> {
    let set = field::present("kem.set", set_from_wire("kem.set", wire.set)?)?;
    term("kem.g", set, wire.g)
}

/// Writes the parameter set and count of a term.
#[must_use]
pub const fn term_to_wire(term: KemTerm) -> wire::KemTerm {
    wire::KemTerm { set: set_to_wire(Some(term.set())), g: term.g() }
}

fn term(field: &'static str, set: KemSet, g: u64) -> Result<KemTerm, MessageError> {
    KemTerm::new(set, g).map_err(|error| MessageError::Field { field, error })
}
