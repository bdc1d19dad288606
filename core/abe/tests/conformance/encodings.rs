//! One encoding per value, of the size that the documentation gives, for one scheme and one kind.

use quiver_abe::{AbeError, AuthorityFingerprint, PublicEncoding, SecretEncoding};

use crate::fixture::{Case, UNIVERSE_LEN, World, documented_len, policy, set};
use crate::for_each_scheme;

for_each_scheme![
    what_is_encoded_is_decoded_and_works,
    sizes_are_those_documented,
    bytes_of_another_kind_are_told_apart,
    a_version_from_the_future_is_named,
    the_authority_is_the_hash_of_the_parameters,
];

const POLICY: &str = "2 of (alpha, bravo and charlie, alpha and altitude >= 6)";
const SET: &str = "alpha, bravo, charlie, altitude = 7";

fn what_is_encoded_is_decoded_and_works<S: Case>() {
    let mut world = World::<S>::new(1);
    let (tree, attributes) = (policy(POLICY), set(SET));
    let key = world.key(&tree, &attributes);
    let (ciphertext, secret) = world.sealed(&tree, &attributes);

    let parameters = S::Parameters::decode(&world.parameters.encode()).unwrap();
    let master = S::MasterKey::decode(&world.master.encode()).unwrap();
    let decoded_key = S::Key::decode(&key.encode()).unwrap();
    let decoded = S::Ciphertext::decode(&ciphertext.encode()).unwrap();
    assert_eq!(parameters.encode(), world.parameters.encode());
    assert_eq!(master.encode(), world.master.encode());
    assert_eq!(decoded_key.encode(), key.encode());
    assert_eq!(decoded.encode(), ciphertext.encode());
    assert_eq!(S::decapsulate(&parameters, &decoded_key, &decoded), Ok(secret));

    let terms = S::of_key(&tree, &attributes);
    let another = S::derive(&parameters, &master, &terms, &mut world.rng).unwrap();
    let terms = S::of_ciphertext(&tree, &attributes);
    let (ciphertext, secret) = S::encapsulate(&parameters, &terms, &mut world.rng).unwrap();
    assert_eq!(S::decapsulate(&parameters, &another, &ciphertext), Ok(secret));
}

fn sizes_are_those_documented<S: Case>() {
    let mut world = World::<S>::new(2);
    for (tree, attributes) in [(policy("alpha"), set("alpha")), (policy(POLICY), set(SET))] {
        let key = documented_len(&S::of_key(&tree, &attributes), &S::key_elements(&tree, &attributes));
        assert_eq!(world.key(&tree, &attributes).encode().len(), key);
        let elements = S::ciphertext_elements(&tree, &attributes);
        let ciphertext = documented_len(&S::of_ciphertext(&tree, &attributes), &elements);
        assert_eq!(world.sealed(&tree, &attributes).0.encode().len(), ciphertext);
    }
    let elements: usize = S::parameter_elements().iter().sum();
    match S::universe() {
        quiver_abe::Universe::Open => {
            assert_eq!(world.parameters.encode().len(), 3 + elements);
            assert_eq!(world.master.encode().len(), 3 + 32 + 32);
        }
        quiver_abe::Universe::Closed(_) => {
            let attributes = crate::fixture::schema().universe().unwrap();
            let attributes: usize = attributes.iter().map(|attribute| attribute.hash_input().len()).sum();
            assert_eq!(world.parameters.encode().len(), 3 + 4 + attributes + elements);
            assert_eq!(world.master.encode().len(), 3 + 32 + 4 + 32 * UNIVERSE_LEN + 32);
        }
    }
}

fn bytes_of_another_kind_are_told_apart<S: Case>() {
    let mut world = World::<S>::new(3);
    let (tree, attributes) = (policy("alpha"), set("alpha"));
    let key = world.key(&tree, &attributes).encode();
    let ciphertext = world.sealed(&tree, &attributes).0.encode();
    let parameters = world.parameters.encode();
    let wrong = |expected| Some(AbeError::WrongKind { expected });
    assert_eq!(S::Parameters::decode(&ciphertext).err(), wrong("parameters"));
    assert_eq!(S::MasterKey::decode(&key).err(), wrong("a master key"));
    assert_eq!(S::Key::decode(&ciphertext).err(), wrong("a key"));
    assert_eq!(S::Ciphertext::decode(&parameters).err(), wrong("a ciphertext"));
}

fn a_version_from_the_future_is_named<S: Case>() {
    let mut bytes = World::<S>::new(4).parameters.encode();
    bytes[0] = 2;
    assert_eq!(S::Parameters::decode(&bytes).err(), Some(AbeError::UnknownVersion(2)));
}

fn the_authority_is_the_hash_of_the_parameters<S: Case>() {
    let world = World::<S>::new(5);
    let hash = quiver_crypto::Hasher::new("QUIVER-ABE-v1 authority").lp(&world.parameters.encode()).finish();
    let authority: &AuthorityFingerprint = world.parameters.authority();
    assert_eq!(*authority.as_bytes(), hash);
    assert_eq!(world.master.authority(), authority);
}
