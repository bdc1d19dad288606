//! A ciphertext to an identity opens with its key, and with none if anything is changed.

use crate::staged_quorum::{Quorum, rng};
use proptest::prelude::*;
use quiver_ibe::{
    Condition, Encryptor, Error, IbeCiphertext, IdentityKey, IdentityPoint, MAX_MESSAGE_LEN, MasterPublicKey,
};

fn setting(seed: u64, identity: &[u8]) -> (MasterPublicKey, IdentityPoint, IdentityKey) {
    let quorum = Quorum::new(seed, 1, 1);
    let point = IdentityPoint::of_bytes(identity);
    let key = quorum.key(&point, &[1]).unwrap();
    (*quorum.publics.master(), point, key)
}

/// Returns true if altered bytes are refused, when they are decoded or when they are opened.
fn refused(key: &IdentityKey, bytes: &[u8]) -> bool {
    match IbeCiphertext::decode(bytes) {
        Ok(ciphertext) => key.decrypt(&ciphertext) == Err(Error::Decryption),
        Err(_) => true,
    }
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..=MAX_MESSAGE_LEN)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_message_opens_with_the_key_of_its_identity(
        seed in any::<u64>(),
        identity in prop::collection::vec(any::<u8>(), 0..300),
        message in message(),
    ) {
        let (master, point, key) = setting(seed, &identity);
        let ciphertext = master.encrypt(&point, &message, &mut rng(seed)).unwrap();
        prop_assert_eq!(&*key.decrypt(&ciphertext).unwrap(), &message);
        let bytes = ciphertext.encode();
        prop_assert_eq!(bytes.len(), message.len() + IbeCiphertext::OVERHEAD);
        prop_assert_eq!(IbeCiphertext::decode(&bytes).unwrap(), ciphertext);
    }

    #[test]
    fn an_encryptor_writes_what_encrypting_once_writes(seed in any::<u64>(), message in message()) {
        let (master, point, _) = setting(seed, b"identity");
        let kept = Encryptor::new(master, point);
        let once = master.encrypt(&point, &message, &mut rng(seed)).unwrap();
        prop_assert_eq!(kept.encrypt(&message, &mut rng(seed)).unwrap(), once);
    }

    #[test]
    fn a_ciphertext_with_one_bit_changed_is_refused(seed in any::<u64>(), message in message(), bit in any::<usize>()) {
        let (master, point, key) = setting(seed, b"identity");
        let mut bytes = master.encrypt(&point, &message, &mut rng(seed)).unwrap().encode();
        let bit = bit % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(refused(&key, &bytes));
    }

    #[test]
    fn a_ciphertext_with_a_part_of_another_is_refused(seed in any::<u64>(), message in message()) {
        let (master, point, key) = setting(seed, b"identity");
        let mut random = rng(seed);
        let [one, other] = [(); 2].map(|()| master.encrypt(&point, &message, &mut random).unwrap().encode());
        for part in [0..48, 48..80, 80..one.len()] {
            let mut mixed = one.clone();
            mixed[part.clone()].copy_from_slice(&other[part]);
            prop_assert!(refused(&key, &mixed));
        }
    }

    #[test]
    fn a_shortened_or_lengthened_ciphertext_is_refused(seed in any::<u64>(), message in message(), more in 1_usize..40) {
        let (master, point, key) = setting(seed, b"identity");
        let bytes = master.encrypt(&point, &message, &mut rng(seed)).unwrap().encode();
        for len in 0..bytes.len() {
            prop_assert!(refused(&key, &bytes[..len]));
        }
        prop_assert!(refused(&key, &[&bytes[..], &vec![0; more]].concat()));
    }

    #[test]
    fn another_identity_or_another_quorum_has_no_key_for_it(seed in any::<u64>(), message in message()) {
        let (master, point, _) = setting(seed, b"identity");
        let ciphertext = master.encrypt(&point, &message, &mut rng(seed)).unwrap();
        for (seed, identity) in [(seed, b"identitx"), (seed ^ 1, b"identity")] {
            let (_, _, key) = setting(seed, identity);
            prop_assert_eq!(key.decrypt(&ciphertext), Err(Error::Decryption));
        }
    }
}

#[test]
fn every_single_bit_of_a_ciphertext_counts() {
    let (master, point, key) = setting(1, b"identity");
    let bytes = master.encrypt(&point, b"m", &mut rng(1)).unwrap().encode();
    // Of U, whose bits mostly make no point at all, one in seven; of V and W all.
    let bits = (0..48 * 8).step_by(7).chain((48 * 8..bytes.len() * 8).step_by(3));
    for bit in bits {
        let mut altered = bytes.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        assert!(refused(&key, &altered), "bit {bit}");
    }
}

#[test]
fn encrypting_twice_gives_two_ciphertexts() {
    let (master, point, _) = setting(1, b"identity");
    let mut random = rng(1);
    let [one, other] = [(); 2].map(|()| master.encrypt(&point, b"the same", &mut random).unwrap().encode());
    for part in [0..48, 48..80, 80..88] {
        assert_ne!(one[part.clone()], other[part]);
    }
}

#[test]
fn messages_without_bytes_or_with_too_many_are_refused() {
    let (master, point, _) = setting(1, b"identity");
    for length in [0, 33, 1000] {
        let refused = master.encrypt(&point, &vec![7; length], &mut rng(1));
        assert_eq!(refused.unwrap_err(), Error::MessageLength(length));
        let kept = Encryptor::new(master, point).encrypt(&vec![7; length], &mut rng(1));
        assert_eq!(kept.unwrap_err(), Error::MessageLength(length));
    }
}

#[test]
fn a_ciphertext_whose_u_is_the_identity_or_outside_the_subgroup_is_refused() {
    let (master, point, _) = setting(1, b"identity");
    let mut bytes = master.encrypt(&point, b"m", &mut rng(1)).unwrap().encode();
    for u in [crate::staged_quorum::identity(48), crate::staged_quorum::outside_g1().to_vec()] {
        bytes[..48].copy_from_slice(&u);
        assert_eq!(IbeCiphertext::decode(&bytes).unwrap_err(), Error::InvalidPoint("G1"));
    }
}

#[test]
fn the_point_of_a_condition_is_that_of_its_spelling() {
    let condition: Condition = "not-before/2026-12-01T06:00:00Z".parse().unwrap();
    assert_eq!(IdentityPoint::of(&condition), IdentityPoint::of_bytes(b"not-before/2026-12-01T06:00:00Z"));
}
