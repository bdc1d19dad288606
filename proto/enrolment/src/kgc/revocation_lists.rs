//! Signs, renews and distributes revocation lists at the KGC (docs/protocol.md §12.3 to §12.6).

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    BOARD_REVOCATION_LIST_LEN, EquivocationProof, Error, MAX_REVOCATION_LIST_LEN, RevocationStatement,
    Revoked, SignedRevocationList, Suite, UnixTime,
};
use quiver_machine::{Now, Peer};
use quiver_message::{Message, RevocationQuery};
use rand_core::CryptoRngCore;

use super::{Kgc, KgcEvent, KgcRecord};

/// Greatest number of peers that are sent a new list at once; others learn its number from headers and ask.
const MAX_LISTENERS: usize = 4096;
/// Greatest number of bytes that they are sent together: anybody may have asked.
const MAX_TOLD: usize = 32 << 20;

/// Seconds after which a KGC of a quorum asks again for a list that is due.
const RENEWAL_PATIENCE: u64 = 60;

/// Sizes of the newest revocation list against their limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RevocationUsage {
    /// Bytes of the list, of [`MAX_REVOCATION_LIST_LEN`].
    pub len: usize,
    /// Bytes without the edges, of [`BOARD_REVOCATION_LIST_LEN`] that boards take.
    pub leaders_len: usize,
    /// Drones it names.
    pub drones: usize,
    /// Time by which the next one is due; 0 without a list.
    pub next_update: UnixTime,
}

impl RevocationUsage {
    /// Sizes of a list that is known to be genuine.
    #[must_use]
    pub fn of<S: Suite>(list: &SignedRevocationList<S>) -> Self {
        let (len, leaders_len) = (list.encode().len(), list.leaders_only().len());
        let list = list.unverified();
        Self { len, leaders_len, drones: list.revoked.len(), next_update: list.next_update }
    }

    /// Each size of four fifths of its limit or more: its name, its bytes, and the limit.
    pub fn fills(&self) -> impl Iterator<Item = (&'static str, usize, usize)> {
        let whole = ("revocation list", self.len, MAX_REVOCATION_LIST_LEN);
        let short = ("revocation list for boards", self.leaders_len, BOARD_REVOCATION_LIST_LEN);
        [whole, short].into_iter().filter(|(_, len, limit)| len.saturating_mul(5) >= limit.saturating_mul(4))
    }
}

impl<S: Suite> Kgc<S> {
    /// Sizes of the newest revocation list against their limits.
    #[must_use]
    pub fn revocation_usage(&self) -> RevocationUsage {
        let list = self.revocations.list();
        RevocationUsage {
            len: self.revocations.signed_bytes().map_or(0, <[u8]>::len),
            leaders_len: self.revocations.leaders_only().map_or(0, <[u8]>::len),
            drones: list.revoked.len(),
            next_update: list.next_update,
        }
    }

    /// Returns true if this drone is refused and waits for a revocation list that names it: while a newer
    /// list may come from a peer, or because none could be signed.
    #[must_use]
    pub fn awaits_revocation(&self, serial: &[u8; 16]) -> bool {
        self.wanted.contains_key(serial)
    }

    pub(super) fn revocation_query(&mut self, now: Now, from: Peer, query: &RevocationQuery) {
        if self.listeners.len() < MAX_LISTENERS {
            self.listeners.insert(from, query.max_len);
        }
        self.answer(from, query);
        if query.number > self.revocations.number() {
            self.revocations_claimed(now, from, query.number);
        }
    }

    fn answer(&mut self, to: Peer, query: &RevocationQuery) {
        if let Some(list) = self.revocations.answer(query) {
            self.out.send(&self.config.deployment, to, &list);
        }
    }

    /// Signs a list that names these beside all named before, as soon as no newer list is to be expected;
    /// without a new entry, no new list. An identity that has ended needs no revocation.
    pub(super) fn revoke_drones(&mut self, now: Now, drones: Vec<Revoked>, rng: &mut dyn CryptoRngCore) {
        for drone in drones {
            let drone = self.registry.drone(&drone.serial).unwrap_or(drone);
            let named = self.revocations.list().find(&drone.serial);
            // §12.3: an identity that ended a day ago is refused by every clock, without a list.
            if !drone.has_ended(now.unix) && !named.is_some_and(|named| named.covers(&drone)) {
                let wanted = self.wanted.entry(drone.serial).or_insert(drone);
                *wanted = wanted.and(&drone);
            }
        }
        if self.signs_alone() {
            // §3.4: they enrol no more, whenever the list is signed.
            self.registry.revoke_drones(self.wanted.values());
        }
        // §12.5: signs nothing before the claimed list has come or its time is over.
        if let Some(wait) = self.list_recovery.wait(now.monotonic).filter(|_| !self.wanted.is_empty()) {
            self.out.event(KgcEvent::RevocationDeferred { wait });
        }
        self.sign_wanted(now, rng);
    }

    /// Signs a list that also names who waits for it. One that would be too long is tried again with the
    /// next.
    pub(super) fn sign_wanted(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.wanted.retain(|_, drone| !drone.has_ended(now.unix));
        if self.list_recovery.wait(now.monotonic).is_some() || self.wanted.is_empty() {
            return;
        }
        if let Err(error) = self.sign_list(now, true, rng) {
            self.out.event(KgcEvent::RevocationFailed(error));
        }
    }

    /// Takes proof that a leader signed two headers for one epoch. It needs no operator's approval: the drone
    /// is revoked.
    pub(super) fn equivocation(
        &mut self,
        now: Now,
        from: Peer,
        proof: EquivocationProof<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let core = &proof.first.core;
        let serial = &core.leader.identity.serial;
        // Known long since: no curve arithmetic for it.
        if self.revocations.names(&core.leader) || self.wanted.contains_key(serial) {
            return;
        }
        let (group, epoch) = (core.group.clone(), core.epoch);
        // §10.7: a proof that does not hold blames its sender.
        match proof.verify(&self.config.deployment, &group) {
            Err(error) => self.blame(from, error.into()),
            Ok(leader) => {
                let (name, handle) = (leader.identity.name.clone(), leader.handle());
                let drone = Revoked::from(&leader.identity);
                self.out.event(KgcEvent::Equivocation { name, handle, epoch });
                self.revoke_drones(now, alloc::vec![drone], rng);
                self.renew_list(now, rng);
            }
        }
    }

    /// Renews the list with equal content before it becomes stale.
    pub(super) fn renew_list(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let wait = self.list_recovery.wait(now.monotonic);
        let renew = self.revocations.number() > 0 && now.unix >= self.renewal_time();
        // §12.3: renews what there is even at the limit, without the entries that do not fit.
        if renew
            && wait.is_none()
            && let Err(error) = self.sign_list(now, true, rng).or_else(|_| self.sign_list(now, false, rng))
        {
            self.out.event(KgcEvent::RevocationFailed(error));
        }
        // §5.4: a due list that others have to sign is requested again after a while.
        let alone = self.signs_alone();
        let patience = if alone { wait.map_or(1, |wait| wait.as_secs().max(1)) } else { RENEWAL_PATIENCE };
        let wait = Duration::from_secs(self.renewal_time().saturating_sub(now.unix).max(patience));
        self.renewal = (self.revocations.number() > 0).then(|| now.monotonic.saturating_add(wait));
    }

    /// A quarter of a list's life before it ends, in seconds since 1970.
    pub(super) fn renewal_time(&self) -> u64 {
        self.revocations.list().next_update.saturating_sub(self.config.revocation_validity / 4)
    }

    /// Signs a list of all entries of the newest, without those whose identity has ended, and with the
    /// waiting ones if asked to.
    fn sign_list(&mut self, now: Now, with_wanted: bool, rng: &mut dyn CryptoRngCore) -> Result<(), Error> {
        // §12.3: a KGC of a quorum knows only drones that it helped to issue: for others the entry contains
        // the end.
        let known = |drone: &Revoked| self.registry.drone(&drone.serial).unwrap_or(*drone);
        let mut revoked: Vec<Revoked> = self.revocations.list().revoked.iter().map(known).collect();
        revoked.extend(self.wanted.values().filter(|_| with_wanted));
        // §12.3: left out a day after the identity's end.
        revoked.retain(|drone| !drone.has_ended(now.unix));
        // §12.5: at least the time of issue: a KGC whose state went back does not count from there.
        let number = self.revocations.number().saturating_add(1).max(now.unix);
        let next_update = now.unix.saturating_add(self.config.revocation_validity.max(1));
        let mut list = RevocationStatement { number, issued: now.unix, next_update, revoked };
        list.sort();
        // §5.4: what a quorum revokes takes the signatures of t.
        let Some(master) = self.config.master.0.whole() else {
            self.out.event(KgcEvent::RevocationListWanted(list));
            return Ok(());
        };
        let signed = master.sign_revocations(&self.config.deployment, list, rng)?;
        self.take_list(signed.encode());
        Ok(())
    }

    /// A list that this KGC, or the quorum it is of, has signed.
    pub(super) fn take_list(&mut self, bytes: Vec<u8>) {
        match self.revocations.offer(&self.config.deployment, &bytes) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.out.event(KgcEvent::RevocationFailed(error)),
        }
        let number = self.revocations.number();
        // §15: durable before anybody receives it.
        self.out.persist(KgcRecord::RevocationList { number, list: bytes });
        self.out.event(KgcEvent::RevocationListSigned { number });
        self.list_in_force();
    }

    /// Applies a newer list, whatever its source.
    pub(super) fn list_in_force(&mut self) {
        let list = self.revocations.list();
        self.registry.revoke_drones(&list.revoked);
        self.wanted.retain(|serial, drone| !list.find(serial).is_some_and(|named| named.covers(drone)));
        let number = list.number;
        for (what, len, limit) in self.revocation_usage().fills() {
            self.out.event(KgcEvent::RevocationListFills { what, len, limit });
        }
        // §12.3: peers that asked before get it at once, those first that have been connected for longest;
        // others see its number in a header, and ask.
        let mut room = MAX_TOLD;
        for (peer, max_len) in self.listeners.clone() {
            let query = RevocationQuery { number: number.saturating_sub(1), max_len };
            let Some(list) = self.revocations.answer(&query) else { continue };
            let Message::RevocationList(quiver_message::RevocationList { list: bytes }) = &list else {
                continue;
            };
            let Some(left) = room.checked_sub(bytes.len()) else { break };
            room = left;
            self.out.send(&self.config.deployment, peer, &list);
        }
    }
}
