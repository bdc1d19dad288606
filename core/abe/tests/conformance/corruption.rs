//! Bytes with exactly one thing wrong: never a panic, and never the same secret.

use quiver_abe::{AbeError, FabeoKp, PublicEncoding, Scheme, SecretEncoding};
use quiver_crypto::Secret;
use quiver_pairing::{G1, G2, Group, PairingError};

use crate::fixture::{Case, Parts, World, policy, set};
use crate::for_each_scheme;

for_each_scheme![
    every_truncation_and_every_extension_is_refused,
    a_bit_flipped_anywhere_in_a_ciphertext_never_gives_the_secret,
    a_bit_flipped_anywhere_in_a_key_never_gives_the_secret,
    a_bit_flipped_anywhere_in_parameters_makes_another_authority,
    elements_that_are_the_identity_are_refused,
    elements_of_one_ciphertext_do_not_go_with_another,
];

/// Every part of the key and of the ciphertext is needed to open.
const POLICY: &str = "alpha and bravo";
const SET: &str = "alpha, bravo";

struct Sealed<S: Case> {
    world: World<S>,
    key: Vec<u8>,
    ciphertext: Vec<u8>,
    secret: Secret<32>,
}

fn sealed<S: Case>(seed: u64) -> Sealed<S> {
    let mut world = World::<S>::new(seed);
    let key = world.key(&policy(POLICY), &set(SET)).encode().to_vec();
    let (ciphertext, secret) = world.sealed(&policy(POLICY), &set(SET));
    Sealed { world, key, ciphertext: ciphertext.encode(), secret }
}

impl<S: Case> Sealed<S> {
    fn open(&self, key: &[u8], ciphertext: &[u8]) -> Result<Secret<32>, AbeError> {
        let key = S::Key::decode(key)?;
        S::decapsulate(&self.world.parameters, &key, &S::Ciphertext::decode(ciphertext)?)
    }
}

fn every_truncation_and_every_extension_is_refused<S: Case>() {
    let Sealed { world, key, ciphertext, .. } = sealed::<S>(1);
    let (parameters, master) = (world.parameters.encode(), world.master.encode().to_vec());
    // Parameters of a closed universe take long to read; every seventh length of them will do.
    for len in (0..parameters.len()).filter(|len| len % 7 == 0 || len + 50 > parameters.len()) {
        assert!(S::Parameters::decode(&parameters[..len]).is_err(), "{len}");
    }
    for len in 0..master.len() {
        assert!(S::MasterKey::decode(&master[..len]).is_err(), "{len}");
    }
    for len in 0..key.len() {
        assert!(S::Key::decode(&key[..len]).is_err(), "{len}");
    }
    for len in 0..ciphertext.len() {
        assert!(S::Ciphertext::decode(&ciphertext[..len]).is_err(), "{len}");
    }
    let longer = |bytes: &[u8]| [bytes, &[0]].concat();
    assert!(S::Parameters::decode(&longer(&parameters)).is_err());
    assert!(S::MasterKey::decode(&longer(&master)).is_err());
    assert!(S::Key::decode(&longer(&key)).is_err());
    assert!(S::Ciphertext::decode(&longer(&ciphertext)).is_err());
}

/// All byte strings that differ from `bytes` in one bit.
fn flips(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        flipped
    })
}

fn a_bit_flipped_anywhere_in_a_ciphertext_never_gives_the_secret<S: Case>() {
    let sealed = sealed::<S>(2);
    assert_eq!(sealed.open(&sealed.key, &sealed.ciphertext).as_ref(), Ok(&sealed.secret));
    let key = S::Key::decode(&sealed.key).unwrap();
    for flipped in flips(&sealed.ciphertext) {
        let Ok(ciphertext) = S::Ciphertext::decode(&flipped) else { continue };
        assert_eq!(ciphertext.encode(), flipped, "two encodings of one ciphertext");
        let opened = S::decapsulate(&sealed.world.parameters, &key, &ciphertext);
        assert_ne!(opened.as_ref(), Ok(&sealed.secret));
    }
}

fn a_bit_flipped_anywhere_in_a_key_never_gives_the_secret<S: Case>() {
    let sealed = sealed::<S>(3);
    let ciphertext = S::Ciphertext::decode(&sealed.ciphertext).unwrap();
    for flipped in flips(&sealed.key) {
        let Ok(key) = S::Key::decode(&flipped) else { continue };
        assert_eq!(key.encode().to_vec(), flipped, "two encodings of one key");
        let opened = S::decapsulate(&sealed.world.parameters, &key, &ciphertext);
        assert_ne!(opened.as_ref(), Ok(&sealed.secret));
    }
}

fn a_bit_flipped_anywhere_in_parameters_makes_another_authority<S: Case>() {
    let sealed = sealed::<S>(4);
    let (key, ciphertext) =
        (S::Key::decode(&sealed.key).unwrap(), S::Ciphertext::decode(&sealed.ciphertext).unwrap());
    for (number, flipped) in flips(&sealed.world.parameters.encode()).enumerate() {
        // Of encodings that take long to decode, every eleventh bit.
        if S::parameter_elements().len() > 1 && number % 11 != 0 {
            continue;
        }
        let Ok(parameters) = S::Parameters::decode(&flipped) else { continue };
        assert_eq!(S::decapsulate(&parameters, &key, &ciphertext), Err(AbeError::WrongAuthority));
    }
}

/// The bytes of the identity, for an element of this length.
fn identity(len: usize) -> Vec<u8> {
    match len {
        // Zcash's compressed form: compressed, infinity, and nothing else.
        48 | 96 => [vec![0xc0], vec![0; len - 1]].concat(),
        // One, its coefficient of the lowest degree standing last.
        576 => [vec![0; 575], vec![1]].concat(),
        // The identity of ristretto255, or the scalar 0.
        _ => vec![0; len],
    }
}

fn elements_that_are_the_identity_are_refused<S: Case>() {
    let sealed = sealed::<S>(5);
    assert!(G1::decode_or_identity(&identity(48)).is_ok() && G2::decode_or_identity(&identity(96)).is_ok());
    let cases = [
        (&sealed.key, S::key_elements(&policy(POLICY), &set(SET))),
        (&sealed.ciphertext, S::ciphertext_elements(&policy(POLICY), &set(SET))),
        (&sealed.world.parameters.encode(), S::parameter_elements()),
    ];
    for (number, (bytes, lengths)) in cases.into_iter().enumerate() {
        for place in 0..lengths.len() {
            let mut parts = Parts::of(bytes, &lengths);
            parts.elements[place] = identity(lengths[place]);
            let bytes = parts.join();
            let refused = match number {
                0 => S::Key::decode(&bytes).err(),
                1 => S::Ciphertext::decode(&bytes).err(),
                _ => S::Parameters::decode(&bytes).err(),
            };
            assert!(matches!(refused, Some(AbeError::InvalidElement(_))), "{refused:?}");
        }
    }
}

fn elements_of_one_ciphertext_do_not_go_with_another<S: Case>() {
    let mut sealed = sealed::<S>(6);
    let (tree, attributes) = (policy(POLICY), set(SET));
    let lengths = S::ciphertext_elements(&tree, &attributes);
    let other = sealed.world.sealed(&tree, &attributes);
    let (ours, theirs) = (Parts::of(&sealed.ciphertext, &lengths), Parts::of(&other.0.encode(), &lengths));
    for place in 0..lengths.len() {
        let mut mixed = ours.clone();
        mixed.elements[place].clone_from(&theirs.elements[place]);
        let opened = sealed.open(&sealed.key, &mixed.join()).unwrap();
        assert!(opened != sealed.secret && opened != other.1);
    }
}

/// The compressed form of a point of the curve that is not in the subgroup: the first of a small x.
fn outside_the_subgroup<G: Group>() -> Vec<u8> {
    (1..=255_u8)
        .map(|x| {
            let mut bytes = vec![0; G::ENCODED_LEN];
            (bytes[0], bytes[G::ENCODED_LEN - 1]) = (0x80, x);
            bytes
        })
        .find(|bytes| G::decode_or_identity(bytes) == Err(PairingError::WrongSubgroup))
        .unwrap()
}

#[test]
fn points_outside_the_subgroup_are_refused() {
    let sealed = sealed::<FabeoKp>(7);
    let lengths = FabeoKp::key_elements(&policy(POLICY), &set(SET));
    for (place, &len) in lengths.iter().enumerate() {
        let mut parts = Parts::of(&sealed.key, &lengths);
        parts.elements[place] =
            if len == 48 { outside_the_subgroup::<G1>() } else { outside_the_subgroup::<G2>() };
        let refused = <FabeoKp as Scheme>::Key::decode(&parts.join()).err();
        assert_eq!(refused, Some(AbeError::InvalidElement(if len == 48 { "G1" } else { "G2" })));
    }
}
