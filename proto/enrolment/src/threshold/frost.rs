//! The interfaces of [`threshold`](super) over `quiver-quorum`.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::{KgcId, UnverifiedPartialKey, VerifiedQuorum};
use quiver_crypto::{Digest, Zeroizing};
use quiver_quorum::{Commitment, Error, PublicShares, QuorumSuite, SignatureShare, SigningPackage};

use super::ShareVerifier;

pub(crate) fn read<S: QuorumSuite>(statement: &VerifiedQuorum) -> Result<Box<dyn ShareVerifier<S>>, Error> {
    Ok(Box::new(PublicShares::<S>::decode(statement.shares())?))
}

pub(super) fn package<S: QuorumSuite>(
    version: u32,
    message: Vec<u8>,
    parts: &[(KgcId, Vec<u8>)],
) -> Result<SigningPackage<S>, Error> {
    let parts = parts.iter().map(|(kgc, commitment)| Ok((*kgc, Commitment::decode(commitment)?)));
    SigningPackage::new(version, message, parts.collect::<Result<Vec<_>, Error>>()?)
}

impl<S: QuorumSuite> ShareVerifier<S> for PublicShares<S> {
    fn threshold(&self) -> u16 {
        self.parameters().threshold()
    }

    fn version(&self) -> u32 {
        Self::version(self)
    }

    fn check_commitment(&self, kgc: KgcId, commitment: &[u8]) -> Result<(), Error> {
        self.parameters().check(kgc)?;
        Commitment::<S>::decode(commitment).map(drop)
    }

    fn package(&self, message: &[u8], parts: &[(KgcId, Vec<u8>)]) -> Result<Digest, Error> {
        package::<S>(Self::version(self), message.to_vec(), parts).map(|package| package.digest())
    }

    fn aggregate(
        &self,
        message: &[u8],
        parts: &[(KgcId, Vec<u8>)],
        shares: &[(KgcId, Zeroizing<Vec<u8>>)],
    ) -> Result<UnverifiedPartialKey<S>, Error> {
        let package = package::<S>(Self::version(self), message.to_vec(), parts)?;
        let mut decoded = BTreeMap::new();
        let mut culprits = Vec::new();
        // §3.10: a share that does not decode is as wrong as one that does not verify.
        for (kgc, share) in shares {
            match SignatureShare::<S>::decode(share) {
                Ok(share) => drop(decoded.insert(*kgc, share)),
                Err(_) => culprits.push(*kgc),
            }
        }
        if !culprits.is_empty() {
            return Err(Error::InvalidSignatureShares { culprits });
        }
        // §3.6: s = Σ z_j and R, verified under P_pub; otherwise FROST names the wrong shares.
        self.aggregate_partial_key(&package, &decoded)
    }
}
