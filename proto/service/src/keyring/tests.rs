//! Files there and back, and what is refused.

use quiver_ainq::{AuthorityStatement, MasterSecret, Name, Ristretto255, SecretScalar};
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use super::*;

struct Bench {
    master: MasterSecret<Ristretto255>,
    deployment: Deployment<Ristretto255>,
}

impl Bench {
    fn new() -> Self {
        let master = MasterSecret::generate(&mut OsRng);
        Self { deployment: Deployment::new(name("alps"), master.public()), master }
    }

    fn entry(&self, text: &str, key: Option<&[u8]>) -> KeyringEntry<Ristretto255> {
        let statement = AuthorityStatement {
            kind: name("abe"),
            name: name(text),
            scheme: name("toy"),
            delivery: SecretScalar::generate(&mut OsRng).public(),
            schema: vec![1, 2],
            parameters: vec![3; 50],
        };
        let signed = self.master.sign_authority(&self.deployment, statement, &mut OsRng).expect("sign");
        let key = key.map(|key| HeldKey { grant: 7, key: Zeroizing::new(key.to_vec()) });
        KeyringEntry { authority: signed.verify(&self.deployment).expect("verify"), key }
    }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("name")
}

#[test]
fn files_come_back_and_foreign_or_garbled_ones_are_told() {
    let (bench, other) = (Bench::new(), Bench::new());
    let directory = tempfile::tempdir().expect("tempdir");
    let (public, secret) = (directory.path().join("orders.authority"), directory.path().join("orders.key"));
    let entry = bench.entry("orders", Some(b"secret"));
    write_authority(&public, &entry.authority).expect("write");
    write_key(&secret, &entry).expect("write");
    assert_eq!(read_authority(&public, &bench.deployment).expect("read"), entry.authority);
    assert_eq!(read_key(&secret, &bench.deployment).expect("read"), entry);
    let foreign = read_authority(&public, &other.deployment).expect_err("foreign").to_string();
    assert!(foreign.contains("does not vouch"), "{foreign}");
    assert!(read_key(&secret, &other.deployment).is_err());
    let mixed = read_key(&public, &bench.deployment).expect_err("not a key").to_string();
    let told = "this is the public file of an attribute authority; give an attribute key";
    assert!(mixed.contains(told), "{mixed}");
    let mixed = read_authority(&secret, &bench.deployment).expect_err("a key").to_string();
    assert!(mixed.contains("this is an attribute key"), "{mixed}");
    assert!(matches!(write_key(&secret, &entry), Err(Error::Exists { .. })));
}
