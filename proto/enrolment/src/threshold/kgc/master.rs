//! The KGC's side: a share of the master secret, ready to sign.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_ainq::{Deployment, Element, KgcId, QuorumStatement, Suite};
use quiver_crypto::{Digest, Zeroizing};
use quiver_quorum::{Error, QuorumSuite, SecretShare};
use rand_core::CryptoRngCore;

use super::signer;

/// x_j, ready to sign, with the quorum's statement about its public shares.
#[derive(derive_more::Debug)]
#[debug("MasterShare {{ kgc: {kgc:?}, version: {version:?}, .. }}")]
pub struct MasterShare<S: Suite> {
    kgc: KgcId,
    version: u32,
    statement: Vec<u8>,
    signer: Box<dyn ShareSigner<S>>,
}

impl<S: QuorumSuite> MasterShare<S> {
    /// Takes a share, and the quorum's own statement about the shares of its version.
    ///
    /// # Errors
    /// [`Error::WrongQuorum`] if the statement is not signed by the quorum of this deployment, or about other
    /// shares; [`Error::WrongVersion`] if one of the two was refreshed without the other.
    pub fn new(
        deployment: &Deployment<S>,
        share: SecretShare<S>,
        statement: &QuorumStatement<S>,
    ) -> Result<Self, Error> {
        // §3.6: the quorum itself signed its public shares: P_pub is all there is to pin.
        let verified = statement.verify(deployment).map_err(|_| Error::WrongQuorum)?;
        // A refresh changes share and statement: both are of one version.
        signer::check(deployment, &share, &verified)?;
        let (kgc, version) = (share.kgc(), share.version());
        Ok(Self { kgc, version, statement: statement.encode(), signer: signer::signer(share) })
    }
}

impl<S: Suite> MasterShare<S> {
    /// The KGC of the share.
    #[must_use]
    pub const fn kgc(&self) -> KgcId {
        self.kgc
    }

    /// Number of refreshes of the shares.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The quorum's statement, encoded.
    pub(super) fn statement(&self) -> &[u8] {
        &self.statement
    }

    /// Round 1.
    pub(super) fn commit(&self, rng: &mut dyn CryptoRngCore) -> Result<Committed<S>, Error> {
        self.signer.commit(rng)
    }
}

/// A KGC's share of x.
pub(super) trait ShareSigner<S: Suite>: Send + Sync {
    /// Draws nonces. They stay in memory, in a function that can be called once.
    fn commit(&self, rng: &mut dyn CryptoRngCore) -> Result<Committed<S>, Error>;
}

/// A KGC's commitment, and the one signature share that may be made with it.
pub(super) struct Committed<S: Suite> {
    /// D_j ‖ E_j.
    pub(super) commitment: Vec<u8>,
    pub(super) sign: SignOnce<S>,
}

/// Round 2, for a message and the commitments of all: uses the nonces up.
pub(super) type SignOnce<S> =
    Box<dyn FnOnce(Vec<u8>, &[(KgcId, Vec<u8>)]) -> Result<Contribution<S>, Error> + Send + Sync>;

/// A KGC's contribution to a signature.
pub(super) struct Contribution<S: Suite> {
    /// Names the signing package.
    pub(super) package: Digest,
    /// R of the signature to come.
    pub(super) r: Element<S>,
    /// z_j.
    pub(super) share: Zeroizing<Vec<u8>>,
}
