//! The master key of a deployment: held by one KGC, or shared among several so that none has it.
//!
//! A world's machines run over any suite; the difference between a single KGC and a quorum is behind one
//! interface, whose implementation the world's creator provides.

use quiver_ainq::{
    Deployment, Element, Identity, KgcId, MasterSecret, Purpose, StatementSignature, Suite,
    UnverifiedPartialKey,
};
use quiver_enrolment::{KgcSigningKey, Kgcs};
use rand_chacha::ChaCha8Rng;
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use crate::{Setup, WorldError};

/// The KGCs' keys.
pub trait MasterKey<S: Suite>: Send + Sync {
    /// P_pub.
    fn public(&self) -> Element<S>;
    /// Master key of a KGC.
    fn master(&self, deployment: &Deployment<S>, kgc: KgcId) -> KgcSigningKey<S>;
    /// KGCs with which drones enrol.
    fn kgcs(&self) -> Kgcs<S>;
    /// Issues a partial key.
    fn issue(
        &self,
        deployment: &Deployment<S>,
        identity: &Identity,
        value: &Element<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> UnverifiedPartialKey<S>;
    /// The KGCs' signature on a statement.
    fn sign(
        &self,
        deployment: &Deployment<S>,
        purpose: Purpose,
        body: &[u8],
        rng: &mut dyn CryptoRngCore,
    ) -> StatementSignature<S>;
    /// All the secret there is at a KGC: its share, encoded as a scalar.
    fn secret(&self, kgc: KgcId) -> Option<Zeroizing<Vec<u8>>>;
}

/// A suite over which the KGCs of a world can found their master key.
pub trait MasterKeySuite: Suite {
    /// Founds the key that this setup asks for: held by one KGC, or shared among several.
    ///
    /// # Errors
    /// [`WorldError::Quorum`] for numbers of KGCs that make no quorum.
    fn found_master_key(setup: &Setup, rng: &mut ChaCha8Rng) -> Result<Box<dyn MasterKey<Self>>, WorldError>;
}

/// One KGC, with all of it. The secret is encoded.
pub struct SingleMasterKey(Zeroizing<Vec<u8>>);

impl SingleMasterKey {
    /// Draws the secret.
    pub fn found<S: Suite>(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        Self(MasterSecret::<S>::generate(rng).encode())
    }

    /// Makes the key of this secret.
    pub fn of<S: Suite>(secret: &MasterSecret<S>) -> Self {
        Self(secret.encode())
    }

    fn secret<S: Suite>(&self) -> MasterSecret<S> {
        MasterSecret::decode(&self.0).expect("as it was encoded")
    }
}

impl<S: Suite> MasterKey<S> for SingleMasterKey {
    fn public(&self) -> Element<S> {
        self.secret().public()
    }

    fn master(&self, _: &Deployment<S>, _: KgcId) -> KgcSigningKey<S> {
        self.secret().into()
    }

    fn kgcs(&self) -> Kgcs<S> {
        Kgcs::single()
    }

    fn issue(
        &self,
        deployment: &Deployment<S>,
        identity: &Identity,
        value: &Element<S>,
        mut rng: &mut dyn CryptoRngCore,
    ) -> UnverifiedPartialKey<S> {
        self.secret().issue_partial_key(deployment, identity, value, &mut rng)
    }

    fn sign(
        &self,
        deployment: &Deployment<S>,
        purpose: Purpose,
        body: &[u8],
        mut rng: &mut dyn CryptoRngCore,
    ) -> StatementSignature<S> {
        self.secret().sign(deployment, purpose, body, &mut rng)
    }

    fn secret(&self, _: KgcId) -> Option<Zeroizing<Vec<u8>>> {
        Some(self.0.clone())
    }
}
