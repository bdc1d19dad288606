//! A deputy's replica of the group: taken in chunk by chunk, believed as a whole. docs/protocol.md §10.2.
//!
//! A chunk is signed by the leader, but that proves only who lied. A replica counts if the roster's hash is
//! the one in the leader's header, every member signed its own spare point, and all of it becomes durable in
//! one record.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quiver_ainq::{
    Deployment, DronePublicKey, Epoch, Error, Header, Label, Name, Roster, Serial, SignedItem, Slot, Suite,
    verify_batch,
};
use quiver_machine::Offence;
use quiver_message::{ReplicaChunk, Seat};
use rand_core::CryptoRngCore;

use crate::leader::LeaderEvent;
use crate::leader::context::LeaderContext;
use crate::leader::store::{Change, LeaderStore, Spare, held_change, spare_change};
use crate::leader::term::pending_changes::MAX_BARRED;

/// Maximum number of evicted drones in a copy.
const MAX_EVICTED: usize = 1 << 20;

/// Chunks whose whole is not there yet.
#[derive(Debug)]
pub(super) struct StagedChunks<S: Suite> {
    /// True if they make up all of a group, not only what changed.
    whole: bool,
    seats: BTreeMap<Slot, Seat<S>>,
    evicted: BTreeSet<Serial>,
}

impl<S: Suite> StagedChunks<S> {
    /// Staging for the first copy of a session: the whole replica.
    pub(super) fn new() -> Self {
        Self { whole: true, seats: BTreeMap::new(), evicted: BTreeSet::new() }
    }

    /// Staging for the next copies of a session: changes.
    pub(super) fn next() -> Self {
        Self { whole: false, ..Self::new() }
    }

    /// Takes a chunk in, if every spare point in it was signed by its owner.
    pub(super) fn take(
        &mut self,
        deployment: &Deployment<S>,
        group: &Name,
        max_members: u32,
        chunk: ReplicaChunk<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<(), Offence> {
        let room = (max_members as usize).saturating_mul(2).saturating_sub(self.seats.len());
        // §10.9: at most 2^20 evicted drones.
        if chunk.seats.len() > room || self.evicted.len() + chunk.evicted.len() > MAX_EVICTED {
            return Err(Error::TooLong { what: "replica", limit: max_members as usize }.into());
        }
        check_spares(deployment, group, &chunk.seats, rng)?;
        self.seats.extend(chunk.seats.into_iter().map(|seat| (seat.slot, seat)));
        self.evicted.extend(chunk.evicted);
        Ok(())
    }

    /// The roster that results. `roster` is as it was if that is not the one with this hash.
    fn apply(&self, roster: &mut Roster<S>, hash: &[u8; 32]) -> Result<(), Error> {
        // §10.2: the deputy believes chunks as a whole.
        if self.whole || self.evicted.iter().any(|serial| !roster.is_evicted(serial)) {
            let mut changed = if self.whole { Roster::new() } else { roster.clone() };
            self.seat_all(&mut changed)?;
            for serial in &self.evicted {
                changed.evict(*serial);
            }
            if changed.hash() != *hash {
                return Err(Error::Malformed("roster"));
            }
            *roster = changed;
            return Ok(());
        }
        // A group of a million is not copied for one that joined.
        let before: Vec<(Slot, Option<DronePublicKey<S>>)> =
            self.seats.keys().map(|slot| (*slot, roster.get(*slot).cloned())).collect();
        if self.seat_all(roster).is_ok() && roster.hash() == *hash {
            return Ok(());
        }
        for slot in self.seats.keys() {
            roster.remove(*slot);
        }
        for (slot, holder) in before {
            if let Some(holder) = holder {
                roster.insert(slot, holder)?;
            }
        }
        Err(Error::Malformed("roster"))
    }

    fn seat_all(&self, roster: &mut Roster<S>) -> Result<(), Error> {
        // All out before anyone is in: a drone may have changed its slot.
        for slot in self.seats.keys() {
            roster.remove(*slot);
        }
        for seat in self.seats.values() {
            if let Some(holder) = &seat.holder {
                roster.insert(seat.slot, holder.clone())?;
            }
        }
        Ok(())
    }
}

/// Records to write of a copy.
struct News {
    /// True if it takes the place of everything.
    anew: bool,
    /// Slots whose holder is another now.
    seats: Vec<Slot>,
    evicted: Vec<Serial>,
}

/// Checks that every member signed its own spare point. A leader that could name one itself would know the
/// secret of the next term's pair.
fn check_spares<S: Suite>(
    deployment: &Deployment<S>,
    group: &Name,
    seats: &[Seat<S>],
    rng: &mut dyn CryptoRngCore,
) -> Result<(), Error> {
    let spares = seats.iter().filter_map(|seat| Some((seat.holder.as_ref()?, seat.spare.as_ref()?)));
    let spares: Vec<_> =
        spares.map(|(public, spare)| (public, spare, spare.message(group, public))).collect();
    if spares.iter().any(|(_, spare, _)| spare.q == 0) {
        return Err(Error::Malformed("spare number"));
    }
    let items = spares.iter().map(|(public, spare, message)| SignedItem {
        public: *public,
        label: Label::Spare,
        message,
        signature: &spare.signature,
    });
    // §10.2: a leader that could choose E would know T of the next term.
    if verify_batch(deployment, &items.collect::<Vec<_>>(), rng) {
        Ok(())
    } else {
        Err(Error::InvalidSignature)
    }
}

/// Replaces the stored roster by the replica, durably, if it matches the header. `ordinal` is our own.
pub(super) fn commit<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    staged: &StagedChunks<S>,
    header: &Header<S>,
    digest: [u8; 32],
    ordinal: u16,
) -> Result<(), Offence> {
    let mut spares = BTreeMap::new();
    for (slot, seat) in &staged.seats {
        if let Some(spare) = newest_spare(cx.store, seat) {
            spares.insert(*slot, spare);
        }
    }
    let News { anew, seats, evicted } = news(cx.store, staged);
    // §10.6: evictions of the roster that is replaced hold too.
    let forgotten = forgotten(cx.store, staged);
    // §10.2: the roster's hash is the one that the leader signed.
    staged.apply(&mut cx.store.roster, &header.core.roster_hash)?;
    let mut changes = Vec::new();
    if anew {
        changes.push(Change::Anew);
        cx.store.forget_spares();
        cx.store.away.clear();
    }
    for slot in seats {
        let holder = staged.seats.get(&slot).and_then(|seat| seat.holder.as_ref());
        changes.push(match holder {
            Some(holder) => Change::Member { slot, public: holder.encode() },
            None => Change::Vacated(slot),
        });
        cx.store.remove_spare(slot);
    }
    changes.extend(evicted.iter().map(|serial| Change::Evicted(*serial)));
    for (slot, spare) in spares {
        if cx.store.spare(slot).is_none_or(|known| !known.is_recorded_as(&spare)) {
            changes.push(spare_change(slot, &spare));
            cx.store.set_spare(slot, spare);
        }
    }
    let epoch = header.core.epoch;
    cx.store.hold(epoch, digest);
    changes.push(held_change(epoch, digest));
    // §10.2: all of it becomes durable in one record.
    cx.persist(&changes);
    let (leader, members) = (header.core.leader.identity.name.clone(), cx.store.roster.len());
    cx.event(LeaderEvent::StandingBy { leader, epoch, members });
    // §10.6: the notice takes effect from the next round on, by our own ordinal. It is sent to this leader
    // and to others.
    let next = Epoch { term: Epoch::term_of(epoch.round().saturating_add(1), ordinal), counter: 1 };
    cx.sign_eviction_notice(next, &forgotten);
    Ok(())
}

/// The drones evicted by the roster held and not by the one that takes its place (another side's after a
/// partition), nor by a notice that is kept. At most as many as a leader bars with one epoch by others'
/// notices.
fn forgotten<S: Suite>(store: &LeaderStore<S>, staged: &StagedChunks<S>) -> Vec<Serial> {
    if !staged.whole {
        return Vec::new();
    }
    let mut lost: BTreeSet<Serial> = store.roster.evicted().copied().collect();
    lost.retain(|serial| !staged.evicted.contains(serial));
    for serial in store.notices.serials() {
        lost.remove(serial);
    }
    lost.into_iter().take(MAX_BARRED).collect()
}

/// The difference between a replica and the disk: a deputy that returns to its leader a hundred times writes
/// the changes since, not the group a hundred times.
fn news<S: Suite>(store: &LeaderStore<S>, staged: &StagedChunks<S>) -> News {
    let roster = &store.roster;
    let goes_on = store.away.is_empty() && roster.evicted().all(|one| staged.evicted.contains(one));
    if staged.whole && !goes_on {
        let seats = staged.seats.keys().copied().collect();
        return News { anew: true, seats, evicted: staged.evicted.iter().copied().collect() };
    }
    let seats = staged.seats.values().filter(|seat| roster.get(seat.slot) != seat.holder.as_ref());
    let mut seats: Vec<Slot> = seats.map(|seat| seat.slot).collect();
    if staged.whole {
        let gone = roster.iter().map(|(slot, _)| slot).filter(|slot| !staged.seats.contains_key(slot));
        seats.extend(gone);
    }
    let evicted = staged.evicted.iter().filter(|one| !roster.is_evicted(one)).copied().collect();
    News { anew: false, seats, evicted }
}

/// The spare point with the higher number: the leader's, or one that the same member sent us itself.
fn newest_spare<S: Suite>(store: &LeaderStore<S>, seat: &Seat<S>) -> Option<Spare<S>> {
    let holder = seat.holder.as_ref()?;
    let theirs = match &seat.spare {
        Some(statement) => Some(Spare::of(statement)),
        None if seat.spent > 0 => Some(Spare::spent(seat.spent)),
        None => None,
    };
    // §10.5: perhaps the member has shown a newer point than was replicated.
    let same = store.roster.get(seat.slot) == Some(holder);
    let ours = store.spare(seat.slot).filter(|_| same);
    match (theirs, ours) {
        (Some(theirs), Some(ours)) if ours.q > theirs.q => Some(ours.clone()),
        (None, ours) => ours.cloned(),
        (theirs, _) => theirs,
    }
}
