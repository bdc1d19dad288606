//! Attribute-selective encryption: what a credential reads, and what it does not.

use quiver_abke::{
    Authority, Ciphertext, Credential, Error, Presentation, PublicKey, Randomness, UnverifiedCredential,
    UnverifiedPublicKey, Verifier,
};
use quiver_crypto::Secret;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

const ATTRIBUTES: [bool; 5] = [true, false, false, true, true];

fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

fn authority(seed: u8) -> (Authority, Verifier) {
    let authority = Authority::derive(&Secret::new([seed; 32]), 7, ATTRIBUTES.len()).unwrap();
    let verifier = Verifier::new(authority.key().clone());
    (authority, verifier)
}

fn credential(seed: u8) -> Credential {
    authority(1).0.certify(&ATTRIBUTES, &mut rng(seed)).unwrap()
}

fn received(key: &Presentation) -> UnverifiedPublicKey {
    UnverifiedPublicKey::decode(key.encoded(), ATTRIBUTES.len()).unwrap()
}

fn verified(key: &Presentation) -> PublicKey {
    authority(1).1.verify(received(key), &mut rng(9)).unwrap()
}

#[test]
fn credential_reads_the_half_that_its_attribute_selects() {
    let key = credential(2).unlink(&mut rng(3));
    let randomness = Randomness::derive(&Secret::new([5; 32]), &[6; 32], ATTRIBUTES.len());
    let plaintexts = randomness.plaintexts();
    let ciphertext = Ciphertext::encrypt(&verified(&key), &randomness, &plaintexts).unwrap();
    let received = Ciphertext::decode(&ciphertext.encode(), ATTRIBUTES.len()).unwrap();
    let read = received.decrypt(&key).unwrap();
    for ((attribute, pair), read) in ATTRIBUTES.iter().zip(plaintexts.iter()).zip(read.iter()) {
        assert!(pair[usize::from(*attribute)] == *read && pair[usize::from(!attribute)] != *read);
    }
    assert!(received.follows_from(&randomness, &key, &mut rng(4)).unwrap());
}

#[test]
fn batch_names_the_keys_that_nobody_signed() {
    let verifier = authority(1).1;
    let (other, _) = authority(8);
    let mut keys: Vec<_> =
        (0..7).map(|seed| received(&credential(seed).unlink(&mut rng(30 + seed)))).collect();
    for at in [1, 6] {
        let stranger = other.certify(&ATTRIBUTES, &mut rng(50)).unwrap();
        keys[at] = received(&stranger.unlink(&mut rng(51)));
    }
    let verdicts: Vec<bool> =
        verifier.verify_batch(keys, &mut rng(60)).into_iter().map(|verdict| verdict.is_ok()).collect();
    assert_eq!(verdicts, [true, false, true, true, true, true, false]);
}

#[test]
fn credential_survives_being_encoded() {
    let (credential, verifier) = (credential(2), authority(1).1);
    let encoded = credential.encode();
    assert_eq!(encoded.len(), Credential::encoded_len(ATTRIBUTES.len()));
    let read = UnverifiedCredential::decode(&encoded).unwrap().verify(&verifier, &mut rng(1)).unwrap();
    assert_eq!(read.encode(), encoded);
    assert_eq!(read.attributes(), ATTRIBUTES);
}

#[test]
fn credential_of_another_authority_is_refused() {
    let credential = UnverifiedCredential::decode(&credential(2).encode()).unwrap();
    let refused = credential.verify(&authority(8).1, &mut rng(1));
    assert_eq!(refused.unwrap_err(), Error::OtherAuthority);
}

#[test]
fn two_presentations_have_no_point_in_common() {
    let credential = credential(2);
    let [one, other] = [3, 4].map(|seed| credential.unlink(&mut rng(seed)));
    for place in 0..one.encoded().len() / 96 {
        let range = place * 96..(place + 1) * 96;
        assert_ne!(one.encoded()[range.clone()], other.encoded()[range]);
    }
    assert_eq!(one.encoded().len(), UnverifiedPublicKey::encoded_len(ATTRIBUTES.len()));
}
