//! Key generation, encapsulation and decapsulation, by the crate `ml-kem`: all that this crate needs of it.

use alloc::vec::Vec;

use ml_kem::kem::Decapsulate as _;
use ml_kem::{
    B32, Ciphertext, EncapsulateDeterministic as _, Encoded, EncodedSizeUser as _, KemCore, MlKem768,
    MlKem1024, SharedKey,
};
use quiver_crypto::{Secret, erase};

use crate::{KemSet, MESSAGE_LEN, SEED_LEN, SHARED_LEN};

/// What is wrong with an encapsulation key or a ciphertext.
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
        let public = match set {
            KemSet::MlKem768 => expand::<MlKem768>(&seed).1.as_bytes().to_vec(),
            KemSet::MlKem1024 => expand::<MlKem1024>(&seed).1.as_bytes().to_vec(),
        };
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
        match self.set {
            KemSet::MlKem768 => decapsulate_by::<MlKem768>(&self.seed, ciphertext),
            KemSet::MlKem1024 => decapsulate_by::<MlKem1024>(&self.seed, ciphertext),
        }
        .ok_or(KemError::WrongLength(self.set))
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
    match set {
        KemSet::MlKem768 => encapsulate_by::<MlKem768>(set, key, message),
        KemSet::MlKem1024 => encapsulate_by::<MlKem1024>(set, key, message),
    }
}

fn expand<K: KemCore>(seed: &Secret<SEED_LEN>) -> (K::DecapsulationKey, K::EncapsulationKey) {
    // FIPS 203, 7.1: d and z. The halves are 32 bytes each.
    let (d, z) = seed.expose().split_at(SEED_LEN / 2);
    let [mut d, mut z] = [d, z].map(|half| B32::from_fn(|at| half.get(at).copied().unwrap_or_default()));
    let pair = K::generate_deterministic(&d, &z);
    erase(&mut d);
    erase(&mut z);
    pair
}

fn encapsulate_by<K: KemCore>(
    set: KemSet,
    key: &[u8],
    message: &Secret<MESSAGE_LEN>,
) -> Result<(Vec<u8>, Secret<SHARED_LEN>), KemError> {
    let encoded = Encoded::<K::EncapsulationKey>::try_from(key).map_err(|_| KemError::WrongLength(set))?;
    let public = K::EncapsulationKey::from_bytes(&encoded);
    // FIPS 203, 7.2: the modulus check. Reading reduces, so what was not reduced is written otherwise.
    if public.as_bytes() != encoded {
        return Err(KemError::WrongKey(set));
    }
    let mut m = B32::from(*message.expose());
    let made = public.encapsulate_deterministic(&m);
    erase(&mut m);
    // There is no way to fail.
    let (ciphertext, shared) = made.map_err(|_| KemError::WrongKey(set))?;
    let secret = taken::<K>(shared).ok_or(KemError::WrongKey(set))?;
    Ok((ciphertext.to_vec(), secret))
}

fn decapsulate_by<K: KemCore>(seed: &Secret<SEED_LEN>, ciphertext: &[u8]) -> Option<Secret<SHARED_LEN>> {
    let ciphertext = Ciphertext::<K>::try_from(ciphertext).ok()?;
    let (secret, _) = expand::<K>(seed);
    taken::<K>(secret.decapsulate(&ciphertext).ok()?)
}

/// The shared secret; the array that it came in is erased.
fn taken<K: KemCore>(mut shared: SharedKey<K>) -> Option<Secret<SHARED_LEN>> {
    let secret = Secret::try_from(&*shared).ok();
    erase(&mut shared);
    secret
}
