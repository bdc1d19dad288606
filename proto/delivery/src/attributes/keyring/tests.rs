//! Keyrings survive encoding, and malformed ones are refused.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use quiver_ainq::{AuthorityStatement, MasterSecret, Ristretto255, SecretScalar};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use quiver_testbed::name;

use super::*;

type S = Ristretto255;

struct Bench {
    rng: ChaCha20Rng,
    master: MasterSecret<S>,
    deployment: Deployment<S>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::generate(&mut rng);
        Self { deployment: Deployment::new(name("alps"), master.public()), master, rng }
    }

    fn entry(&mut self, text: &str, key: Option<&[u8]>) -> KeyringEntry<S> {
        let statement = AuthorityStatement {
            kind: name("abe"),
            name: name(text),
            scheme: name("toy"),
            delivery: SecretScalar::generate(&mut self.rng).public(),
            schema: vec![1, 2],
            parameters: vec![3; 50],
        };
        let signed = self.master.sign_authority(&self.deployment, statement, &mut self.rng).expect("sign");
        let key = key.map(|key| HeldKey { grant: 7, key: Zeroizing::new(key.to_vec()) });
        KeyringEntry { authority: signed.verify(&self.deployment).expect("verify"), key }
    }
}

#[test]
fn keyring_comes_back_and_shows_no_key() {
    let mut bench = Bench::new(1);
    let mut keyring = Keyring::default();
    assert_eq!(keyring.put(bench.entry("sensors", None)), Ok(true));
    let orders = bench.entry("orders", Some(&[0xab; 40]));
    assert_eq!(keyring.put(orders.clone()), Ok(true));
    assert_eq!(keyring.put(orders.clone()), Ok(false), "nothing new");
    let names: Vec<_> = keyring.entries().map(|entry| entry.authority.name.to_string()).collect();
    assert_eq!(names, ["orders", "sensors"]);
    let bytes = keyring.encode();
    assert_eq!(Keyring::decode(&bytes, &bench.deployment), Ok(keyring.clone()));
    assert_eq!(keyring.entry(&name("orders")), Some(&orders));
    assert!(!format!("{keyring:?}").contains("171, 171"));
    for length in 0..bytes.len() {
        assert!(Keyring::decode(&bytes[..length], &bench.deployment).is_err(), "cut at {length}");
    }
}

#[test]
fn keyring_of_another_deployment_is_refused() {
    let (mut bench, other) = (Bench::new(3), Bench::new(4));
    let mut keyring = Keyring::default();
    keyring.put(bench.entry("orders", None)).expect("room");
    assert_eq!(Keyring::decode(&keyring.encode(), &other.deployment), Err(Error::InvalidSignature));
}

#[test]
fn keyring_is_bounded() {
    let mut bench = Bench::new(2);
    let mut keyring = Keyring::default();
    for number in 0..MAX_ENTRIES {
        keyring.put(bench.entry(&format!("a{number}"), None)).expect("room");
    }
    assert!(matches!(keyring.put(bench.entry("one-more", None)), Err(Error::TooLong { .. })));
    keyring.put(bench.entry("a0", Some(b"key"))).expect("in place of another");
    assert_eq!(Keyring::decode(&keyring.encode(), &bench.deployment), Ok(keyring));
}
