//! The public part of keys and ciphertexts: a policy or a set of attributes.

use alloc::vec::Vec;
use core::fmt::{Debug, Display};

use quiver_policy::{AccessTree, Attribute, AttributeSet, Formula};

use crate::{AbeError, IS_SMALL};

/// Bytes that a policy's or a set's encoding may have within a key or a ciphertext.
pub const MAX_TERMS_LEN: usize = 1 << 20;

/// A policy or a set of attributes, canonically encoded and displayed as its source text.
pub trait Terms: Clone + Eq + Debug + Display + Send + Sync + 'static {
    /// The form with which a scheme computes: a formula over single attributes, or a list of them.
    type Lowered: Clone + Debug + Send + Sync;

    /// The canonical encoding.
    fn encode(&self) -> Vec<u8>;

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`AbeError::Terms`].
    fn decode(bytes: &[u8]) -> Result<Self, AbeError>;

    /// Comparisons and integers turned into single attributes.
    ///
    /// # Errors
    /// [`AbeError::NoAttributes`].
    fn lower(&self) -> Result<Self::Lowered, AbeError>;
}

/// The form with which a scheme computes.
pub type Lowered<T> = <T as Terms>::Lowered;

impl Terms for AccessTree {
    type Lowered = Formula;

    fn encode(&self) -> Vec<u8> {
        self.encode()
    }

    fn decode(bytes: &[u8]) -> Result<Self, AbeError> {
        Ok(Self::decode(bytes)?)
    }

    fn lower(&self) -> Result<Formula, AbeError> {
        Ok(self.formula())
    }
}

/// The attributes of a set, singly: an integer counts as its bits. Components of keys and ciphertexts stand
/// in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atoms {
    set: AttributeSet,
    ascending: Vec<Attribute>,
}

#[expect(clippy::len_without_is_empty, reason = "there is at least one")]
impl Atoms {
    /// The set they are of.
    #[must_use]
    pub const fn set(&self) -> &AttributeSet {
        &self.set
    }

    /// The attributes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &Attribute> {
        self.ascending.iter()
    }

    /// Number of atoms, at least one.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ascending.len()
    }

    /// The place of an attribute among them.
    #[must_use]
    pub fn place(&self, attribute: &Attribute) -> Option<usize> {
        self.ascending.binary_search(attribute).ok()
    }
}

impl Terms for AttributeSet {
    type Lowered = Atoms;

    fn encode(&self) -> Vec<u8> {
        self.encode()
    }

    fn decode(bytes: &[u8]) -> Result<Self, AbeError> {
        Ok(Self::decode(bytes)?)
    }

    fn lower(&self) -> Result<Atoms, AbeError> {
        if self.is_empty() {
            return Err(AbeError::NoAttributes);
        }
        let ascending = ascending(self.atoms());
        Ok(Atoms { set: self.clone(), ascending })
    }
}

/// Sorts. A board has few attributes, and no flash for a fast sort.
fn ascending(atoms: impl Iterator<Item = Attribute>) -> Vec<Attribute> {
    if IS_SMALL {
        let mut ascending = Vec::new();
        for atom in atoms {
            ascending.insert(ascending.partition_point(|before| *before < atom), atom);
        }
        return ascending;
    }
    let mut ascending: Vec<Attribute> = atoms.collect();
    ascending.sort_unstable();
    ascending
}
