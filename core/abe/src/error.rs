//! Errors of schemes, and of decoding keys, ciphertexts and parameters.

use alloc::string::String;

use quiver_crypto::canonical::Malformed;
use quiver_policy::PolicyError;
use thiserror::Error;

/// Error of attribute-based encryption. The variants state the fact; none carries a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AbeError {
    /// The attributes do not satisfy the policy, whichever of the two is the key's.
    #[error("the attributes do not satisfy the policy")]
    NotSatisfied,
    /// A master key, a key or a ciphertext belongs to another authority than the one it is used with.
    #[error("made under another authority")]
    WrongAuthority,
    /// Bytes were written by another scheme.
    #[error("made for another scheme")]
    WrongScheme,
    /// Bytes are of this scheme but not of the kind that is expected.
    #[error("not {expected}")]
    WrongKind {
        /// The expected value, with its article.
        expected: &'static str,
    },
    /// Bytes are of a version of the encoding that this build does not know.
    #[error("version {0} of the encoding is not known")]
    UnknownVersion(u8),
    /// The scheme fixes its attributes when it is set up, and this one was not among them.
    #[error("the attribute {attribute} is not in the authority's universe")]
    OutsideUniverse {
        /// The attribute as policies write it.
        attribute: String,
    },
    /// The scheme needs a list of attributes when it is set up.
    #[error("the scheme needs a closed universe of attributes")]
    ClosedUniverseNeeded,
    /// The scheme takes any attribute and no list of them.
    #[error("the scheme has an open universe of attributes and takes no list")]
    OpenUniverseNeeded,
    /// A set or a universe has no attribute.
    #[error("no attributes")]
    NoAttributes,
    /// A policy or a set of attributes was refused by its own crate.
    #[error("malformed policy or attributes: {0}")]
    Terms(#[from] PolicyError),
    /// Bytes are not the canonical encoding of an element of the group, the identity not being taken.
    #[error("not the canonical encoding of {0}")]
    InvalidElement(&'static str),
    /// Bytes are not the canonical encoding of what was expected.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// A list or a byte string exceeds its bound.
    #[error("{what} exceeds {limit}")]
    TooLong {
        /// Name of the value that is too long.
        what: &'static str,
        /// Bytes or items it may have.
        limit: usize,
    },
}

impl From<Malformed> for AbeError {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}
