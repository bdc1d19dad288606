//! The free slots of a roster, stored as runs; the lowest is found in constant time.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::slots::{MAX_SLOTS, Slot};

/// Runs of free slots: start → end, the end not in it. No two touch.
#[derive(Clone, Debug)]
pub(super) struct Vacancies(BTreeMap<Slot, Slot>);

impl Vacancies {
    /// All slots.
    pub(super) fn all() -> Self {
        Self(BTreeMap::from([(0, MAX_SLOTS)]))
    }

    /// Takes a slot; whether it was free.
    pub(super) fn take(&mut self, slot: Slot) -> bool {
        let Some((&start, &end)) = self.0.range(..=slot).next_back() else { return false };
        if slot >= end {
            return false;
        }
        if start == slot {
            self.0.remove(&start);
        } else {
            self.0.insert(start, slot);
        }
        if slot + 1 < end {
            self.0.insert(slot + 1, end);
        }
        true
    }

    /// Frees a slot that was taken.
    pub(super) fn release(&mut self, slot: Slot) {
        let end = self.0.remove(&(slot + 1)).unwrap_or(slot + 1);
        match self.0.range_mut(..slot).next_back() {
            Some((_, before)) if *before == slot => *before = end,
            _ => drop(self.0.insert(slot, end)),
        }
    }

    /// The highest slot that is taken.
    pub(super) fn highest_taken(&self) -> Option<Slot> {
        match self.0.last_key_value() {
            Some((start, &MAX_SLOTS)) => start.checked_sub(1),
            _ => Some(MAX_SLOTS - 1),
        }
    }

    /// The free slots ascending, and among them those of `freed`, which are not free yet.
    pub(super) fn with<'a>(&'a self, freed: &'a BTreeSet<Slot>) -> impl Iterator<Item = Slot> + 'a {
        let mut free = self.0.iter().flat_map(|(start, end)| *start..*end).peekable();
        let mut freed = freed.iter().copied().peekable();
        core::iter::from_fn(move || match (free.peek(), freed.peek()) {
            (Some(a), Some(b)) if b < a => freed.next(),
            (None, _) => freed.next(),
            _ => free.next(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_free_slots_are_those_that_are_not_taken(steps in proptest::collection::vec((0..12u32, any::<bool>()), 0..60)) {
            let (mut vacancies, mut taken) = (Vacancies::all(), BTreeSet::new());
            for (slot, take) in steps {
                if take {
                    prop_assert_eq!(vacancies.take(slot), taken.insert(slot));
                } else if taken.remove(&slot) {
                    vacancies.release(slot);
                }
                let free = (0..14u32).filter(|slot| !taken.contains(slot));
                prop_assert!(vacancies.with(&BTreeSet::new()).take_while(|slot| *slot < 14).eq(free));
                prop_assert_eq!(vacancies.highest_taken(), taken.last().copied());
                let freed: BTreeSet<_> = taken.iter().copied().step_by(2).collect();
                let free = (0..14u32).filter(|slot| !taken.contains(slot) || freed.contains(slot));
                prop_assert!(vacancies.with(&freed).take_while(|slot| *slot < 14).eq(free));
                prop_assert!(vacancies.0.iter().zip(vacancies.0.iter().skip(1)).all(|(a, b)| a.1 < b.0));
            }
        }
    }

    #[test]
    fn the_last_slot_can_be_taken_and_given_back() {
        let mut vacancies = Vacancies::all();
        assert!(
            vacancies.take(MAX_SLOTS - 1) && !vacancies.take(MAX_SLOTS - 1) && !vacancies.take(MAX_SLOTS)
        );
        assert_eq!(vacancies.highest_taken(), Some(MAX_SLOTS - 1));
        vacancies.release(MAX_SLOTS - 1);
        assert_eq!(vacancies.highest_taken(), None);
    }
}
