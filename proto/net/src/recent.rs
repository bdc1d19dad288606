//! Set of the latest things, up to a maximum, in which the things of one owner push out none of others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

/// The latest things that were added, up to a maximum, each with its owner.
pub(crate) struct Recent<T, O> {
    /// Number of each thing, in the order in which they came, and its owner.
    things: HashMap<T, (u64, O)>,
    by_age: BTreeMap<u64, T>,
    /// Numbers of each owner's things.
    owned: HashMap<O, BTreeSet<u64>>,
    /// Owners by the number of their things.
    shares: BTreeSet<(usize, O)>,
    next: u64,
    capacity: usize,
}

impl<T: Copy + Eq + Hash, O: Clone + Ord + Hash> Recent<T, O> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            things: HashMap::new(),
            by_age: BTreeMap::new(),
            owned: HashMap::new(),
            shares: BTreeSet::new(),
            next: 0,
            capacity,
        }
    }

    /// Adds a thing as the latest one. With too many, the oldest of the owner that has most is forgotten.
    pub(crate) fn add(&mut self, thing: T, owner: O) {
        self.remove(&thing);
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.by_age.insert(number, thing);
        self.change(&owner, |numbers| numbers.insert(number));
        self.things.insert(thing, (number, owner));
        if self.things.len() > self.capacity
            && let Some(loser) = self.loser()
        {
            self.remove(&loser);
        }
    }

    pub(crate) fn remove(&mut self, thing: &T) {
        if let Some((number, owner)) = self.things.remove(thing) {
            self.by_age.remove(&number);
            self.change(&owner, |numbers| numbers.remove(&number));
        }
    }

    pub(crate) fn contains(&self, thing: &T) -> bool {
        self.things.contains_key(thing)
    }

    /// Owner of a thing.
    pub(crate) fn owner(&self, thing: &T) -> Option<&O> {
        self.things.get(thing).map(|(_, owner)| owner)
    }

    /// The thing to forget.
    fn loser(&self) -> Option<T> {
        let number = match self.shares.last() {
            Some((2.., owner)) => self.owned.get(owner)?.first(),
            // Everybody has one: the oldest of all.
            _ => self.by_age.keys().next(),
        };
        self.by_age.get(number?).copied()
    }

    fn change(&mut self, owner: &O, change: impl FnOnce(&mut BTreeSet<u64>) -> bool) {
        let mut numbers = self.owned.remove(owner).unwrap_or_default();
        self.shares.remove(&(numbers.len(), owner.clone()));
        change(&mut numbers);
        if !numbers.is_empty() {
            self.shares.insert((numbers.len(), owner.clone()));
            self.owned.insert(owner.clone(), numbers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const N: usize>(recent: &Recent<u32, u32>, wanted: [u32; N]) {
        let mut things: Vec<_> = recent.things.keys().copied().collect();
        things.sort_unstable();
        assert_eq!(things, wanted);
        assert_eq!(recent.by_age.len(), N);
        assert_eq!(recent.owned.values().map(BTreeSet::len).sum::<usize>(), N);
        assert_eq!(recent.shares.len(), recent.owned.len());
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for_and_the_oldest_goes_first() {
        for owner in [|_| 0, |thing| thing] {
            let mut recent = Recent::new(2);
            for thing in [1, 2, 1, 3] {
                recent.add(thing, owner(thing));
            }
            check(&recent, [1, 3]);
            recent.remove(&1);
            check(&recent, [3]);
            assert!(!recent.contains(&1) && recent.contains(&3));
        }
    }

    #[test]
    fn who_has_most_pushes_out_its_own_things_alone() {
        let mut recent = Recent::new(8);
        (0..4).for_each(|thing| recent.add(thing, thing));
        (100..200).for_each(|thing| recent.add(thing, 9));
        check(&recent, [0, 1, 2, 3, 196, 197, 198, 199]);
        recent.add(4, 4);
        check(&recent, [0, 1, 2, 3, 4, 197, 198, 199]);
        // A thing may change hands.
        recent.add(197, 5);
        (6..9).for_each(|thing| recent.add(thing, thing));
        check(&recent, [2, 3, 4, 6, 7, 8, 197, 199]);
    }
}
