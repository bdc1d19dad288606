//! Who may no longer be here: evictions by the operator, revocations by the KGC.

use core::time::Duration;

use alloc::vec::Vec;

use quiver_ainq::{Slot, Suite};
use quiver_message::{Message, RevocationQuery};
use rand_core::CryptoRngCore;

use super::memory::Change;
use super::{Leader, LeaderEvent};
use crate::{Now, Peer};

/// How often a leader asks its KGCs for a newer list.
const ASK_EVERY: Duration = Duration::from_secs(60);

impl<S: Suite> Leader<S> {
    /// Puts members out and keeps them out. Waits for no batch.
    pub(super) fn evict(&mut self, now: Now, slots: &[Slot], rng: &mut dyn CryptoRngCore) {
        let handles: Vec<_> =
            slots.iter().filter_map(|slot| self.roster().get(*slot)).map(|public| public.handle()).collect();
        if !handles.is_empty() {
            self.backlog.evict(handles);
            self.rekey(now, rng);
        }
    }

    pub(super) fn ask_for_revocations(&mut self, now: Now) {
        self.ask_revocations = (!self.kgcs.is_empty()).then(|| now.monotonic + ASK_EVERY);
        let query =
            Message::<S>::RevocationQuery(RevocationQuery { number: self.memory.revocations.number() });
        for kgc in &self.kgcs {
            self.out.send(&self.config.deployment, *kgc, &query);
        }
    }

    pub(super) fn revocation_query(&mut self, from: Peer, query: &RevocationQuery) {
        if let Some(list) = self.memory.revocations.answer(query) {
            self.out.send(&self.config.deployment, from, &list);
        }
    }

    /// A list from anywhere. Members that a newer one names are put out at once, and their connections are cut.
    pub(super) fn revocation_list(
        &mut self,
        now: Now,
        from: Peer,
        bytes: &[u8],
        rng: &mut dyn CryptoRngCore,
    ) {
        match self.memory.revocations.offer(&self.config.deployment, bytes) {
            Ok(false) => {}
            Err(error) => self.blame(from, error),
            Ok(true) => {
                self.persist(&[Change::Revocations(bytes.to_vec())]);
                self.out.event(LeaderEvent::RevocationList { number: self.memory.revocations.number() });
                self.evict_revoked(now, rng);
            }
        }
    }

    fn evict_revoked(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let roster = self.roster().iter();
        let revoked =
            roster.filter(|(_, public)| self.memory.revocations.names(public)).map(|(slot, _)| slot);
        let revoked: Vec<Slot> = revoked.collect();
        let peers: Vec<Peer> = revoked.iter().filter_map(|slot| self.links.peer(*slot)).collect();
        self.evict(now, &revoked, rng);
        for peer in peers {
            // A gateway that still carries others is not cut off for one of its drones.
            if !self.links.carries(peer) {
                self.out.block(peer);
            }
        }
    }
}
