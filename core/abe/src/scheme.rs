//! The interface of a scheme: setup, key derivation, encapsulation and decapsulation, and its types.

use core::fmt::Debug;

use alloc::vec::Vec;
use quiver_crypto::{Secret, Zeroizing};
use rand_core::CryptoRngCore;

use crate::{AbeError, AuthorityFingerprint, Terms, Universe};

/// An attribute-based key encapsulation.
///
/// A scheme. In a key-policy scheme [`KeyTerms`](Self::KeyTerms) is an access tree and
/// [`CiphertextTerms`](Self::CiphertextTerms) a set of attributes; in a ciphertext-policy scheme it is the
/// other way round. The encapsulations are secure against chosen plaintexts only: a caller that opens
/// ciphertexts from others re-encapsulates and compares, as envelopes do.
pub trait Scheme: Sized + Copy + Debug + Send + Sync + 'static {
    /// The scheme's name, which domains and encodings contain.
    const ID: &'static str;

    /// Public terms of a key.
    type KeyTerms: Terms;
    /// Public terms of a ciphertext.
    type CiphertextTerms: Terms;
    /// Public parameters of an authority.
    type Parameters: PublicEncoding + Clone;
    /// Master key of an authority.
    type MasterKey: SecretEncoding;
    /// Key of a holder.
    type Key: SecretEncoding + HasTerms<Terms = Self::KeyTerms>;
    /// An encapsulated secret.
    type Ciphertext: PublicEncoding + Clone + HasTerms<Terms = Self::CiphertextTerms>;

    /// Founds an authority over `universe`.
    ///
    /// # Errors
    /// [`AbeError::ClosedUniverseNeeded`] or [`AbeError::OpenUniverseNeeded`] if it is not of the kind that
    /// the scheme takes.
    fn setup(
        universe: &Universe,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Self::Parameters, Self::MasterKey), AbeError>;

    /// Spends memory so that what follows with these parameters is faster: fixed-base tables, and whatever
    /// the scheme computes per attribute for those in `expected`, of which it takes no more than it has room
    /// for. Worth it from the second use on; changes no result and no encoding.
    fn prepare(parameters: &mut Self::Parameters, expected: &Universe);

    /// Derives a key for `terms`.
    ///
    /// # Errors
    /// [`AbeError::WrongAuthority`] if parameters and master key are not of one setup;
    /// [`AbeError::NoAttributes`] and [`AbeError::OutsideUniverse`] for terms that the authority has no keys
    /// for.
    fn derive(
        parameters: &Self::Parameters,
        master: &Self::MasterKey,
        terms: &Self::KeyTerms,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Self::Key, AbeError>;

    /// Encapsulates a fresh secret for the keys that `terms` admit. Takes all randomness from `rng`: the same
    /// generator gives the same bytes.
    ///
    /// # Errors
    /// [`AbeError::NoAttributes`] and [`AbeError::OutsideUniverse`].
    fn encapsulate(
        parameters: &Self::Parameters,
        terms: &Self::CiphertextTerms,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Self::Ciphertext, Secret<32>), AbeError>;

    /// The secret in `ciphertext`.
    ///
    /// A ciphertext that was not made by [`encapsulate`](Self::encapsulate) gives some other secret, not an
    /// error.
    ///
    /// # Errors
    /// [`AbeError::WrongAuthority`] if the three are not of one authority; [`AbeError::NotSatisfied`].
    fn decapsulate(
        parameters: &Self::Parameters,
        key: &Self::Key,
        ciphertext: &Self::Ciphertext,
    ) -> Result<Secret<32>, AbeError>;

    /// Returns true if a key for `key` opens a ciphertext for `ciphertext`, without any cryptography.
    fn admits(key: &Self::KeyTerms, ciphertext: &Self::CiphertextTerms) -> bool;
}

/// A value that anyone may see. Its encoding is canonical: it starts with version, scheme and kind, points
/// are compressed and checked for curve and subgroup, the identity is refused, and exactly one byte string is
/// taken.
pub trait PublicEncoding: Sized + Debug {
    /// The canonical encoding.
    fn encode(&self) -> Vec<u8>;

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`AbeError::WrongScheme`], [`AbeError::WrongKind`] or [`AbeError::UnknownVersion`] for other bytes;
    /// the other variants for mistakes within.
    fn decode(bytes: &[u8]) -> Result<Self, AbeError>;

    /// Authority of the keys or parameters.
    fn authority(&self) -> &AuthorityFingerprint;
}

/// A value that its holder keeps: erased when dropped, never printed. Encoded as [`PublicEncoding`] values
/// are.
pub trait SecretEncoding: Sized + Debug {
    /// The canonical encoding, a secret.
    fn encode(&self) -> Zeroizing<Vec<u8>>;

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// As [`PublicEncoding::decode`].
    fn decode(bytes: &[u8]) -> Result<Self, AbeError>;

    /// Authority of the key.
    fn authority(&self) -> &AuthorityFingerprint;
}

/// A value with public terms.
pub trait HasTerms {
    /// A policy or attributes.
    type Terms: Terms;

    /// Terms of the encoding.
    fn terms(&self) -> &Self::Terms;
}
