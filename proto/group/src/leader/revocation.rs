//! Revocation lists at a leader: fetches newer ones from its KGCs, and sends its own on request.
//! docs/protocol.md §12.3.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{RevocationStatement, Revoked, Suite};
use quiver_machine::{Peer, due};
use quiver_message::{Message, RevocationQuery};

use super::LeaderEvent;
use super::context::LeaderContext;
use super::store::Change;

/// Time between two queries to the KGCs for a newer list.
const ASK_EVERY: Duration = Duration::from_secs(60);

/// Schedule of queries to the KGCs for a newer revocation list.
#[derive(Debug, Default)]
pub(super) struct RevocationPolling {
    next: Option<Duration>,
}

impl RevocationPolling {
    /// A KGC is connected.
    pub(super) fn ask_now(&mut self, now: Duration) {
        self.next = Some(now);
    }

    pub(super) fn tick<S: Suite>(&mut self, cx: &mut LeaderContext<'_, S>) {
        if !due(self.next, cx.now.monotonic) {
            return;
        }
        self.next = (!cx.peers.kgcs.is_empty()).then(|| cx.now.monotonic + ASK_EVERY);
        let query = Message::<S>::RevocationQuery(cx.store.revocations.query());
        let proofs = unlisted_proofs(cx);
        for kgc in &cx.peers.kgcs {
            // §10.7: a KGC revokes the key of a leader that is proven false.
            for proof in &proofs {
                cx.out.send_encoded(*kgc, proof.clone());
            }
            cx.out.send(&cx.config.deployment, *kgc, &query);
        }
    }

    pub(super) const fn deadline(&self) -> Option<Duration> {
        self.next
    }
}

/// Proofs against leaders that the list held does not name, as messages: until it does, the KGCs may have
/// lost them. A list leaves out an identity that ended more than a day ago (§12.3), and so does this.
fn unlisted_proofs<S: Suite>(cx: &LeaderContext<'_, S>) -> Vec<Vec<u8>> {
    let (list, now) = (cx.store.revocations.list(), cx.now.unix);
    let counts = |proof: &[u8]| match Message::<S>::decode(&cx.config.deployment, proof) {
        Ok(Message::EquivocationProof(proof)) => {
            let lasts = |identity| !Revoked::from(identity).has_ended(now);
            lasts(&proof.first.core.leader.identity) || lasts(&proof.second.core.leader.identity)
        }
        _ => false,
    };
    let refused = cx.store.refused.iter();
    let unlisted = refused.filter(|(serial, proof)| !list.names_serial(serial) && counts(proof));
    unlisted.map(|(_, proof)| proof.to_vec()).collect()
}

/// Sends the list held to a peer that holds an older one (§12.7: not too often).
pub(super) fn answer_query<S: Suite>(cx: &mut LeaderContext<'_, S>, from: Peer, query: &RevocationQuery) {
    if cx.peers.list_answers.take(cx.now.monotonic, from).is_ok()
        && let Some(list) = cx.store.revocations.answer(query)
    {
        cx.send(from, &list);
    }
}

/// Takes a list from anywhere. Returns whether it is newer than the one held.
pub(super) fn take_list<S: Suite>(cx: &mut LeaderContext<'_, S>, from: Peer, bytes: &[u8]) -> bool {
    let newer = |number| number > cx.store.revocations.number();
    // §10.9: one that claims to be newer costs the check of a signature.
    if RevocationStatement::claimed_number(bytes).is_ok_and(newer) && !cx.affords_check(from) {
        return false;
    }
    match cx.store.revocations.offer(&cx.config.deployment, bytes) {
        // §12.7: dropped before its signature was verified.
        Ok(false) => false,
        Err(error) => {
            cx.blame(from, error);
            false
        }
        Ok(true) => {
            // §15: durable before anything that depends on it leaves.
            cx.persist(&[Change::Revocations(bytes.to_vec())]);
            cx.event(LeaderEvent::RevocationList { number: cx.store.revocations.number() });
            true
        }
    }
}
