//! Set of the latest things, up to a maximum.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// The latest things that were added, up to a maximum.
pub(crate) struct Recent<T> {
    numbers: HashMap<T, u64>,
    by_age: BTreeMap<u64, T>,
    next: u64,
    capacity: usize,
}

impl<T: Copy + Eq + Hash> Recent<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { numbers: HashMap::new(), by_age: BTreeMap::new(), next: 0, capacity }
    }

    /// Adds a thing as the latest one; with too many, the oldest is forgotten.
    pub(crate) fn add(&mut self, thing: T) {
        self.remove(&thing);
        self.numbers.insert(thing, self.next);
        self.by_age.insert(self.next, thing);
        self.next = self.next.wrapping_add(1);
        if self.numbers.len() > self.capacity
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.numbers.remove(&oldest);
        }
    }

    pub(crate) fn remove(&mut self, thing: &T) {
        if let Some(number) = self.numbers.remove(thing) {
            self.by_age.remove(&number);
        }
    }

    pub(crate) fn contains(&self, thing: &T) -> bool {
        self.numbers.contains_key(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_remembered_than_there_is_room_for_and_the_oldest_goes_first() {
        let mut recent = Recent::new(2);
        for thing in [1, 2, 1, 3] {
            recent.add(thing);
        }
        assert_eq!([1, 2, 3].map(|thing| recent.contains(&thing)), [true, false, true]);
        assert_eq!(recent.by_age.len(), 2);
        recent.remove(&1);
        assert!(!recent.contains(&1) && recent.contains(&3));
    }
}
