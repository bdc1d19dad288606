//! The transform of Fujisaki and Okamoto: makes a KEM that resists eavesdroppers resist changed ciphertexts
//! (*Secure Integration of Asymmetric and Symmetric Encryption Schemes*, CRYPTO 1999; J. Cryptology 2013).
//!
//! ```text
//! σ       = 32 random bytes
//! coins   = ChaCha20 seeded with PRF(σ, "coins", lp(prelude) ‖ lp(policy or attributes))
//! (C, K)  = encapsulate(coins)
//! c2      = σ ⊕ PRF(K, "mask", H(C))
//! K_0     = PRF(σ, "session", H(header)), the header having scheme, sender, lifetime, C (with policy or attributes), c2
//! ```
//!
//! Opening computes K, σ, the coins and the ciphertext again, and compares all its bytes before anything is
//! released. So no ciphertext opens that an honest sender would not have made, and a relay that strips
//! attributes or exchanges the sender makes another header, whose coins give another ciphertext.
//!
//! The coins are not bound to the authority and its parameters, which they need not be: C carries the
//! authority's fingerprint, is made with its parameters, and is compared as a whole.

use quiver_crypto::canonical::Writer;
use quiver_crypto::{Hasher, Secret, ct_eq, prf};
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRngCore, SeedableRng};

use super::header::{EnvelopeHeader, MAX_CIPHERTEXT_LEN, Opening, Prelude};
use super::{EnvelopeError, Kem, SUITE};

/// Encapsulates a session's key K_0.
pub(super) fn encapsulate<K: Kem>(
    parameters: &K::Parameters,
    target: &K::Target,
    prelude: Prelude,
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<(Opening, Secret<32>), EnvelopeError> {
    // §E2: σ, and the coins that follow from it, the prelude and the target.
    let seed = Secret::<32>::random(rng);
    let mut coins = coins::<K>(&seed, &prelude, target);
    let (ciphertext, shared) = K::encapsulate(parameters, target, &mut coins)?;
    if ciphertext.len() > MAX_CIPHERTEXT_LEN {
        return Err(EnvelopeError::OutOfBounds("the encapsulated key's length"));
    }
    // §E2: c2 = σ ⊕ PRF(K, "mask", H(C)).
    let masked = seed.xor(&mask(&shared, &ciphertext));
    let opening = Opening { prelude, ciphertext, masked };
    // §E2: K_0 = PRF(σ, "session", H("quiver/1 envelope header", header)).
    let key = session_key(&seed, &opening);
    Ok((opening, key))
}

/// Opens it again.
pub(super) fn decapsulate<K: Kem>(
    parameters: &K::Parameters,
    key: &K::Key,
    opening: &Opening,
) -> Result<(K::Target, Secret<32>), EnvelopeError> {
    if opening.prelude.scheme != K::scheme(parameters) {
        return Err(EnvelopeError::WrongScheme(opening.prelude.scheme.clone()));
    }
    let ciphertext = K::decode(parameters, &opening.ciphertext)?;
    let target = K::target(&ciphertext).clone();
    let shared = K::decapsulate(parameters, key, &ciphertext)?;
    // §E2: σ = c2 ⊕ PRF(K, "mask", H(C)).
    let seed = mask(&shared, &opening.ciphertext).unmask(&opening.masked);
    // §E2: encapsulate again with σ's coins: any change of C, prelude or target gives another ciphertext.
    let mut coins = coins::<K>(&seed, &opening.prelude, &target);
    let (again, _) =
        K::encapsulate(parameters, &target, &mut coins).map_err(|_| EnvelopeError::DoesNotOpen)?;
    if !ct_eq(&again, &opening.ciphertext) {
        return Err(EnvelopeError::DoesNotOpen);
    }
    let key = session_key(&seed, opening);
    Ok((target, key))
}

fn coins<K: Kem>(seed: &Secret<32>, prelude: &Prelude, target: &K::Target) -> ChaCha20Rng {
    let input = Writer::new().lp(&prelude.encode()).lp(&K::encode_target(target)).finish();
    ChaCha20Rng::from_seed(*prf(seed, SUITE, "coins", &[&input]).expose())
}

fn mask(shared: &Secret<32>, ciphertext: &[u8]) -> Secret<32> {
    let digest = Hasher::new("quiver/1 envelope ciphertext").lp(ciphertext).finish();
    prf(shared, SUITE, "mask", &[&digest])
}

fn session_key(seed: &Secret<32>, opening: &Opening) -> Secret<32> {
    let header = EnvelopeHeader::Opening(opening.clone()).encode();
    prf(seed, SUITE, "session", &[&EnvelopeHeader::digest(&header)])
}
