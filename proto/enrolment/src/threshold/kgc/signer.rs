//! A KGC's share, signing.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quiver_ainq::{Deployment, KgcId, VerifiedQuorum};
use quiver_quorum::{Error, PublicShares, QuorumSuite, SecretShare, SigningNonces, SigningPackage};
use rand_core::CryptoRngCore;

use super::master::{Committed, Contribution, ShareSigner};
use crate::threshold::frost::package;

/// The share and the statement that was verified are of one quorum and one version.
pub(super) fn check<S: QuorumSuite>(
    deployment: &Deployment<S>,
    share: &SecretShare<S>,
    statement: &VerifiedQuorum,
) -> Result<(), Error> {
    if share.master() != deployment.master() {
        return Err(Error::WrongQuorum);
    }
    share.matches(&PublicShares::decode(statement.shares())?)
}

pub(super) fn signer<S: QuorumSuite>(share: SecretShare<S>) -> Box<dyn ShareSigner<S>> {
    Box::new(Arc::new(share))
}

impl<S: QuorumSuite> ShareSigner<S> for Arc<SecretShare<S>> {
    fn commit(&self, rng: &mut dyn CryptoRngCore) -> Result<Committed<S>, Error> {
        // §3.6: D_j ‖ E_j go out, d_j and e_j stay in the closure, which can be called once.
        let (nonces, commitment) = SecretShare::commit(self, rng)?;
        let share = Self::clone(self);
        let sign = move |message: Vec<u8>, parts: &[(KgcId, Vec<u8>)]| {
            contribute(&share, nonces, &package(share.version(), message, parts)?)
        };
        Ok(Committed { commitment: commitment.encode(), sign: Box::new(sign) })
    }
}

fn contribute<S: QuorumSuite>(
    share: &SecretShare<S>,
    nonces: SigningNonces<S>,
    package: &SigningPackage<S>,
) -> Result<Contribution<S>, Error> {
    // §3.6: z_j, and with it the nonces are used up.
    let z = share.sign(nonces, package)?;
    Ok(Contribution { package: package.digest(), r: package.commitment(share.master())?, share: z.encode() })
}
