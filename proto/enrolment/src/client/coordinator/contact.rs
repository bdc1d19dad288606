//! Connected KGCs of a quorum, and what they said so far.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{KgcId, Suite, VerifiedQuorum};
use quiver_crypto::{Digest, Hasher};
use quiver_machine::{Now, Peer};
use quiver_message::{Nonce, Reason};

use super::Verifier;
use crate::client::ascending;

/// A connected KGC.
#[derive(Debug)]
pub(super) struct Contact {
    pub(super) peer: Peer,
    pub(super) stage: Stage,
    /// Not asked, unless the others are too few.
    pub(super) aside: bool,
    /// What it said when it was set aside, if it refused.
    pub(super) refused: Option<Reason>,
    /// It asked to be left alone until then.
    pub(super) rests_until: Duration,
}

/// How far it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not asked.
    Idle,
    /// Asked for a cookie.
    Greeted(Nonce),
    /// Has the request.
    Asked,
    /// Has said what it will sign with.
    Committed {
        kgc: KgcId,
        commitment: Vec<u8>,
        /// Which public shares it goes by.
        shares: Digest,
    },
    /// Has been told to sign.
    Signing,
}

/// What the quorum said of its shares.
#[derive(Debug)]
pub(super) struct Known<S: Suite> {
    /// As it came, so that the same once more needs no check.
    pub(super) statement: Vec<u8>,
    /// Names the public shares, which the quorum may have signed more than once.
    pub(super) shares: Digest,
    pub(super) verifier: Arc<dyn Verifier<S>>,
}

impl Contact {
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, stage: Stage::Idle, aside: false, refused: None, rests_until: Duration::ZERO }
    }

    pub(super) fn is_usable(&self, now: Now) -> bool {
        !self.aside && self.rests_until <= now.monotonic
    }
}

impl<S: Suite> Known<S> {
    pub(super) fn new(statement: &[u8], verified: &VerifiedQuorum, verifier: Arc<dyn Verifier<S>>) -> Self {
        let shares = Hasher::new("quiver/1 known public shares").lp(verified.shares()).finish();
        Self { statement: statement.to_vec(), shares, verifier }
    }
}

/// The KGCs that have committed themselves and not signed, ascending.
pub(super) fn answered(contacts: &[Contact]) -> Vec<KgcId> {
    let committed = contacts.iter().filter_map(|contact| match contact.stage {
        Stage::Committed { kgc, .. } => Some(kgc),
        _ => None,
    });
    let mut answered = ascending(committed, |kgc| *kgc);
    answered.dedup();
    answered
}

/// The KGCs of a round, with what they committed to.
pub(super) type Signers = Vec<(KgcId, Peer, Vec<u8>)>;

/// t KGCs that have committed themselves under the same version of the shares, the newest first.
pub(super) fn signers<S: Suite>(
    known: &[Known<S>],
    contacts: &[Contact],
) -> Option<(Arc<dyn Verifier<S>>, Signers)> {
    let by_version = ascending(known, |known| core::cmp::Reverse(known.verifier.version()));
    by_version.into_iter().find_map(|known| {
        let mut signers = Signers::new();
        for contact in contacts {
            let Stage::Committed { kgc, commitment, shares } = &contact.stage else { continue };
            // Two who say that they are the same KGC: the first is believed until its share tells.
            let taken = signers.iter().any(|(there, ..)| there == kgc);
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
