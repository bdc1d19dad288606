//! A KGC's signatures are those that a quorum of KGCs makes with FROST.

use frost_ristretto255::{Ciphersuite, Ristretto255Sha512, Signature, VerifyingKey};
use quiver_ainq::{Purpose, Ristretto255, SchnorrSignature, SecretValue, Suite, identity_statement};

use crate::fixture::World;

#[test]
fn our_challenge_is_frosts_h2() {
    let ours = Ristretto255::challenge(&[b"some ", b"message"]);
    assert_eq!(ours.to_bytes(), <Ristretto255Sha512 as Ciphersuite>::H2(b"some message").to_bytes());
}

#[test]
fn frost_accepts_a_partial_key_as_a_signature_on_identity_and_public_value() {
    let mut world = World::<Ristretto255>::new(1);
    let identity = World::<Ristretto255>::identity(7);
    let public_value = SecretValue::generate(&mut world.rng).public();
    let partial = world.master.issue_partial_key(&world.deployment, &identity, &public_value, &mut world.rng);
    // s ‖ R as we write it, R ‖ z as FROST reads it
    let bytes = partial.encode();
    let signature = Signature::deserialize(&[&bytes[32..], &bytes[..32]].concat()).unwrap();
    let message = identity_statement(&world.deployment, &identity.encode(), &public_value);
    let key = VerifyingKey::deserialize(world.deployment.master().as_bytes()).unwrap();
    key.verify(&message, &signature).unwrap();
    let other = World::<Ristretto255>::identity(8);
    let message = identity_statement(&world.deployment, &other.encode(), &public_value);
    assert!(key.verify(&message, &signature).is_err());
}

#[test]
fn frost_accepts_a_statement() {
    let mut world = World::<Ristretto255>::new(2);
    let statement = world.master.sign(&world.deployment, Purpose::Parameters, b"body", &mut world.rng);
    assert_eq!(statement.encode().len(), SchnorrSignature::<Ristretto255>::LEN);
    let key = VerifyingKey::deserialize(world.deployment.master().as_bytes()).unwrap();
    let signature = Signature::deserialize(&statement.encode()).unwrap();
    key.verify(&Purpose::Parameters.message(&world.deployment, b"body"), &signature).unwrap();
}
