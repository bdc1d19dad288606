//! A signing round, as its coordinator sees it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use quiver_ainq::{DroneKeypair, Error, KgcId, PendingEnrolment, SealedShare, Suite};
use quiver_crypto::{Digest, Zeroizing};
use quiver_machine::Peer;

use super::{SharedRequest, ascending};
use crate::threshold::{EnrolShare, EnrolSigning, ShareVerifier};

/// The KGCs that sign, what they committed to, and the shares that have come.
pub(super) struct SigningRound<S: Suite> {
    verifier: Arc<dyn ShareVerifier<S>>,
    /// The message to sign.
    message: Vec<u8>,
    package: Digest,
    /// Commitments by ascending KGC.
    parts: Vec<(KgcId, Vec<u8>)>,
    /// Peers that sent the commitments, in the same order.
    peers: Vec<Peer>,
    shares: Vec<(KgcId, Zeroizing<Vec<u8>>)>,
    /// Number of times that the package was repeated.
    pub(super) repeats: u8,
}

/// KGCs with wrong shares, which end a round.
pub(super) type Culprits = Vec<(KgcId, Peer)>;

impl<S: Suite> SigningRound<S> {
    /// A round of these KGCs. None if their commitments make no signing package.
    pub(super) fn new(
        verifier: Arc<dyn ShareVerifier<S>>,
        message: Vec<u8>,
        signers: Vec<(KgcId, Peer, Vec<u8>)>,
    ) -> Option<Self> {
        // §3.6: the package lists the commitments by ascending KGC: one set of them has one digest.
        let signers = ascending(signers, |(kgc, ..)| *kgc);
        let peers = signers.iter().map(|(_, peer, _)| *peer).collect();
        let parts: Vec<_> = signers.into_iter().map(|(kgc, _, commitment)| (kgc, commitment)).collect();
        let package = verifier.package(&message, &parts).ok()?;
        Some(Self { verifier, message, package, parts, peers, shares: Vec::new(), repeats: 0 })
    }

    pub(super) fn package(&self) -> &Digest {
        &self.package
    }

    /// The signers.
    pub(super) fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// The message to all signers.
    pub(super) fn order(&self, shared: &SharedRequest<S>) -> EnrolSigning {
        EnrolSigning { request_digest: shared.digest, parts: self.parts.clone() }
    }

    /// The KGC whose share is due from this peer; `None` if it has come, or the peer is not in this round.
    pub(super) fn due(&self, from: Peer) -> Option<KgcId> {
        self.silent().find(|(_, peer)| *peer == from).map(|(kgc, _)| kgc)
    }

    /// KGCs whose shares have not come.
    pub(super) fn silent(&self) -> impl Iterator<Item = (KgcId, Peer)> {
        let all = self.parts.iter().zip(&self.peers).map(|((kgc, _), peer)| (*kgc, *peer));
        all.filter(|(kgc, _)| !self.shares.iter().any(|(there, _)| there == kgc))
    }

    /// Takes the share of `kgc`. Returns whether it was the last one.
    pub(super) fn take(
        &mut self,
        pending: &PendingEnrolment<S>,
        kgc: KgcId,
        message: &EnrolShare,
    ) -> Result<bool, Error> {
        let sealed = SealedShare::decode(&message.share)?;
        if sealed.kgc() != kgc {
            return Err(Error::WrongKgc);
        }
        // §3.7: sealed for H(request), j and H(package): a share of another round does not open.
        let share = pending.open_share(&self.package, &sealed)?;
        self.shares.push((kgc, share));
        Ok(self.shares.len() == self.parts.len())
    }

    /// All shares are there: the key, or who spoilt it.
    pub(super) fn finish(
        self,
        accept: impl FnOnce(quiver_ainq::UnverifiedPartialKey<S>) -> Result<DroneKeypair<S>, Error>,
    ) -> Result<DroneKeypair<S>, Culprits> {
        let all = || self.parts.iter().zip(&self.peers).map(|((kgc, _), peer)| (*kgc, *peer));
        match self.verifier.aggregate(&self.message, &self.parts, &self.shares) {
            // §3.10: FROST has verified it; whatever else could be wrong with it is the doing of all.
            Ok(partial) => accept(partial).map_err(|_| all().collect()),
            // §3.10: a failure that names nobody is the doing of all, too.
            Err(error) if error.culprits().is_empty() => Err(all().collect()),
            Err(error) => Err(all().filter(|(kgc, _)| error.culprits().contains(kgc)).collect()),
        }
    }
}

impl<S: Suite> core::fmt::Debug for SigningRound<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let signers: Vec<KgcId> = self.parts.iter().map(|(kgc, _)| *kgc).collect();
        f.debug_struct("SigningRound")
            .field("signers", &signers)
            .field("shares", &self.shares.len())
            .finish_non_exhaustive()
    }
}
