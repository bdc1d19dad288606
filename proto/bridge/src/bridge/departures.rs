//! Notes which systems leave the group, so that programs are told: a ground station sees no more than that a vehicle is silent.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_mavlink::Grant;
use tokio::time::Instant;

/// Time for which a system must be gone: whoever starts anew is back within it.
const GONE_FOR: Duration = Duration::from_secs(2);

/// Standing of the holder of a system id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HolderState {
    Member,
    Evicted,
    /// It left, lost its slot because it was away, or is yet to join.
    Absent,
}

impl From<Grant> for HolderState {
    fn from(grant: Grant) -> Self {
        match (grant.slot, grant.evicted) {
            (Some(_), _) => Self::Member,
            (None, true) => Self::Evicted,
            (None, false) => Self::Absent,
        }
    }
}

/// A system that is gone for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Departure {
    pub(super) system: u32,
    pub(super) evicted: bool,
}

impl Departure {
    /// Text for an operator; at most 50 bytes.
    pub(super) fn text(self) -> String {
        let Self { system, evicted } = self;
        match evicted {
            true => format!("Quiver: system {system} was evicted"),
            false => format!("Quiver: system {system} left or was away long"),
        }
    }
}

/// Systems whose holders are members, and those that were.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// Term of the table, once it is known. Another leader's table begins without places.
    term: Option<u64>,
    /// Since when it is gone, and whether it was evicted; `None` for a member.
    present: BTreeMap<u32, Option<(Instant, bool)>>,
}

impl Departures {
    /// A term is in force. Those of the term before are not known yet in it.
    pub(super) fn set_term(&mut self, term: u64) {
        if self.term.replace(term).is_some_and(|held| held != term) {
            // Another leader's table begins without slots: everybody would seem to have left.
            self.present.clear();
        }
    }

    /// Takes a table: each system that is granted, and how its holder stands.
    pub(super) fn take_table(&mut self, now: Instant, granted: impl IntoIterator<Item = (u32, HolderState)>) {
        let mut held = std::mem::take(&mut self.present);
        for (system, standing) in granted {
            match (standing, held.remove(&system)) {
                (HolderState::Member, _) => {
                    self.present.insert(system, None);
                }
                (_, Some(gone)) => {
                    let since = gone.map_or(now, |(since, _)| since);
                    self.present.insert(system, Some((since, standing == HolderState::Evicted)));
                }
                // It never was one, or that was told.
                (_, None) => {}
            }
        }
    }

    /// Systems that are gone for good, each once.
    pub(super) fn take(&mut self, now: Instant) -> Vec<Departure> {
        let is_gone = |gone: &Option<(Instant, bool)>| {
            gone.is_some_and(|(since, _)| now.duration_since(since) >= GONE_FOR)
        };
        let gone = self.present.extract_if(.., |_, gone| is_gone(gone));
        gone.filter_map(|(system, gone)| gone.map(|(_, evicted)| Departure { system, evicted })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::HolderState::{Absent, Evicted, Member};
    use super::*;

    fn left(system: u32) -> Departure {
        Departure { system, evicted: false }
    }

    #[test]
    fn system_that_leaves_is_told_once_and_one_that_starts_anew_is_not() {
        let (start, mut departures) = (Instant::now(), Departures::default());
        departures.set_term(1);
        departures.take_table(start, [(1, Member), (2, Member), (3, Absent)]);
        assert!(departures.take(start + GONE_FOR).is_empty());
        departures.take_table(start, [(1, Absent), (2, Absent), (3, Absent)]);
        departures.take_table(start + GONE_FOR / 2, [(1, Absent), (2, Member), (3, Absent)]);
        assert!(departures.take(start + GONE_FOR / 2).is_empty());
        assert_eq!(departures.take(start + GONE_FOR), [left(1)]);
        departures.take_table(start + GONE_FOR, [(1, Absent), (2, Member), (3, Absent)]);
        assert!(departures.take(start + GONE_FOR * 9).is_empty());
        // Withdrawn, and not evicted.
        departures.take_table(start + GONE_FOR, [(1, Absent), (3, Absent)]);
        assert!(departures.take(start + GONE_FOR * 9).is_empty());
    }

    #[test]
    fn an_eviction_is_told_from_a_leave_also_if_it_is_learnt_a_moment_later() {
        let (start, mut departures) = (Instant::now(), Departures::default());
        departures.set_term(1);
        departures.take_table(start, [(1, Member), (2, Member), (3, Evicted)]);
        departures.take_table(start, [(1, Absent), (2, Absent), (3, Evicted)]);
        departures.take_table(start + GONE_FOR / 2, [(1, Evicted), (2, Absent), (3, Evicted)]);
        assert_eq!(departures.take(start + GONE_FOR), [Departure { system: 1, evicted: true }, left(2)]);
    }

    #[test]
    fn texts_fit_and_differ() {
        let texts = [true, false].map(|evicted| Departure { system: u32::MAX, evicted }.text());
        assert!(texts.iter().all(|text| text.len() <= quiver_mavlink::message::MAX_STATUS_TEXT), "{texts:?}");
        assert_ne!(texts[0], texts[1]);
    }

    #[test]
    fn another_leaders_table_without_places_evicts_nobody() {
        let (start, mut departures) = (Instant::now(), Departures::default());
        departures.set_term(1);
        departures.take_table(start, [(1, Member)]);
        departures.set_term(2);
        departures.take_table(start, [(1, Absent)]);
        assert!(departures.take(start + GONE_FOR * 9).is_empty());
        departures.take_table(start, [(1, Member)]);
        departures.take_table(start, [(1, Absent)]);
        assert_eq!(departures.take(start + GONE_FOR), [left(1)]);
    }
}
