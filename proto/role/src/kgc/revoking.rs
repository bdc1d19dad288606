//! Revocation lists at the KGC.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{EquivocationProof, Handle, RevocationList, Suite};
use quiver_message::RevocationQuery;
use rand_core::CryptoRngCore;

use super::{Kgc, KgcEvent, KgcRecord};
use crate::threshold::Master;
use crate::{Now, Peer};

/// How many peers are told of a new list at once; others learn its number from headers and ask.
const MAX_LISTENERS: usize = 4096;

/// Seconds after which a KGC of a quorum asks again for a list that is due.
const RENEWAL_PATIENCE: u64 = 60;

impl<S: Suite> Kgc<S> {
    pub(super) fn revocation_query(&mut self, from: Peer, query: &RevocationQuery) {
        if self.listeners.len() < MAX_LISTENERS {
            self.listeners.insert(from);
        }
        self.answer(from, query);
    }

    fn answer(&mut self, to: Peer, query: &RevocationQuery) {
        if let Some(list) = self.revocations.answer(query) {
            self.out.send(&self.config.deployment, to, &list);
        }
    }

    /// Signs a list that names these beside all named before; nothing new, no new list.
    pub(super) fn revoke_drones(
        &mut self,
        now: Now,
        handles: Vec<Handle>,
        serials: Vec<[u8; 16]>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let old = self.revocations.list();
        let all_handles: BTreeSet<Handle> = old.handles.iter().copied().chain(handles).collect();
        let all_serials: BTreeSet<[u8; 16]> = old.serials.iter().copied().chain(serials).collect();
        if all_handles.len() == old.handles.len() && all_serials.len() == old.serials.len() {
            return;
        }
        let (handles, serials) = (all_handles.into_iter().collect(), all_serials.into_iter().collect());
        self.sign_list(now, handles, serials, rng);
    }

    /// Proof that a leader signed two headers for one epoch. It needs no operator's word: the leader's key is revoked.
    pub(super) fn equivocation(
        &mut self,
        now: Now,
        from: Peer,
        proof: EquivocationProof<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let core = &proof.first.core;
        // Known long since: no curve arithmetic for it.
        if self.revocations.names(&core.leader) {
            return;
        }
        let (group, epoch) = (core.group.clone(), core.epoch);
        match proof.verify(&self.config.deployment, &group) {
            Err(error) => self.blame(from, error.into()),
            Ok(leader) => {
                let (name, handle) = (leader.identity.name.clone(), leader.handle());
                self.out.event(KgcEvent::Equivocation { name, handle, epoch });
                self.revoke_drones(now, alloc::vec![handle], Vec::new(), rng);
                self.renew_list(now, rng);
            }
        }
    }

    /// A list that nobody renews counts as stale one day: sign an equal one before that.
    pub(super) fn renew_list(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let old = self.revocations.list();
        if old.number > 0 && now.unix >= self.renewal_time() {
            let (handles, serials) = (old.handles.clone(), old.serials.clone());
            self.sign_list(now, handles, serials, rng);
        }
        // Of a list that is due and that others have to sign, they are told again after a while.
        let patience = if matches!(self.config.master, Master::Whole(_)) { 1 } else { RENEWAL_PATIENCE };
        let wait = Duration::from_secs(self.renewal_time().saturating_sub(now.unix).max(patience));
        self.renewal = (self.revocations.number() > 0).then(|| now.monotonic.saturating_add(wait));
    }

    /// A quarter of a list's life before it ends, in seconds since 1970.
    fn renewal_time(&self) -> u64 {
        self.revocations.list().next_update.saturating_sub(self.config.revocation_validity / 4)
    }

    fn sign_list(
        &mut self,
        now: Now,
        handles: Vec<Handle>,
        serials: Vec<[u8; 16]>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let number = self.revocations.number() + 1;
        let next_update = now.unix.saturating_add(self.config.revocation_validity.max(1));
        let list = RevocationList { number, issued: now.unix, next_update, handles, serials };
        let Master::Whole(master) = &self.config.master else {
            return self.out.event(KgcEvent::RevocationListWanted(list));
        };
        match master.sign_revocations(&self.config.deployment, list, rng) {
            Ok(signed) => self.take_list(signed.encode()),
            Err(error) => self.out.event(KgcEvent::RevocationFailed(error)),
        }
    }

    /// A list that this KGC, or the quorum it is of, has signed.
    pub(super) fn take_list(&mut self, bytes: Vec<u8>) {
        match self.revocations.offer(&self.config.deployment, &bytes) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.out.event(KgcEvent::RevocationFailed(error)),
        }
        let number = self.revocations.number();
        self.registry.revoke_serials(&self.revocations.list().serials);
        self.out.persist(KgcRecord::RevocationList { number, list: bytes });
        self.out.event(KgcEvent::RevocationListSigned { number });
        for peer in self.listeners.clone() {
            self.answer(peer, &RevocationQuery { number: number.saturating_sub(1) });
        }
    }
}
