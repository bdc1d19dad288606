//! The trait that envelopes require of a scheme.

use alloc::vec::Vec;

use quiver_crypto::Secret;
use rand_core::CryptoRngCore;

use crate::AbeError;

/// An attribute-based KEM, as an envelope sees it: ciphertexts as bytes, and all randomness given.
pub trait Kem {
    /// The authority's public parameters.
    type Parameters;
    /// A key with certain attributes, or for certain attributes.
    type Key;
    /// Target of a key's encapsulation: a policy or attributes.
    type Target: Clone;
    /// An encapsulated key.
    type Ciphertext;

    /// Name of the scheme, at most 32 bytes.
    fn scheme(parameters: &Self::Parameters) -> &'static str;

    /// A fresh shared secret, encapsulated. The same coins make the same bytes.
    ///
    /// # Errors
    /// An error of the scheme.
    fn encapsulate(
        parameters: &Self::Parameters,
        target: &Self::Target,
        coins: &mut dyn CryptoRngCore,
    ) -> Result<(Vec<u8>, Secret<32>), AbeError>;

    /// Reads a ciphertext.
    ///
    /// # Errors
    /// If it is malformed or of another scheme.
    fn decode(parameters: &Self::Parameters, bytes: &[u8]) -> Result<Self::Ciphertext, AbeError>;

    /// The target of a ciphertext.
    fn target(ciphertext: &Self::Ciphertext) -> &Self::Target;

    /// The shared secret, if the key fits. Whether the ciphertext is what an honest sender would have made,
    /// the envelope finds out.
    ///
    /// # Errors
    /// [`AbeError::NotSatisfied`], or that the three are not of one authority.
    fn decapsulate(
        parameters: &Self::Parameters,
        key: &Self::Key,
        ciphertext: &Self::Ciphertext,
    ) -> Result<Secret<32>, AbeError>;

    /// The canonical encoding of policy or attributes.
    fn encode_target(target: &Self::Target) -> Vec<u8>;
}
