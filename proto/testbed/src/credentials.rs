//! Names and keys of drones for tests, issued as a KGC does.

use quiver_ainq::{Deployment, DroneKeypair, Identity, MasterSecret, Name, SecretValue, Suite};
use rand_core::CryptoRngCore;

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
