//! Key pairs, encapsulation and decapsulation: the seam over an implementation.

use alloc::vec::Vec;

use quiver_crypto::{Secret, erasing_stack};

use crate::library as implementation;
use crate::{KemSet, MESSAGE_LEN, SEED_LEN, SHARED_LEN};

/// Fault of an encapsulation key or a ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KemError {
    /// It has not the length of its parameter set.
    #[error("not as long as a key or ciphertext of {0} is")]
    WrongLength(KemSet),
    /// A number of the encapsulation key is not below the modulus.
    #[error("not an encapsulation key of {0}")]
    WrongKey(KemSet),
}

/// Secret half of a key pair: the 64 bytes that it is made of, erased on drop.
#[derive(Debug)]
pub struct DecapsulationKey {
    set: KemSet,
    seed: Secret<SEED_LEN>,
}

impl DecapsulationKey {
    /// Makes a key pair of 64 random bytes. Gives the encapsulation key too, of
    /// [`key_len`](KemSet::key_len) bytes.
    #[must_use]
    pub fn generate(set: KemSet, seed: Secret<SEED_LEN>) -> (Self, Vec<u8>) {
        let public = erasing_stack(|| implementation::encapsulation_key(set, &seed));
        (Self { set, seed }, public)
    }

    /// The parameter set.
    #[must_use]
    pub const fn set(&self) -> KemSet {
        self.set
    }

    /// The shared secret of a ciphertext. One that was made for another key, or altered, gives a secret that
    /// nobody else has (implicit rejection).
    ///
    /// # Errors
    /// [`KemError::WrongLength`].
    pub fn decapsulate(&self, ciphertext: &[u8]) -> Result<Secret<SHARED_LEN>, KemError> {
        if ciphertext.len() != self.set.ciphertext_len() {
            return Err(KemError::WrongLength(self.set));
        }
        let shared = erasing_stack(|| implementation::decapsulate(self.set, &self.seed, ciphertext));
        shared.ok_or(KemError::WrongLength(self.set))
    }
}

/// Encapsulates to a received key with 32 random bytes: the ciphertext, of
/// [`ciphertext_len`](KemSet::ciphertext_len) bytes, and the shared secret.
///
/// # Errors
/// [`KemError::WrongLength`], [`KemError::WrongKey`].
pub fn encapsulate(
    set: KemSet,
    key: &[u8],
    message: &Secret<MESSAGE_LEN>,
) -> Result<(Vec<u8>, Secret<SHARED_LEN>), KemError> {
    if key.len() != set.key_len() {
        return Err(KemError::WrongLength(set));
    }
    let made = erasing_stack(|| implementation::encapsulate(set, key, message));
    made.ok_or(KemError::WrongKey(set))
}
