//! Joins, leaves and evictions that wait for an epoch. Most often one epoch takes all of them; a mass
//! departure takes several.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{MAX_RUNS, Roster, Serial, Slot, Suite, UnixTime};

use crate::leader::joining::anonymous_join::AnonymousJoin;
use crate::leader::joining::batch_verify::VerifiedJoin;

/// Maximum number of members that one epoch removes: wherever they are, a header can list them, in two to four
/// bytes each. Tests make do with fewer.
pub(in crate::leader) const MAX_REMOVED: usize = if cfg!(test) { 1024 } else { MAX_RUNS };

/// Maximum number of drones that are no members and that the next epoch bars by the notices of one leader.
pub(in crate::leader) const MAX_BARRED: usize = 4096;

/// Changes that wait for an epoch. Evictions go first, then leaves, then joins: a slot that is to be freed
/// still has the holder it is to be taken from.
#[derive(Debug)]
pub(in crate::leader) struct PendingChanges<S: Suite> {
    /// Drones to evict and to keep out, members or not.
    evictions: VecDeque<Serial>,
    /// Number of them, the last ones, that no record names yet.
    unrecorded: usize,
    /// Drones that are no members and are to be kept out: by the next epoch, which is not made for their
    /// sake, since they hold no key. With the ordinal of the leader whose notice named them. A record names
    /// them as soon as they are here.
    barred: BTreeMap<Serial, u16>,
    /// Members that asked to leave with the next batch.
    requested_leaves: BTreeSet<Slot>,
    /// True if one did with this input, so that the batch's timer starts.
    leave_requested: bool,
    /// Members that go with the next epoch.
    leaves: BTreeSet<Slot>,
    joins: VecDeque<VerifiedJoin<S>>,
    anonymous: Vec<AnonymousJoin<S>>,
    /// Time of the next attempt after a failure.
    retry: Option<Duration>,
}

/// Portion of the pending changes that one epoch takes.
#[derive(Debug)]
pub(in crate::leader) struct Portion<S: Suite> {
    pub(in crate::leader) evictions: Vec<Serial>,
    /// Slots of members.
    pub(in crate::leader) leaves: Vec<Slot>,
    pub(in crate::leader) joins: Vec<VerifiedJoin<S>>,
    pub(in crate::leader) anonymous: Vec<AnonymousJoin<S>>,
}

impl<S: Suite> PendingChanges<S> {
    pub(in crate::leader) const fn new() -> Self {
        Self {
            evictions: VecDeque::new(),
            unrecorded: 0,
            barred: BTreeMap::new(),
            requested_leaves: BTreeSet::new(),
            leave_requested: false,
            leaves: BTreeSet::new(),
            joins: VecDeque::new(),
            anonymous: Vec::new(),
            retry: None,
        }
    }

    /// Number of drones that wait to join by name.
    pub(in crate::leader) fn joins(&self) -> usize {
        self.joins.len()
    }

    /// Number of members that will be added, by name and anonymous.
    pub(in crate::leader) fn all_joins(&self) -> usize {
        self.joins.len() + self.anonymous.len()
    }

    /// Returns true if a drone to be evicted still holds the key in force.
    pub(in crate::leader) fn evicts(&self) -> bool {
        !self.evictions.is_empty()
    }

    pub(in crate::leader) fn evict(&mut self, serials: impl IntoIterator<Item = Serial>) {
        let before = self.evictions.len();
        self.evictions.extend(serials);
        self.unrecorded += self.evictions.len() - before;
    }

    /// All drones to be kept out by the next epochs, members or not.
    pub(in crate::leader) fn all_evictions(&self) -> impl Iterator<Item = &Serial> {
        self.evictions.iter().chain(self.barred.keys())
    }

    /// Takes as many of these drones, which are no members, as may be barred on this leader's word; gives
    /// those that are news.
    pub(in crate::leader) fn bar(
        &mut self,
        leader: u16,
        serials: impl IntoIterator<Item = Serial>,
    ) -> Vec<Serial> {
        // §12.2: at most 4,096 for each leader that signs.
        let mut room = MAX_BARRED.saturating_sub(self.barred.values().filter(|by| **by == leader).count());
        let mut news = Vec::new();
        for serial in serials {
            if room > 0 && !self.barred.contains_key(&serial) {
                self.barred.insert(serial, leader);
                news.push(serial);
                room -= 1;
            }
        }
        news
    }

    pub(in crate::leader) fn is_barred(&self, serial: &Serial) -> bool {
        self.barred.contains_key(serial)
    }

    /// Drains the evictions that no record names yet; the caller must persist them.
    pub(in crate::leader) fn take_unrecorded(&mut self) -> impl Iterator<Item = &Serial> {
        let recorded = self.evictions.len() - core::mem::take(&mut self.unrecorded);
        self.evictions.range(recorded..)
    }

    /// A member asks to leave with the next batch.
    pub(in crate::leader) fn request_leave(&mut self, slots: impl IntoIterator<Item = Slot>) {
        for slot in slots {
            self.requested_leaves.insert(slot);
            self.leave_requested = true;
        }
    }

    /// Returns true if a member leaves with the next batch or epoch.
    pub(in crate::leader) fn leaves(&self, slot: Slot) -> bool {
        self.requested_leaves.contains(&slot) || self.leaves.contains(&slot)
    }

    /// Returns true if a member asked to leave since the last call.
    pub(in crate::leader) fn take_leave_requested(&mut self) -> bool {
        core::mem::take(&mut self.leave_requested)
    }

    /// Number of members that leave with the next batch.
    pub(in crate::leader) fn requested_leaves(&self) -> usize {
        self.requested_leaves.len()
    }

    /// Drops a leave whose slot was given to another drone: the leaver is out already.
    pub(in crate::leader) fn forget_leave(&mut self, slot: Slot) {
        self.requested_leaves.remove(&slot);
    }

    /// Closes a batch: these joins, and the leaves asked for, go with the next epoch. Returns whether there
    /// are any.
    pub(in crate::leader) fn close_batch(
        &mut self,
        joins: Vec<VerifiedJoin<S>>,
        anonymous: Vec<AnonymousJoin<S>>,
    ) -> bool {
        let leaves = core::mem::take(&mut self.requested_leaves);
        let any = !(joins.is_empty() && anonymous.is_empty() && leaves.is_empty());
        self.remove(leaves);
        self.admit(joins);
        self.anonymous.extend(anonymous);
        any
    }

    /// Removes these members with the next epoch.
    pub(in crate::leader) fn remove(&mut self, slots: impl IntoIterator<Item = Slot>) {
        self.leaves.extend(slots);
    }

    /// A later request of the same drone takes the place of an earlier one.
    fn admit(&mut self, joins: Vec<VerifiedJoin<S>>) {
        if !self.joins.is_empty() {
            let again: BTreeSet<Serial> = joins.iter().map(VerifiedJoin::serial).collect();
            self.joins.retain(|join| !again.contains(&join.serial()));
        }
        self.joins.extend(joins);
    }

    /// Membership end times of the pending anonymous joins.
    pub(in crate::leader) fn anonymous_ends(&self) -> impl Iterator<Item = UnixTime> + '_ {
        self.anonymous.iter().map(|one| one.admission.member.until)
    }

    /// Time of the next epoch: at once, but not after a failure.
    pub(in crate::leader) fn deadline(&self) -> Option<Duration> {
        // §6.3: evictions do not wait.
        let joins = self.all_joins() > 0;
        let waits = self.evicts() || !self.leaves.is_empty() || joins;
        waits.then(|| self.retry.unwrap_or(Duration::ZERO))
    }

    /// Puts a batch back to the front, to be tried at this time.
    pub(in crate::leader) fn requeue(
        &mut self,
        evictions: &[Serial],
        leaves: impl Iterator<Item = Slot>,
        retry: Duration,
    ) {
        for serial in evictions.iter().rev() {
            self.evictions.push_front(*serial);
        }
        // Perhaps all of them; twice is as good as once.
        self.unrecorded = self.evictions.len();
        self.leaves.extend(leaves);
        self.retry = Some(retry);
    }

    /// Takes as much as one epoch may change.
    pub(in crate::leader) fn take(&mut self, roster: &Roster<S>) -> Portion<S> {
        self.retry = None;
        // §8.7: what a header can list.
        let mut room = MAX_REMOVED;
        let mut evictions: Vec<Serial> = self.evictions.drain(..room.min(self.evictions.len())).collect();
        room -= evictions.len();
        // §12.2: they are no members, and free no slot.
        evictions.extend(core::mem::take(&mut self.barred).into_keys());
        self.unrecorded = self.unrecorded.min(self.evictions.len());
        let mut leaves = Vec::new();
        while room > 0
            && let Some(slot) = self.leaves.pop_first()
        {
            // It may have been evicted meanwhile.
            if roster.holds(slot) {
                leaves.push(slot);
                room -= 1;
            }
        }
        let mut joins = Vec::new();
        while self.evictions.is_empty()
            && self.leaves.is_empty()
            && let Some(join) = self.joins.pop_front()
        {
            // §6.2: a join by a member is a leave and a join: it frees a slot first.
            let frees = usize::from(roster.find(&join.serial()).is_some());
            if frees > room {
                self.joins.push_front(join);
                break;
            }
            room -= frees;
            joins.push(join);
        }
        // An anonymous join frees no slot.
        let anonymous = match self.evictions.is_empty() && self.leaves.is_empty() {
            true => core::mem::take(&mut self.anonymous),
            false => Vec::new(),
        };
        // A wave of joins leaves megabytes of room behind, which are unused until the next one.
        self.evictions.shrink_to_fit();
        self.joins.shrink_to_fit();
        Portion { evictions, leaves, joins, anonymous }
    }
}
