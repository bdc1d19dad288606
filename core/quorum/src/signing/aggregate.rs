//! Aggregates signature shares at the coordinator, and names the culprits of a failure.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use frost_core::CheaterDetection;
use quiver_ainq::{KgcId, SchnorrSignature, StatementSignature, UnverifiedPartialKey};
use quiver_crypto::Zeroizing;

use super::{SignatureShare, SigningPackage};
use crate::public::gathered;
use crate::suite::identifier;
use crate::{Error, PublicShares, QuorumSuite};

impl<S: QuorumSuite> PublicShares<S> {
    /// A partial key, of a package whose message is an
    /// [`identity_statement`](quiver_ainq::identity_statement).
    ///
    /// FROST has checked it against P_pub and the message; what makes it a keypair is
    /// [`UnverifiedPartialKey::verify`], as with a single KGC.
    ///
    /// # Errors
    /// [`Error::InvalidSignatureShares`] names all KGCs whose shares are wrong; [`Error::WrongVersion`],
    /// [`Error::WrongNumber`], [`Error::UnknownKgc`] or [`Error::Incomplete`] if package and shares do not
    /// belong together.
    pub fn aggregate_partial_key(
        &self,
        package: &SigningPackage<S>,
        shares: &BTreeMap<KgcId, SignatureShare<S>>,
    ) -> Result<UnverifiedPartialKey<S>, Error> {
        let signature = self.aggregate(package, shares)?;
        // A partial key is encoded as s ‖ R, a signature as R ‖ z.
        let (commitment, response) = signature.split_at_checked(S::POINT_LEN).ok_or(Error::Frost)?;
        let mut partial = Zeroizing::new(Vec::with_capacity(signature.len()));
        partial.extend_from_slice(response);
        partial.extend_from_slice(commitment);
        UnverifiedPartialKey::decode(&partial).map_err(|_| Error::Frost)
    }

    /// A statement of the quorum, of a package whose message is a
    /// [`Purpose::message`](quiver_ainq::Purpose::message).
    ///
    /// # Errors
    /// As [`aggregate_partial_key`](Self::aggregate_partial_key).
    pub fn aggregate_statement(
        &self,
        package: &SigningPackage<S>,
        shares: &BTreeMap<KgcId, SignatureShare<S>>,
    ) -> Result<StatementSignature<S>, Error> {
        let signature =
            SchnorrSignature::decode(&self.aggregate(package, shares)?).map_err(|_| Error::Frost)?;
        Ok(StatementSignature::new(signature))
    }

    /// R ‖ z.
    fn aggregate(
        &self,
        package: &SigningPackage<S>,
        shares: &BTreeMap<KgcId, SignatureShare<S>>,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        package.check(self.parameters(), self.version())?;
        let signers = package.commitments();
        // Only those sign whose commitments are in the package.
        if let Some(stranger) = shares.keys().find(|kgc| !signers.contains_key(kgc)) {
            return Err(Error::UnknownKgc(*stranger));
        }
        let missing: Vec<KgcId> = signers.keys().copied().filter(|kgc| !shares.contains_key(kgc)).collect();
        if !missing.is_empty() {
            return Err(Error::Incomplete { missing });
        }
        // RFC 9591, sections 5.3 and 5.4: z = Σ z_j, and who sent a wrong share.
        let for_frost =
            gathered(shares.iter().map(|(kgc, share)| Ok((identifier::<S>(*kgc)?, share.for_frost()?))))?;
        let public = self.for_frost(signers.keys().copied())?;
        // The aggregate's scalar is a drone's secret, and FROST's type prints it and erases nothing. There is
        // no way to it but this copy, which is taken at once; the sum of the shares itself stays in FROST's
        // stack frame.
        frost_core::aggregate_custom(
            &package.for_frost()?,
            &for_frost,
            &public,
            CheaterDetection::AllCheaters,
        )
        .and_then(|signature| signature.serialize())
        .map(Zeroizing::new)
        .map_err(|error| self.blame(&error))
    }

    fn blame(&self, error: &frost_core::Error<S::Frost>) -> Error {
        let named = error.culprits();
        let is_named = |kgc: &KgcId| identifier::<S>(*kgc).is_ok_and(|kgc| named.contains(&kgc));
        let culprits: Vec<KgcId> = self.parameters().kgcs().filter(is_named).collect();
        if culprits.is_empty() {
            Error::DegenerateCommitments
        } else {
            Error::InvalidSignatureShares { culprits }
        }
    }
}
