//! Members that are away: those that a term opens without, and those that are not heard in it for long.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::{Element, Slot, Suite};
use rand_core::CryptoRngCore;

use super::Leader;
use super::memory::Change;
use crate::Now;

/// How many runs of absent slots a header lists at most: about 70 KB. Two restarts in a row of a leader of a million can
/// leave hundreds of thousands, more than a message takes.
const MAX_RUNS: usize = 1 << 13;

impl<S: Suite> Leader<S> {
    /// Members without an unused spare point have to join again anyway. Those whom the header has no room for lose their
    /// slots as well, which tells them the same.
    pub(super) fn unseat_the_scattered(&mut self, spares: &BTreeMap<Slot, (u64, Element<S>)>) -> Vec<Change> {
        let slots = self.memory.roster.iter().map(|(slot, _)| slot);
        let surplus = beyond(slots.filter(|slot| !spares.contains_key(slot)), MAX_RUNS);
        for slot in &surplus {
            self.memory.roster.remove(*slot);
            self.memory.remove_spare(*slot);
        }
        surplus.into_iter().map(Change::Vacated).collect()
    }

    /// Puts out the members that were never heard in this term, now and then.
    pub(super) fn dismiss_the_silent(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Some(lead) = &mut self.lead else { return };
        lead.sweep = now.monotonic.saturating_add(self.config.timing.absence);
        let slots = lead.leadership.roster().iter().map(|(slot, _)| slot);
        let silent: Vec<Slot> = slots.filter(|slot| self.links.is_silent(*slot)).collect();
        if !silent.is_empty() {
            self.backlog.remove(silent);
            self.rekey(now, rng);
        }
    }
}

/// The slots, which ascend, that belong to no run of the first so many.
fn beyond(slots: impl Iterator<Item = Slot>, runs: usize) -> Vec<Slot> {
    let (mut begun, mut last) = (0, None);
    let surplus = slots.filter(|slot| {
        begun += usize::from(last.replace(*slot).is_none_or(|last: Slot| last.saturating_add(1) != *slot));
        begun > runs
    });
    surplus.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_so_many_runs_is_surplus() {
        let absent = [0, 1, 2, 5, 9, 10, 12];
        assert_eq!(beyond(absent.into_iter(), 4), []);
        assert_eq!(beyond(absent.into_iter(), 3), [12]);
        assert_eq!(beyond(absent.into_iter(), 2), [9, 10, 12]);
        assert_eq!(beyond(absent.into_iter(), 0), absent);
        assert_eq!(beyond(0..1_000_000, 1), []);
    }
}
