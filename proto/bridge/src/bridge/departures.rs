//! Notes which systems leave the group, so that programs are told: a ground station sees no more than that a vehicle is silent.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Time for which a system must be gone: whoever starts anew is back within it.
const GONE_FOR: Duration = Duration::from_secs(2);

/// Systems whose holders are members, and those that were.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// Of this term, once it is known. Another leader's table begins without places.
    term: Option<u64>,
    present: BTreeMap<u32, Option<Instant>>,
}

impl Departures {
    /// A term is in force. Those of the term before are not known yet in it.
    pub(super) fn set_term(&mut self, term: u64) {
        if self.term.replace(term).is_some_and(|held| held != term) {
            self.present.clear();
        }
    }

    /// Takes a table: each system that is granted, and whether its holder is a member.
    pub(super) fn take_table(&mut self, now: Instant, granted: impl IntoIterator<Item = (u32, bool)>) {
        let mut held = std::mem::take(&mut self.present);
        for (system, is_member) in granted {
            match (is_member, held.remove(&system)) {
                (true, _) => {
                    self.present.insert(system, None);
                }
                (false, Some(since)) => {
                    self.present.insert(system, since.or(Some(now)));
                }
                // It never was one, or that was told.
                (false, None) => {}
            }
        }
    }

    /// Systems that are gone for good, each once.
    pub(super) fn take(&mut self, now: Instant) -> Vec<u32> {
        let is_gone =
            |since: &mut Option<Instant>| since.is_some_and(|since| now.duration_since(since) >= GONE_FOR);
        self.present.extract_if(.., |_, since| is_gone(since)).map(|(system, _)| system).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_that_leaves_is_told_once_and_one_that_starts_anew_is_not() {
        let (start, mut departures) = (Instant::now(), Departures::default());
        departures.set_term(1);
        departures.take_table(start, [(1, true), (2, true), (3, false)]);
        assert!(departures.take(start + GONE_FOR).is_empty());
        departures.take_table(start, [(1, false), (2, false), (3, false)]);
        departures.take_table(start + GONE_FOR / 2, [(1, false), (2, true), (3, false)]);
        assert!(departures.take(start + GONE_FOR / 2).is_empty());
        assert_eq!(departures.take(start + GONE_FOR), [1]);
        departures.take_table(start + GONE_FOR, [(1, false), (2, true), (3, false)]);
        assert!(departures.take(start + GONE_FOR * 9).is_empty());
        // Withdrawn, and not evicted.
        departures.take_table(start + GONE_FOR, [(1, false), (3, false)]);
        assert!(departures.take(start + GONE_FOR * 9).is_empty());
    }

    #[test]
    fn another_leaders_table_without_places_evicts_nobody() {
        let (start, mut departures) = (Instant::now(), Departures::default());
        departures.set_term(1);
        departures.take_table(start, [(1, true)]);
        departures.set_term(2);
        departures.take_table(start, [(1, false)]);
        assert!(departures.take(start + GONE_FOR * 9).is_empty());
        departures.take_table(start, [(1, true)]);
        departures.take_table(start, [(1, false)]);
        assert_eq!(departures.take(start + GONE_FOR), [1]);
    }
}
