//! What is still to be changed about the group. Most often one epoch takes all of it; a mass departure takes several.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Roster, Serial, Slot, StrategyKind, Suite, UnixTime};

use super::gate::Unnamed;
use super::vetting::Vetted;

/// How many members one epoch of a tree removes at most. With 2^20 slots, 1,024 scattered leavers touch 11,263 nodes, and
/// their delta has about 700 KB; twice as many would not fit into a message.
pub(super) const MAX_REMOVED_TREE: usize = 1024;
/// How many members one epoch of the flat strategy removes at most: a header lists at most 65,536 runs of slots.
pub(super) const MAX_REMOVED_FLAT: usize = 1 << 15;

/// How many drones that are no members the next epoch bars at most on the word of one leader.
pub(super) const MAX_BARRED: usize = 4096;

/// Changes that wait for an epoch. Evictions go first, then leaves, then joins: a slot that is to be freed still has the
/// holder it is to be taken from.
#[derive(Debug)]
pub(super) struct Backlog<S: Suite> {
    /// Who is evicted and kept out, member or not.
    evictions: VecDeque<Serial>,
    /// How many of them, the last ones, no record names yet.
    unwritten: usize,
    /// Drones that are no members and are to be kept out: by the next epoch, which is not made for their sake, since they hold no
    /// key. With the ordinal of the leader that said so. A record names them as soon as they are here.
    barred: BTreeMap<Serial, u16>,
    leaves: BTreeSet<Slot>,
    joins: VecDeque<Vetted<S>>,
    unnamed: Vec<Unnamed>,
    /// After a failure: when to try again.
    retry: Option<Duration>,
}

/// As much of it as one epoch takes.
#[derive(Debug)]
pub(super) struct Portion<S: Suite> {
    pub(super) evictions: Vec<Serial>,
    /// Slots of members.
    pub(super) leaves: Vec<Slot>,
    pub(super) joins: Vec<Vetted<S>>,
    /// Who joins without a name.
    pub(super) unnamed: Vec<Unnamed>,
}

impl<S: Suite> Backlog<S> {
    pub(super) const fn new() -> Self {
        Self {
            evictions: VecDeque::new(),
            unwritten: 0,
            barred: BTreeMap::new(),
            leaves: BTreeSet::new(),
            joins: VecDeque::new(),
            unnamed: Vec::new(),
            retry: None,
        }
    }

    /// Joins that wait.
    pub(super) fn joins(&self) -> usize {
        self.joins.len()
    }

    /// Whether somebody is to be put out who still holds the key in force.
    pub(super) fn evicts(&self) -> bool {
        !self.evictions.is_empty()
    }

    pub(super) fn evict(&mut self, serials: impl IntoIterator<Item = Serial>) {
        let before = self.evictions.len();
        self.evictions.extend(serials);
        self.unwritten += self.evictions.len() - before;
    }

    /// Everybody who is to be put out.
    pub(super) fn evictions(&self) -> impl Iterator<Item = &Serial> {
        self.evictions.iter()
    }

    /// Takes as many of these drones, which are no members, as may be barred on this leader's word; gives those that are news.
    pub(super) fn bar(&mut self, leader: u16, serials: impl IntoIterator<Item = Serial>) -> Vec<Serial> {
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

    pub(super) fn is_barred(&self, serial: &Serial) -> bool {
        self.barred.contains_key(serial)
    }

    /// Everybody who is to be kept out by the next epoch and is no member.
    pub(super) fn barred(&self) -> impl Iterator<Item = &Serial> {
        self.barred.keys()
    }

    /// Who is to be put out and stands in no record yet. From here on they do.
    pub(super) fn write_down(&mut self) -> impl Iterator<Item = &Serial> {
        let written = self.evictions.len() - core::mem::take(&mut self.unwritten);
        self.evictions.range(written..)
    }

    pub(super) fn remove(&mut self, slots: impl IntoIterator<Item = Slot>) {
        self.leaves.extend(slots);
    }

    /// A later request of the same drone takes the place of an earlier one.
    pub(super) fn admit(&mut self, joins: Vec<Vetted<S>>) {
        if !self.joins.is_empty() {
            let again: BTreeSet<Serial> =
                joins.iter().map(|(_, join)| join.public().identity.serial).collect();
            self.joins.retain(|(_, join)| !again.contains(&join.public().identity.serial));
        }
        self.joins.extend(joins);
    }

    /// Who is to be let in without a name.
    pub(super) fn admit_unnamed(&mut self, unnamed: Vec<Unnamed>) {
        self.unnamed.extend(unnamed);
    }

    /// Until when those are to be in who are to be let in without a name.
    pub(super) fn unnamed(&self) -> impl Iterator<Item = UnixTime> + '_ {
        self.unnamed.iter().map(|one| one.admission.member.until)
    }

    /// When the next epoch is to be made of it: at once, but not after a failure.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let joins = !self.joins.is_empty() || !self.unnamed.is_empty();
        let waits = self.evicts() || !self.leaves.is_empty() || joins;
        waits.then(|| self.retry.unwrap_or(Duration::ZERO))
    }

    /// What was taken goes to the front again, to be tried at this time.
    pub(super) fn give_back(
        &mut self,
        evictions: &[Serial],
        leaves: impl Iterator<Item = Slot>,
        retry: Duration,
    ) {
        for serial in evictions.iter().rev() {
            self.evictions.push_front(*serial);
        }
        // Perhaps all of them; twice is as good as once.
        self.unwritten = self.evictions.len();
        self.leaves.extend(leaves);
        self.retry = Some(retry);
    }

    /// Takes as much as one epoch of this strategy may change.
    pub(super) fn take(&mut self, strategy: StrategyKind, roster: &Roster<S>) -> Portion<S> {
        self.retry = None;
        let mut room = match strategy {
            StrategyKind::Flat => MAX_REMOVED_FLAT,
            StrategyKind::Tree => MAX_REMOVED_TREE,
        };
        let mut evictions: Vec<Serial> = self.evictions.drain(..room.min(self.evictions.len())).collect();
        room -= evictions.len();
        // They free no slot.
        evictions.extend(core::mem::take(&mut self.barred).into_keys());
        self.unwritten = self.unwritten.min(self.evictions.len());
        let mut leaves = Vec::new();
        while room > 0
            && let Some(slot) = self.leaves.pop_first()
        {
            // It may have been put out meanwhile.
            if roster.holds(slot) {
                leaves.push(slot);
                room -= 1;
            }
        }
        let mut joins = Vec::new();
        while self.evictions.is_empty()
            && self.leaves.is_empty()
            && let Some(vetted) = self.joins.pop_front()
        {
            // A member that joins again frees a slot first.
            let frees = usize::from(roster.find(&vetted.1.public().identity.serial).is_some());
            if frees > room {
                self.joins.push_front(vetted);
                break;
            }
            room -= frees;
            joins.push(vetted);
        }
        // Who joins so frees no slot.
        let unnamed = match self.evictions.is_empty() && self.leaves.is_empty() {
            true => core::mem::take(&mut self.unnamed),
            false => Vec::new(),
        };
        // A wave of joins leaves megabytes of room behind; nobody needs it until the next one.
        self.evictions.shrink_to_fit();
        self.joins.shrink_to_fit();
        Portion { evictions, leaves, joins, unnamed }
    }
}
