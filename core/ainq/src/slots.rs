//! Slots, the positions of members in a group, and sets of them, encoded as runs.
//!
//! A drone keeps its slot as long as it is a member; a freed slot may be assigned again. Masses of drones
//! come and go in neighbouring slots, so a set is a list of runs and stays a few bytes long in a header.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher};

use crate::Error;

/// A place in the group, below [`MAX_SLOTS`].
pub type Slot = u32;

/// Number of slots of a group.
pub const MAX_SLOTS: u32 = 1 << 20;

/// The leader's value where a slot is needed, such as the sender of a frame: no drone can hold it.
pub const LEADER_SLOT: Slot = MAX_SLOTS;

/// The most runs a set from outside may have.
pub const MAX_RUNS: usize = 1 << 17;

/// The most runs of removed and added slots together that the header of a tree's epoch lists (§7.1).
pub const MAX_LISTED: usize = 32;

const TOO_MANY_RUNS: Error = Error::TooLong { what: "slot runs", limit: MAX_RUNS };

/// Neighbouring slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRun {
    /// The first slot.
    pub start: Slot,
    /// Number of slots, at least one.
    pub len: u32,
}

impl SlotRun {
    /// The first slot behind the run.
    const fn end(&self) -> u32 {
        self.start.saturating_add(self.len)
    }

    /// The run of all `slot / 2`.
    const fn halved(&self) -> Self {
        let (start, end) = (self.start / 2, (self.end() - 1) / 2 + 1);
        Self { start, len: end - start }
    }

    /// Extends the run by one that begins in it or right behind it; returns whether it could.
    const fn join(&mut self, next: &Self) -> bool {
        let joins = next.start <= self.end();
        if joins {
            self.len = next.end() - self.start;
        }
        joins
    }
}

/// The runs of a set, wherever they are.
#[derive(Clone, Copy)]
pub(crate) struct Runs<'a>(pub(crate) &'a [SlotRun]);

impl<'a> Runs<'a> {
    pub(crate) fn len(self) -> usize {
        self.0.iter().map(|run| run.len as usize).sum()
    }

    pub(crate) fn contains(self, slot: Slot) -> bool {
        self.covers(&SlotRun { start: slot, len: 1 })
    }

    /// Returns true if all slots of a run are in the set.
    pub(crate) fn covers(self, wanted: &SlotRun) -> bool {
        let behind = self.0.partition_point(|run| run.start <= wanted.start);
        self.0.get(..behind).and_then(<[SlotRun]>::last).is_some_and(|run| wanted.end() <= run.end())
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Slot> + use<'a> {
        self.0.iter().flat_map(|run| run.start..run.end())
    }
}

/// Appends to runs the set of all `slot / 2` of those from this one on: the parents, if slots are the leaves
/// of a binary tree.
pub(crate) fn append_halved(runs: &mut Vec<SlotRun>, from: usize) {
    let end = runs.len();
    for at in from..end {
        let Some(halved) = runs.get(at).map(SlotRun::halved) else { return };
        let last = runs.get_mut(end..).and_then(<[SlotRun]>::last_mut);
        if !last.is_some_and(|last| last.join(&halved)) {
            runs.push(halved);
        }
    }
}

/// A set of slots: runs in ascending order, none empty, none touching the next. One set has one form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotSet {
    runs: Vec<SlotRun>,
}

impl SlotSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { runs: Vec::new() }
    }

    /// A set from runs that came from outside.
    ///
    /// # Errors
    /// [`Error::TooLong`] for more than [`MAX_RUNS`]; [`Error::Malformed`] unless the runs are in the one
    /// form a set has and below [`MAX_SLOTS`].
    pub fn from_runs(runs: impl IntoIterator<Item = SlotRun>) -> Result<Self, Error> {
        let runs = runs.into_iter();
        let mut set = Self { runs: Vec::with_capacity(runs.size_hint().0.min(MAX_RUNS)) };
        for run in runs {
            if set.runs.len() == MAX_RUNS {
                return Err(TOO_MANY_RUNS);
            }
            let apart = set.runs.last().is_none_or(|last| last.end() < run.start);
            let fits = run.len > 0 && run.start < MAX_SLOTS && run.len <= MAX_SLOTS - run.start;
            if !(apart && fits) {
                return Err(Error::Malformed("slot runs"));
            }
            set.runs.push(run);
        }
        Ok(set)
    }

    /// The runs, ascending.
    #[must_use]
    pub fn runs(&self) -> &[SlotRun] {
        &self.runs
    }

    /// Number of slots in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        Runs(&self.runs).len()
    }

    /// Returns true if no slot is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns true if `slot` is in the set.
    #[must_use]
    pub fn contains(&self, slot: Slot) -> bool {
        Runs(&self.runs).contains(slot)
    }

    /// The set, unless it has more runs than are accepted from outside.
    pub(crate) fn within_bounds(self) -> Result<Self, Error> {
        if self.runs.len() > MAX_RUNS { Err(TOO_MANY_RUNS) } else { Ok(self) }
    }

    /// The highest of the set.
    #[must_use]
    pub fn last(&self) -> Option<Slot> {
        self.runs.last().map(|run| run.end() - 1)
    }

    /// The slots, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        Runs(&self.runs).iter()
    }

    /// Writes the number of runs and the runs, four bytes each number.
    pub fn encode(&self, writer: &mut Writer) {
        // At most `MAX_SLOTS / 2` runs exist, so the number always fits.
        writer.u32(u32::try_from(self.runs.len()).unwrap_or(u32::MAX));
        for run in &self.runs {
            writer.u32(run.start).u32(run.len);
        }
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// As [`from_runs`](Self::from_runs), and [`Error::Malformed`] for bytes that end early.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let count = reader.u32()? as usize;
        if count > MAX_RUNS {
            return Err(TOO_MANY_RUNS);
        }
        let mut runs = Vec::new();
        for _ in 0..count {
            runs.push(SlotRun { start: reader.u32()?, len: reader.u32()? });
        }
        Self::from_runs(runs)
    }

    fn push(&mut self, slot: Slot) {
        match self.runs.last_mut() {
            Some(last) if last.end() == slot => last.len += 1,
            _ => self.runs.push(SlotRun { start: slot, len: 1 }),
        }
    }
}

impl FromIterator<Slot> for SlotSet {
    /// Slots in any order, repeated or not. They are the caller's own and below [`MAX_SLOTS`].
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Self {
        let mut sorted: Vec<Slot> = slots.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut set = Self::new();
        sorted.into_iter().for_each(|slot| set.push(slot));
        set
    }
}

/// The slots that an epoch removes and adds. Of many, the header of a tree's epoch has the digest only, and they
/// are sent beside it to who keeps the roster: a leader's deputies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotChanges {
    /// Slots of removed members.
    pub removed: SlotSet,
    /// Slots of added members.
    pub added: SlotSet,
}

impl SlotChanges {
    /// Returns true if a header of a tree's epoch lists them: they have at most [`MAX_LISTED`] runs together.
    #[must_use]
    pub fn are_listed(&self) -> bool {
        self.removed.runs().len() + self.added.runs().len() <= MAX_LISTED
    }

    /// H("quiver/1 slots", removed ‖ added).
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut writer = Writer::new();
        self.removed.encode(&mut writer);
        self.added.encode(&mut writer);
        Hasher::new("quiver/1 slots").fixed(&writer.finish()).finish()
    }

    /// Returns true if a slot is in either set: whoever held it before is out.
    #[must_use]
    pub fn contains(&self, slot: Slot) -> bool {
        self.removed.contains(slot) || self.added.contains(slot)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn run(start: Slot, len: u32) -> SlotRun {
        SlotRun { start, len }
    }

    #[test]
    fn a_mass_join_is_one_run() {
        let set: SlotSet = (7..2007).rev().collect();
        assert_eq!(set.runs(), [run(7, 2000)]);
        assert!(!set.contains(6) && set.contains(7) && set.contains(2006) && !set.contains(2007));
    }

    #[test]
    fn only_the_one_form_is_accepted() {
        assert!(SlotSet::from_runs([run(0, 1), run(2, 3)]).is_ok());
        for wrong in [
            vec![run(0, 0)],
            vec![run(0, 1), run(1, 1)],
            vec![run(4, 1), run(0, 1)],
            vec![run(0, 4), run(3, 1)],
            vec![run(MAX_SLOTS, 1)],
            vec![run(MAX_SLOTS - 1, 2)],
            vec![run(1, u32::MAX)],
        ] {
            assert_eq!(SlotSet::from_runs(wrong), Err(Error::Malformed("slot runs")));
        }
    }

    #[test]
    fn a_set_from_outside_has_as_many_runs_as_the_bound_says_and_no_more() {
        let apart = |count: usize| (0..count as u32).map(|number| run(2 * number, 1));
        let too_long = Err(Error::TooLong { what: "slot runs", limit: MAX_RUNS });
        let most = SlotSet::from_runs(apart(MAX_RUNS)).unwrap();
        assert_eq!(SlotSet::from_runs(apart(MAX_RUNS + 1)), too_long);
        let own = |count: u32| (0..count).map(|number| 2 * number).collect::<SlotSet>().within_bounds();
        assert_eq!(own(MAX_RUNS as u32), Ok(most.clone()));
        assert_eq!(own(MAX_RUNS as u32 + 1), too_long);
        let mut writer = Writer::new();
        most.encode(&mut writer);
        assert_eq!(SlotSet::decode(&mut Reader::new(&writer.finish())), Ok(most));
        // One more is refused before any of them is read.
        let count = (MAX_RUNS as u32 + 1).to_be_bytes();
        assert_eq!(SlotSet::decode(&mut Reader::new(&count)), too_long);
    }

    #[test]
    fn changes_are_listed_up_to_the_bound_and_have_a_digest_that_tells_them_apart() {
        let apart = |count: u32| (0..count).map(|number| 2 * number).collect::<SlotSet>();
        let listed =
            |removed, added| SlotChanges { removed: apart(removed), added: apart(added) }.are_listed();
        assert!(listed(0, 0) && listed(32, 0) && listed(0, 32) && listed(16, 16));
        assert!(!listed(33, 0) && !listed(0, 33) && !listed(16, 17));
        let digest = |removed, added| SlotChanges { removed: apart(removed), added: apart(added) }.digest();
        assert_eq!(digest(3, 2), digest(3, 2));
        assert!(
            [digest(2, 3), digest(3, 3), digest(3, 1), digest(0, 0)]
                .iter()
                .all(|other| *other != digest(3, 2))
        );
    }

    #[test]
    fn every_slot_of_a_group_is_in_some_set() {
        for all in [vec![run(0, MAX_SLOTS)], vec![run(0, MAX_SLOTS - 2), run(MAX_SLOTS - 1, 1)]] {
            let set = SlotSet::from_runs(all).unwrap();
            assert_eq!(set.last(), Some(MAX_SLOTS - 1));
            assert!(set.contains(MAX_SLOTS - 1) && !set.contains(MAX_SLOTS));
        }
    }

    proptest! {
        #[test]
        fn a_set_survives_encoding_and_holds_what_went_in(slots in proptest::collection::btree_set(0..64u32, 0..40)) {
            let set: SlotSet = slots.iter().copied().collect();
            prop_assert_eq!(set.len(), slots.len());
            prop_assert!((0..64).all(|slot| set.contains(slot) == slots.contains(&slot)));
            prop_assert_eq!(set.last(), slots.last().copied());
            let mut runs = set.runs.clone();
            append_halved(&mut runs, 0);
            let parents: SlotSet = slots.iter().map(|slot| slot / 2).collect();
            prop_assert_eq!(&runs[set.runs.len()..], parents.runs());
            prop_assert_eq!(set.iter().collect::<BTreeSet<_>>(), slots);
            let mut writer = Writer::new();
            set.encode(&mut writer);
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(SlotSet::decode(&mut reader).unwrap(), set);
            prop_assert!(reader.end().is_ok());
        }
    }
}
