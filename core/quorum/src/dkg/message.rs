//! Messages of key generation and refresh, encoded.

use alloc::vec::Vec;

use frost_core::Signature;
use frost_core::keys::VerifiableSecretSharingCommitment;
use frost_core::keys::dkg::round1;
use quiver_ainq::KgcId;
use quiver_crypto::canonical::Reader;

use super::plan::CeremonyPlan;
use crate::public::frost;
use crate::suite::SCALAR_LEN;
use crate::{Error, QuorumParameters, QuorumSuite};

/// Bytes of an echo.
pub const ECHO_LEN: usize = 32;

/// Bytes of a share of a polynomial, in every suite.
pub const SHARE_LEN: usize = SCALAR_LEN;

/// Bytes of a KGC's package in a key generation: t commitments and a Schnorr signature. In a refresh it is
/// one commitment less, because the secret's is the identity.
#[must_use]
pub fn package_len<S: QuorumSuite>(parameters: QuorumParameters) -> usize {
    (usize::from(parameters.threshold()) + 1) * S::POINT_LEN + SCALAR_LEN
}

impl<S: QuorumSuite> CeremonyPlan<S> {
    /// Commitments in a package: exactly t, or t − 1 of a polynomial without a constant.
    fn commitments(&self) -> usize {
        usize::from(self.parameters.threshold()) - usize::from(self.old.is_some())
    }

    pub(super) fn encode_package(&self, package: &round1::Package<S::Frost>) -> Result<Vec<u8>, Error> {
        let mut bytes = package.commitment().serialize_whole().map_err(frost)?;
        bytes.extend(package.proof_of_knowledge().serialize().map_err(frost)?);
        Ok(bytes)
    }

    /// A package of exactly as many commitments as it takes, each a point other than the identity.
    pub(super) fn decode_package(&self, bytes: &[u8]) -> Result<round1::Package<S::Frost>, Error> {
        let mut reader = Reader::new(bytes);
        let commitment = reader.take(self.commitments().saturating_mul(S::POINT_LEN))?;
        let proof = reader.take(S::POINT_LEN.saturating_add(SCALAR_LEN))?;
        reader.end()?;
        let commitment = VerifiableSecretSharingCommitment::deserialize_whole(commitment)
            .map_err(|_| Error::InvalidPoint)?;
        let proof = Signature::deserialize(proof).map_err(|_| Error::InvalidPoint)?;
        Ok(round1::Package::new(commitment, proof))
    }

    /// Checks that a share is f(i)·P = Σ i^k·C_k for the commitments C_k of a package and this KGC's i.
    ///
    /// FROST checks it as well, but only once all shares are there, and does not name the wrong one in a
    /// refresh.
    pub(super) fn share_fits(&self, package: &[u8], share: &[u8]) -> Option<bool> {
        let share = quiver_crypto::Zeroizing::new(S::scalar_decode(share)?);
        let (commitments, _) = package.split_at_checked(self.commitments().saturating_mul(S::POINT_LEN))?;
        let points = commitments.chunks(S::POINT_LEN).map(S::decode).collect::<Option<Vec<_>>>()?;
        Some(S::mul_base(&share) == S::vartime_multiscalar(&self.powers(points.len()), &points))
    }

    /// The powers of this KGC's identifier that belong to a package's commitments.
    fn powers(&self, count: usize) -> Vec<S::Scalar> {
        let at = S::scalar_from_u128(u128::from(self.kgc));
        let one = S::scalar_from_u128(1);
        let first = if self.old.is_some() { at } else { one };
        core::iter::successors(Some(first), |power| Some(*power * at)).take(count).collect()
    }
}

/// An error about a message, with the name of who sent it.
pub(super) const fn blame(culprit: KgcId) -> impl Fn(Error) -> Error {
    move |_| Error::InvalidMessage { culprit }
}
