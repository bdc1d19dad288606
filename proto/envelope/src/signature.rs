//! Drones sign envelopes with their own keys, label `envelope`.

use alloc::vec::Vec;

use quiver_abe::envelope::{Signer, Verifier};
use quiver_ainq::{
    Deployment, DroneKeypair, DronePublicKey, Label, RevocationStatement, Signature, Suite, UnixTime,
};
use rand_core::CryptoRngCore;

use crate::Author;

/// A drone as a signer.
#[derive(Clone, Copy, Debug)]
pub struct DroneSigner<'a, S: Suite> {
    deployment: &'a Deployment<S>,
    keypair: &'a DroneKeypair<S>,
}

impl<'a, S: Suite> DroneSigner<'a, S> {
    /// Signs with this key in this deployment.
    pub const fn new(deployment: &'a Deployment<S>, keypair: &'a DroneKeypair<S>) -> Self {
        Self { deployment, keypair }
    }
}

impl<S: Suite> Signer for DroneSigner<'_, S> {
    fn public(&self) -> Vec<u8> {
        self.keypair.public().encode()
    }

    fn signature_len(&self) -> usize {
        Signature::<S>::LEN
    }

    fn sign(&self, statement: &[u8], rng: &mut dyn CryptoRngCore) -> Vec<u8> {
        // §E3: label `envelope`.
        self.keypair.sign(self.deployment, Label::Envelope, statement, rng).encode()
    }
}

/// Accepts the signatures of drones and leaders of a deployment whose keys are neither revoked nor expired.
#[derive(Clone, Copy, Debug)]
pub struct DroneVerifier<'a, S: Suite> {
    deployment: &'a Deployment<S>,
    revocations: &'a RevocationStatement,
    now: UnixTime,
}

impl<'a, S: Suite> DroneVerifier<'a, S> {
    /// Verifies as of now, with the newest revocation list known.
    pub const fn new(
        deployment: &'a Deployment<S>,
        revocations: &'a RevocationStatement,
        now: UnixTime,
    ) -> Self {
        Self { deployment, revocations, now }
    }
}

impl<S: Suite> Verifier for DroneVerifier<'_, S> {
    type Sender = Author;

    fn verify(&self, sender: &[u8], statement: &[u8], signature: &[u8]) -> Option<Author> {
        let drone = DronePublicKey::<S>::decode(sender).ok()?;
        // §E3: genuine is what a drone signed that is neither revoked nor expired.
        if self.now >= drone.identity.not_after || self.revocations.names(&drone) {
            return None;
        }
        let signature = Signature::<S>::decode(signature).ok()?;
        signature.verify(self.deployment, &drone, Label::Envelope, statement).ok()?;
        Some(Author { name: drone.identity.name, role: drone.identity.role })
    }
}
