//! Vectors: encodings that must not change, and the secret that goes with them.
//!
//! `vectors/*.txt` were made by this crate from a fixed seed, and confirmed from the bytes alone by
//! `vectors/check.py`, which shares no code with it: the fingerprint, that the parameters belong to the
//! master key, and the secret, once through alpha and bravo and once through both uses of alpha.

use quiver_abe::{FabeoCp, FabeoKp, Gpsw06, PublicEncoding, Scheme, SecretEncoding};

use crate::fixture::{Case, ciphertext_of, key_of, policy, rng, set};

/// A policy that repeats an attribute, and has a threshold whose coefficients are 3/2 and -1/2, or 2 and -1.
const POLICY: &str = "2 of (alpha, alpha or charlie, bravo)";
const SET: &str = "alpha, bravo";

fn line<'a>(vectors: &'a str, name: &str) -> &'a str {
    let line = vectors.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    line.unwrap()
}

fn stays<S: Case>(vectors: &str) {
    let (tree, attributes) = (policy(POLICY), set(SET));
    let mut rng = rng(2022);
    let (parameters, master) = S::setup(&S::universe(), &mut rng).unwrap();
    let key = S::derive(&parameters, &master, &S::of_key(&tree, &attributes), &mut rng).unwrap();
    let (ciphertext, secret) =
        S::encapsulate(&parameters, &S::of_ciphertext(&tree, &attributes), &mut rng).unwrap();
    assert_eq!(hex::encode(parameters.encode()), line(vectors, "parameters"));
    assert_eq!(hex::encode(master.encode()), line(vectors, "master key"));
    assert_eq!(hex::encode(key.encode()), line(vectors, "key"));
    assert_eq!(hex::encode(ciphertext.encode()), line(vectors, "ciphertext"));
    assert_eq!(hex::encode(secret.expose()), line(vectors, "secret"));
    opens::<S>(vectors);
}

/// Old keys and ciphertexts open now.
fn opens<S: Scheme>(vectors: &str) {
    let bytes = |name| hex::decode(line(vectors, name)).unwrap();
    let parameters = S::Parameters::decode(&bytes("parameters")).unwrap();
    let (key, ciphertext) = (key_of::<S>(&bytes("key")), ciphertext_of::<S>(&bytes("ciphertext")));
    let opened = S::decapsulate(&parameters, &key, &ciphertext).unwrap();
    assert_eq!(opened.expose()[..], bytes("secret"));
}

#[test]
fn gpsw06_is_what_it_was() {
    stays::<Gpsw06>(include_str!("../vectors/gpsw06.txt"));
}

#[test]
fn fabeo22_kp_is_what_it_was() {
    stays::<FabeoKp>(include_str!("../vectors/fabeo22-kp.txt"));
}

#[test]
fn fabeo22_cp_is_what_it_was() {
    stays::<FabeoCp>(include_str!("../vectors/fabeo22-cp.txt"));
}
