//! Admission by certified fields: certificates, policies that the KGC signed, and the count of answers.

use std::time::Duration;

use quiver_admission::certifying::{Certificate, CertificationTerms, Certifier};
use quiver_admission::{AdmissionMessage, Ledger, PolicyStatement, SignedPolicy};
use quiver_ainq::Ristretto255;
use quiver_crypto::Secret;
use quiver_delivery::attributes::KeyMaker;
use quiver_garble::policy::Schema;
use quiver_message::Message;

use crate::decoders;
use crate::scene::{START, Staged, canonical, name, rng};

type S = Ristretto255;

fn terms() -> CertificationTerms {
    let schema = Schema::parse("x: i3, medic: bool").expect("a schema");
    CertificationTerms::new(schema, Duration::from_secs(3600)).expect("few bits")
}

/// A message between a leader and a drone without a name.
pub(crate) fn message<S: Staged>(message: &Message<S>, bytes: &[u8]) {
    decoders::extension::<S, AdmissionMessage<S>>(message, bytes);
}

/// An authority's certificate for a period.
pub fn certificate(bytes: &[u8]) {
    let decoded = Certificate::decode(bytes, &terms(), &mut rng(80));
    let period = Certificate::period_of(bytes);
    if let Ok(certificate) = &decoded {
        assert_eq!(period.as_ref(), Ok(&certificate.key().period()), "another period");
    }
    canonical(bytes, decoded, |certificate| certificate.encode().to_vec());
}

/// Certificates with a credential and without one.
pub fn certificate_seeds() -> Vec<Vec<u8>> {
    let mut certifier = Certifier::new(terms(), Secret::new([3; 32]));
    certifier.begin_period(START);
    let granted = terms().grant(&[("x", -4), ("medic", 1)]).expect("values");
    let key = certifier.make(&granted.encoded, &mut rng(81)).expect("a credential");
    vec![key.to_vec(), certifier.published().expect("slot keys")]
}

/// A policy that the KGC signed, or did not.
pub fn policy(bytes: &[u8]) {
    canonical(bytes, PolicyStatement::decode(bytes), PolicyStatement::body);
    let signed = SignedPolicy::<S>::decode(bytes);
    if let Ok(signed) = signed.clone() {
        // Valid or not, whichever key signed it.
        let _ = signed.verify(&S::scene().deployment);
    }
    canonical(bytes, signed, SignedPolicy::encode);
}

/// A policy, and its body alone.
pub fn policy_seeds() -> Vec<Vec<u8>> {
    let scene = S::scene();
    let statement = PolicyStatement {
        authority: [4; 32],
        group: name("alpha"),
        name: name("fence"),
        not_after: START,
        text: "x < 3 or medic".into(),
    };
    let body = statement.body();
    let signed = SignedPolicy::sign(&scene.master, &scene.deployment, statement, &mut rng(82));
    vec![signed.expect("short enough").encode(), body]
}

/// The ledger of answers per leader.
pub fn ledger(bytes: &[u8]) {
    canonical(bytes, Ledger::decode(bytes), Ledger::encode);
}

/// Seeds of ledgers: one without and one with entries.
pub fn ledger_seeds() -> Vec<Vec<u8>> {
    let mut ledger = Ledger::default();
    let empty = ledger.encode();
    for leader in 0..3 {
        ledger.take(&[1; 32], &[leader; 16], 5, 2).expect("the first");
    }
    vec![empty, ledger.encode()]
}
