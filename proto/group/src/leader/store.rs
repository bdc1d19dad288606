//! The stored state of a leader, as a log of changes: boot number, keys, roster, spare points, evictions,
//! newest epoch.
//!
//! A group of thousands changes a little at a time, so a leader persists changes, not its whole state.
//! Applying a change twice is harmless, so a driver may compact the log
//! ([`Leader::checkpoint`](super::Leader::checkpoint)) whenever it likes. No group secret is in it: no l, no
//! W, no K_g. A leader that restarts opens a new term. In a deployment with a second factor κ is in it, which
//! alone opens nothing; it steps with every term, and the driver compacts the log then, so that the one
//! before is gone.

pub(super) mod kem_keys;
mod record;
mod replay;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::{
    Deployment, DroneKeypair, Element, Epoch, Handle, MAX_SLOTS, Name, PendingEnrolment, Roster, Serial,
    Signature, Slot, SpareStatement, Suite,
};

use self::kem_keys::KemKeys;
pub(super) use self::record::{
    Change, away_change, departed_change, enrolled_change, epoch_change, held_change, notice_change, origin,
    refused_change, spare_change,
};
use super::LeaderRecord;
use super::failover::eviction_notices::EvictionNotices;
use crate::refused::RefusedLeaders;
use quiver_machine::Now;
use quiver_machine::Revocations;

/// Maximum number of absent members without slots that are remembered by name. Further ones can be evicted
/// once they are back.
const MAX_AWAY: usize = 1 << 16;
/// Maximum number of pinned identities (first keys): twice as many as a group has members. Further ones are
/// not pinned.
const MAX_PINS: usize = 1 << 21;

/// Minimum time between two records of a member's newer spare points, in seconds on the monotonic clock. An
/// honest member sends one for each term that it follows, and sends it again after as long.
const SPARE_PACE: u32 = 5;
/// Seconds by which a member may be ahead of that: three points at once, for terms that follow each other
/// quickly.
const SPARE_AHEAD: u32 = 2 * SPARE_PACE;

/// A member's spare point, or the number of the last one that was spent. Kept encoded: a decoded point is six
/// times as large, and needed only when a term opens.
#[derive(Clone, Debug)]
pub(super) struct Spare<S: Suite> {
    /// Number of the spare point, from 1; 0 if there is none.
    pub(super) q: u64,
    pub(super) point: Option<S::Encoding>,
    /// The member's signature, encoded, for deputies, which verify it. Empty without a point, and at a single
    /// leader.
    signature: Box<[u8]>,
    /// Up to when, in seconds on the monotonic clock, this member's allowance of records is used.
    used: u32,
}

impl<S: Suite> Spare<S> {
    pub(super) fn spent(q: u64) -> Self {
        Self { q, point: None, signature: Box::default(), used: 0 }
    }

    /// The spare point that a statement, already verified, names.
    pub(super) fn of(statement: &SpareStatement<S>) -> Self {
        let signature = statement.signature.encode().into_boxed_slice();
        Self { q: statement.q, point: Some(*statement.point.encoding()), signature, used: 0 }
    }

    /// Statement as the member published it, unless it is spent.
    pub(super) fn statement(&self) -> Option<SpareStatement<S>> {
        let signature = Signature::decode(&self.signature).ok()?;
        let point = Element::decode(self.point.as_ref()?.as_ref()).ok()?;
        Some(SpareStatement { q: self.q, point, signature })
    }

    /// The same with this much of its member's allowance used.
    pub(super) fn with_allowance(self, used: u32) -> Self {
        Self { used, ..self }
    }

    /// Returns true if both have the same record.
    pub(super) fn is_recorded_as(&self, other: &Self) -> bool {
        self.is(other) && self.signature.is_empty() == other.signature.is_empty()
    }

    /// Returns true if both are the same point.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.q == other.q && self.point.as_ref().map(AsRef::as_ref) == other.point.as_ref().map(AsRef::as_ref)
    }
}

/// The state that the changes amount to, but for the roster of a term in force, which its leadership holds.
#[derive(Debug)]
pub(super) struct LeaderStore<S: Suite> {
    pub(super) boot_no: u32,
    pub(super) pending: Option<PendingEnrolment<S>>,
    pub(super) keypair: Option<DroneKeypair<S>>,
    pub(super) revocations: Revocations<S>,
    pub(super) roster: Roster<S>,
    /// Indexed by slot.
    spares: Vec<Spare<S>>,
    /// True if members' signatures on their spare points are kept: a leader that is alone does without.
    keeps_signatures: bool,
    /// Members that lost their slots because they are away, so that they can be evicted all the same.
    pub(super) away: BTreeMap<Name, Serial>,
    /// The first key seen for each identity, by serial: a second one is refused, and evidence against a KGC
    /// that issues alone.
    pub(super) pins: BTreeMap<Serial, Handle>,
    /// The newest epoch made or seen, and its D.
    pub(super) newest: Option<(Epoch, [u8; 32])>,
    /// The epoch whose roster is held, and its D; older than the newest while standing by and not up to date.
    pub(super) held: Option<(Epoch, [u8; 32])>,
    /// Slots whose holder on the roster was removed since the epoch held, by a header. At most one for each
    /// slot on the roster.
    departed: BTreeMap<Slot, Epoch>,
    pub(super) notices: EvictionNotices<S>,
    pub(super) refused: RefusedLeaders,
    /// Signed requests under a second key of one identity.
    pub(super) evidence: Vec<Vec<u8>>,
    /// The second factor that it shares with drones.
    pub(super) kem: KemKeys<S>,
}

impl<S: Suite> LeaderStore<S> {
    pub(super) fn new(keeps_signatures: bool) -> Self {
        Self {
            boot_no: 0,
            pending: None,
            keypair: None,
            revocations: Revocations::new(),
            roster: Roster::new(),
            spares: Vec::new(),
            keeps_signatures,
            away: BTreeMap::new(),
            pins: BTreeMap::new(),
            newest: None,
            held: None,
            departed: BTreeMap::new(),
            notices: EvictionNotices::new(),
            refused: RefusedLeaders::new(),
            evidence: Vec::new(),
            kem: KemKeys::new(),
        }
    }

    /// The spare point of a member, or the number of its last one.
    pub(super) fn spare(&self, slot: Slot) -> Option<&Spare<S>> {
        self.spares.get(slot as usize).filter(|spare| spare.q > 0)
    }

    /// A member's used allowance once its spare point of this number is recorded now; `None` if a newer one
    /// comes too soon. So a member that signs one after another makes at most one record in [`SPARE_PACE`]
    /// seconds.
    pub(super) fn spare_allowance(&self, slot: Slot, q: u64, now: Now) -> Option<u32> {
        let (known, now) = (self.spare(slot), u32::try_from(now.monotonic.as_secs()).unwrap_or(u32::MAX));
        let used = known.map_or(0, |known| known.used).max(now);
        let newer = known.is_none_or(|known| known.q < q);
        // §10.9: one record for each member in 5 s, and three at once.
        (!newer || used - now <= SPARE_AHEAD).then(|| used.saturating_add(SPARE_PACE))
    }

    pub(super) fn set_spare(&mut self, slot: Slot, mut spare: Spare<S>) {
        let index = slot.min(MAX_SLOTS) as usize;
        if self.spares.len() <= index {
            self.spares.resize(index + 1, Spare::spent(0));
        }
        // §10.2: kept for deputies, which verify them.
        if !self.keeps_signatures {
            spare.signature = Box::default();
        }
        if let Some(place) = self.spares.get_mut(index) {
            *place = spare;
        }
    }

    /// Remembers a member that lost its slot because it is away, if there is room.
    pub(super) fn note_away(&mut self, name: Name, member: Serial) {
        // §10.9: 65,536 by name.
        if self.away.len() < MAX_AWAY || self.away.contains_key(&name) {
            self.away.insert(name, member);
        }
    }

    /// Remembers the first key seen for an identity, if there is room.
    pub(super) fn pin(&mut self, serial: Serial, handle: Handle) {
        // §10.9: the first keys of 2^21 identities.
        if self.pins.len() < MAX_PINS || self.pins.contains_key(&serial) {
            self.pins.insert(serial, handle);
        }
    }

    /// The roster is the one of this epoch: drones removed until then are not on it.
    pub(super) fn hold(&mut self, epoch: Epoch, digest: [u8; 32]) {
        self.held = Some((epoch, digest));
        // §12.1: drones removed by then are not on this roster.
        self.departed.retain(|_, since| *since > epoch);
    }

    pub(super) fn departed(&mut self, slots: &[Slot], since: Epoch) {
        for slot in slots {
            let known = self.departed.entry(*slot).or_insert(since);
            *known = since.max(*known);
        }
    }

    pub(super) fn is_departed(&self, slot: Slot, since: Epoch) -> bool {
        self.departed.get(&slot).is_some_and(|known| *known >= since)
    }

    /// Removes from the roster the drones that left since it was copied.
    pub(super) fn remove_departed(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        // §12.1: a deputy takes over without the drones that a later header lists as removed.
        for slot in core::mem::take(&mut self.departed).into_keys() {
            if self.roster.remove(slot).is_some() {
                self.remove_spare(slot);
                changes.push(Change::Vacated(slot));
            }
        }
        changes
    }

    pub(super) fn remove_spare(&mut self, slot: Slot) {
        if let Some(place) = self.spares.get_mut(slot as usize) {
            *place = Spare::spent(0);
        }
    }

    pub(super) fn forget_spares(&mut self) {
        self.spares = Vec::new();
    }

    fn spares(&self) -> impl Iterator<Item = (Slot, &Spare<S>)> + '_ {
        (0..).zip(&self.spares).filter(|(_, spare)| spare.q > 0)
    }

    /// The spare points that a term can be opened with.
    pub(super) fn unspent(&self) -> BTreeMap<Slot, (u64, Element<S>)> {
        // §9.1: T without a one-time point is never used: a spent spare opens nothing.
        let unspent = self.spares().filter_map(|(slot, spare)| {
            let point = Element::decode(spare.point.as_ref()?.as_ref()).ok()?;
            Some((slot, (spare.q, point)))
        });
        unspent.collect()
    }

    /// The whole state as records, in place of all records so far. `roster` is the one in force; `evictions`
    /// are those that wait for an epoch.
    pub(super) fn checkpoint<'a>(
        &self,
        deployment: &Deployment<S>,
        enrolment: Option<Vec<u8>>,
        roster: &'a Roster<S>,
        evictions: impl Iterator<Item = &'a Serial>,
    ) -> Vec<LeaderRecord> {
        // §15: its own key, and what is public: no l, no W, no K_g. §24.8: and κ, which alone opens nothing.
        let mut changes = alloc::vec![origin(deployment), Change::Boot(self.boot_no)];
        changes.extend(self.pending.iter().map(|pending| Change::Pending(pending.encode().to_vec())));
        changes.extend(enrolment.map(Change::Pending));
        changes.extend(self.keypair.iter().map(enrolled_change));
        changes.extend(self.revocations.signed_bytes().map(|list| Change::Revocations(list.to_vec())));
        changes.extend(roster.iter().map(|(slot, public)| Change::Member { slot, public: public.encode() }));
        changes.extend(roster.evicted().chain(evictions).map(|serial| Change::Evicted(*serial)));
        changes.extend(self.spares().map(|(slot, spare)| spare_change(slot, spare)));
        let away = self.away.iter().filter(|(_, serial)| !roster.is_evicted(serial));
        changes.extend(away.map(|(name, serial)| away_change(name, serial)));
        let pins = self.pins.iter();
        changes
            .extend(pins.map(|(serial, handle)| Change::Pin { serial: *serial, handle: *handle.as_bytes() }));
        changes.extend(self.evidence.iter().cloned().map(Change::Evidence));
        changes.extend(self.newest.map(|(epoch, digest)| epoch_change(epoch, digest)));
        changes.extend(self.held.map(|(epoch, digest)| held_change(epoch, digest)));
        let mut departed = BTreeMap::<Epoch, Vec<Slot>>::new();
        for (slot, since) in &self.departed {
            departed.entry(*since).or_default().push(*slot);
        }
        changes.extend(departed.into_iter().map(|(since, slots)| departed_change(since, slots)));
        changes.extend(self.notices.iter().map(|notice| notice_change(deployment, notice)));
        changes.extend(self.refused.iter().map(|(serial, proof)| refused_change(serial, proof)));
        changes.extend(self.kem.changes());
        changes.chunks(256).map(Change::record).collect()
    }
}
