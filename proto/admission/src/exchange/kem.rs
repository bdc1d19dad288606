//! The second factor of an anonymous member: one exchange of ML-KEM inside the run, so that a recording of it
//! stays closed to whoever computes discrete logarithms later (§A4.3).
//!
//! κ is of one run and one term. Nobody stores it, and no later run names it: whatever both ends keep between
//! two memberships links them.

use alloc::vec::Vec;

use quiver_ainq::{Deployment, Handle, KemKey, KemPair, KemTerm, Name, Suite};
use quiver_crypto::canonical::Writer;
use quiver_crypto::{Digest, Hasher, Secret};
use quiver_kem::{DecapsulationKey, KemError, MESSAGE_LEN, SEED_LEN, encapsulate};
use quiver_message::{COOKIE_LEN, Nonce};
use rand_core::CryptoRngCore;

/// Unique value of the channel of a run: nonce ‖ c, and the term and the encapsulation key, if it has a
/// second factor. The leader signs a hash of it, so what is swapped on the way ends the run.
pub(crate) fn channel(nonce: &Nonce, cookie: &[u8; COOKIE_LEN], offer: Option<(KemTerm, &[u8])>) -> Vec<u8> {
    // §A4.2: nonce ‖ c.
    let mut writer = Writer::new();
    writer.fixed(nonce).fixed(cookie);
    if let Some((term, key)) = offer {
        // §A4.3: … ‖ set ‖ g ‖ lp(ek).
        term.write(&mut writer);
        writer.lp(key);
    }
    writer.finish()
}

/// Signed `abke`: ctx, and the ciphertext, if the run has a second factor.
pub(crate) fn statement(context: &Digest, ciphertext: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.fixed(context);
    if !ciphertext.is_empty() {
        // §A4.3: ctx ‖ lp(ct).
        writer.lp(ciphertext);
    }
    writer.finish()
}

/// The deployment, the group, and the leader of a run, with its channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunParties<'a, S: Suite> {
    pub(crate) deployment: &'a Deployment<S>,
    pub(crate) group: &'a Name,
    pub(crate) leader: &'a Handle,
    pub(crate) channel: &'a [u8],
}

impl<S: Suite> RunParties<'_, S> {
    fn key(&self, term: KemTerm, (key, ciphertext): (&[u8], &[u8]), shared: &Secret<32>) -> KemKey<S> {
        let Self { deployment, group, leader, channel } = *self;
        // §A4.3: H("quiver/1 anonymous kem", lp(channel)) stands where a drone by name has its handle.
        let drone = &Handle(Hasher::new("quiver/1 anonymous kem").lp(channel).finish());
        KemKey::derive(term, shared, &KemPair { deployment, group, leader, drone, key, ciphertext })
    }

    /// Encapsulates to the drone's key: κ, and the ciphertext.
    pub(crate) fn encapsulate(
        &self,
        (term, key): (KemTerm, &[u8]),
        rng: &mut dyn CryptoRngCore,
    ) -> Result<(KemKey<S>, Vec<u8>), KemError> {
        // §A4.3: m is drawn for this run alone.
        let (ciphertext, shared) = encapsulate(term.set(), key, &Secret::<MESSAGE_LEN>::random(rng))?;
        Ok((self.key(term, (key, &ciphertext), &shared), ciphertext))
    }
}

/// Key pair of a drone for one run. Never stored.
#[derive(Debug)]
pub(crate) struct RunKeypair {
    term: KemTerm,
    secret: DecapsulationKey,
    public: Vec<u8>,
}

impl RunKeypair {
    pub(crate) fn generate(term: KemTerm, rng: &mut dyn CryptoRngCore) -> Self {
        // §A4.3: fresh in every run.
        let (secret, public) = DecapsulationKey::generate(term.set(), Secret::<SEED_LEN>::random(rng));
        Self { term, secret, public }
    }

    /// The leader's term, and the encapsulation key.
    pub(crate) fn offer(&self) -> (KemTerm, &[u8]) {
        (self.term, &self.public)
    }

    /// κ from the leader's ciphertext.
    pub(crate) fn decapsulate<S: Suite>(
        &self,
        parties: &RunParties<'_, S>,
        ciphertext: &[u8],
    ) -> Result<KemKey<S>, KemError> {
        let shared = self.secret.decapsulate(ciphertext)?;
        Ok(parties.key(self.term, (&self.public, ciphertext), &shared))
    }
}
