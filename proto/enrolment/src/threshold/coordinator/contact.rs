//! Connected KGCs of a quorum, and their state in the enrolment.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{KgcId, Suite, VerifiedQuorum};
use quiver_crypto::{Digest, Hasher};
use quiver_machine::{Now, Peer};
use quiver_message::{Nonce, RefusalReason};

use super::ShareVerifier;
use super::ascending;

/// A connected KGC.
#[derive(Debug)]
pub(super) struct Contact {
    pub(super) peer: Peer,
    pub(super) stage: ContactStage,
    /// Not asked, unless the others are too few.
    pub(super) aside: bool,
    /// Reason of its refusal, if it was set aside for one.
    pub(super) refused: Option<RefusalReason>,
    /// Time until which it must not be asked.
    pub(super) rests_until: Duration,
}

/// Stage of a KGC.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ContactStage {
    /// Not asked.
    Idle,
    /// Asked for a cookie.
    Greeted(Nonce),
    /// Has the request.
    Asked,
    /// Has sent its commitment.
    Committed {
        kgc: KgcId,
        commitment: Vec<u8>,
        /// Digest of its public shares.
        shares: Digest,
    },
    /// Has been sent the package.
    Signing,
}

/// The quorum's statement about its shares.
#[derive(Debug)]
pub(super) struct SharesStatement<S: Suite> {
    /// Bytes of the statement, so that a repetition needs no verification.
    pub(super) statement: Vec<u8>,
    /// Names the public shares, which the quorum may have signed more than once.
    pub(super) shares: Digest,
    pub(super) verifier: Arc<dyn ShareVerifier<S>>,
}

impl Contact {
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, stage: ContactStage::Idle, aside: false, refused: None, rests_until: Duration::ZERO }
    }

    pub(super) fn is_usable(&self, now: Now) -> bool {
        !self.aside && self.rests_until <= now.monotonic
    }
}

impl<S: Suite> SharesStatement<S> {
    pub(super) fn new(
        statement: &[u8],
        verified: &VerifiedQuorum,
        verifier: Arc<dyn ShareVerifier<S>>,
    ) -> Self {
        let shares = Hasher::new("quiver/1 known public shares").lp(verified.shares()).finish();
        Self { statement: statement.to_vec(), shares, verifier }
    }
}

/// The KGCs that have committed themselves and not signed, ascending.
pub(super) fn answered(contacts: &[Contact]) -> Vec<KgcId> {
    let committed = contacts.iter().filter_map(|contact| match contact.stage {
        ContactStage::Committed { kgc, .. } => Some(kgc),
        _ => None,
    });
    let mut answered = ascending(committed, |kgc| *kgc);
    answered.dedup();
    answered
}

/// The versions of the shares of the KGCs that have committed themselves and not signed, ascending by KGC.
pub(super) fn versions<S: Suite>(known: &[SharesStatement<S>], contacts: &[Contact]) -> Vec<(KgcId, u32)> {
    let committed = contacts.iter().filter_map(|contact| match &contact.stage {
        ContactStage::Committed { kgc, shares, .. } => {
            let known = known.iter().find(|known| known.shares == *shares)?;
            Some((*kgc, known.verifier.version()))
        }
        _ => None,
    });
    ascending(committed, |(kgc, _)| *kgc)
}

/// The KGCs of a round, with what they committed to.
pub(super) type Signers = Vec<(KgcId, Peer, Vec<u8>)>;

/// t KGCs that have committed themselves under the same version of the shares, the newest first.
pub(super) fn signers<S: Suite>(
    known: &[SharesStatement<S>],
    contacts: &[Contact],
) -> Option<(Arc<dyn ShareVerifier<S>>, Signers)> {
    // §3.6: one version of the shares for a round, the newest for which there are t.
    let by_version = ascending(known, |known| core::cmp::Reverse(known.verifier.version()));
    by_version.into_iter().find_map(|known| {
        let mut signers = Signers::new();
        for contact in contacts {
            let ContactStage::Committed { kgc, commitment, shares } = &contact.stage else { continue };
            // Two claim to be the same KGC: the first is believed until its share proves otherwise.
            let taken = signers.iter().any(|(there, ..)| there == kgc);
            // §3.10: those excluded stay out as long as the others are enough.
            if *shares == known.shares && !contact.aside && !taken {
                signers.push((*kgc, contact.peer, commitment.clone()));
            }
        }
        let threshold = usize::from(known.verifier.threshold());
        (signers.len() >= threshold).then(|| {
            signers.truncate(threshold);
            (Arc::clone(&known.verifier), signers)
        })
    })
}
