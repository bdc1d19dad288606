//! ML-KEM by the crate `ml-kem`, for hosts: all that this crate needs of it.

use alloc::vec::Vec;

use ml_kem::kem::Decapsulate as _;
use ml_kem::{
    B32, Ciphertext, EncapsulateDeterministic as _, Encoded, EncodedSizeUser as _, KemCore, MlKem768,
    MlKem1024, SharedKey,
};
use quiver_crypto::{Secret, erase};

use crate::{KemSet, MESSAGE_LEN, SEED_LEN, SHARED_LEN};

/// The encapsulation key of d ‖ z.
pub(crate) fn encapsulation_key(set: KemSet, seed: &Secret<SEED_LEN>) -> Vec<u8> {
    match set {
        KemSet::MlKem768 => expand::<MlKem768>(seed).1.as_bytes().to_vec(),
        KemSet::MlKem1024 => expand::<MlKem1024>(seed).1.as_bytes().to_vec(),
    }
}

/// Ciphertext and shared secret of m. `None` if the key has another length than the set says, or a number
/// that is not below the modulus.
pub(crate) fn encapsulate(
    set: KemSet,
    key: &[u8],
    message: &Secret<MESSAGE_LEN>,
) -> Option<(Vec<u8>, Secret<SHARED_LEN>)> {
    match set {
        KemSet::MlKem768 => encapsulate_by::<MlKem768>(key, message),
        KemSet::MlKem1024 => encapsulate_by::<MlKem1024>(key, message),
    }
}

/// Shared secret of a ciphertext. `None` if it has another length than the set says.
pub(crate) fn decapsulate(
    set: KemSet,
    seed: &Secret<SEED_LEN>,
    ciphertext: &[u8],
) -> Option<Secret<SHARED_LEN>> {
    match set {
        KemSet::MlKem768 => decapsulate_by::<MlKem768>(seed, ciphertext),
        KemSet::MlKem1024 => decapsulate_by::<MlKem1024>(seed, ciphertext),
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
    key: &[u8],
    message: &Secret<MESSAGE_LEN>,
) -> Option<(Vec<u8>, Secret<SHARED_LEN>)> {
    let encoded = Encoded::<K::EncapsulationKey>::try_from(key).ok()?;
    let public = K::EncapsulationKey::from_bytes(&encoded);
    // FIPS 203, 7.2: the modulus check. Reading reduces, so what was not reduced is written otherwise.
    if public.as_bytes() != encoded {
        return None;
    }
    let mut m = B32::from(*message.expose());
    let made = public.encapsulate_deterministic(&m);
    erase(&mut m);
    // There is no way to fail.
    let (ciphertext, shared) = made.ok()?;
    Some((ciphertext.to_vec(), taken::<K>(shared)?))
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
