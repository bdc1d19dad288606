//! Names and keys of drones for tests, issued as a KGC does.

use quiver_ainq::{
    Deployment, DroneKeypair, Identity, IssuedToken, MasterSecret, Name, Role, SecretValue, Suite, TokenGrant,
};
use rand_core::CryptoRngCore;

use crate::EPOCH_START;

/// A name.
///
/// # Panics
/// If it is none.
pub fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// The keypair that a KGC issues for an identity.
///
/// # Panics
/// If the deployment's master secret is another.
pub fn issue_keypair<S: Suite>(
    master: &MasterSecret<S>,
    deployment: &Deployment<S>,
    identity: &Identity,
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> DroneKeypair<S> {
    let secret = SecretValue::generate(rng);
    let partial = master.issue_partial_key(deployment, identity, &secret.public(), rng);
    partial.verify(deployment, identity, &secret).expect("just issued")
}

/// A grant of membership of one group, for a drone that enrols in time.
///
/// # Panics
/// If a name is none.
pub fn token_grant(drone: &str, role: Role, group: &str) -> TokenGrant {
    let (not_after, expiry) = (EPOCH_START + 10_000_000, EPOCH_START + 1_000_000);
    TokenGrant { name: name(drone), role, groups: vec![name(group)], not_after, expiry }
}

/// Another copy of a token, which is not cloned in earnest: a drone has one.
///
/// # Panics
/// Never: a token can be decoded.
pub fn copy_token<S: Suite>(token: &IssuedToken<S>) -> IssuedToken<S> {
    IssuedToken::decode(&token.encode()).expect("a token")
}
