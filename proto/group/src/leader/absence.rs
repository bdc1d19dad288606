//! Members that are away: those that a term opens without, and those that are not heard in it for long.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::{DronePublicKey, Element, Name, Slot, Suite};
use rand_core::CryptoRngCore;

use super::memory::{Change, away_change};
use super::{Leader, LeaderEvent};
use quiver_machine::Now;

/// How many runs of absent slots a header lists at most: about 70 KB. Two restarts in a row of a leader of a million can
/// leave hundreds of thousands, more than a message takes.
const MAX_RUNS: usize = 1 << 13;

impl<S: Suite> Leader<S> {
    /// Members without an unused spare point have to join again anyway. Those whom the header has no room for lose their
    /// slots as well, which tells them the same.
    pub(super) fn unseat_the_scattered(&mut self, spares: &BTreeMap<Slot, (u64, Element<S>)>) -> Vec<Change> {
        let slots = self.memory.roster.iter().map(|(slot, _)| slot);
        let surplus = beyond(slots.filter(|slot| !spares.contains_key(slot)), MAX_RUNS);
        let mut changes = Vec::with_capacity(surplus.len() * 2);
        for slot in surplus {
            changes.push(Change::Vacated(slot));
            self.memory.remove_spare(slot);
            if let Some(holder) = self.memory.roster.remove(slot) {
                changes.push(self.note_as_away(&holder));
            }
        }
        changes
    }

    fn note_as_away(&mut self, member: &DronePublicKey<S>) -> Change {
        let (name, serial) = (&member.identity.name, member.identity.serial);
        self.memory.note_away(name.clone(), serial);
        away_change(name, &serial)
    }

    /// Puts out the members that were never heard in this term, now and then.
    pub(super) fn dismiss_the_silent(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Some(lead) = &mut self.lead else { return };
        lead.sweep = now.monotonic.saturating_add(self.config.timing.absence);
        let slots = lead.leadership.roster().iter().map(|(slot, _)| slot);
        let silent: Vec<Slot> = slots.filter(|slot| self.links.is_silent(*slot)).collect();
        if !silent.is_empty() {
            let members = silent.iter().filter_map(|slot| self.roster().get(*slot)).cloned();
            let members: Vec<_> = members.collect();
            let changes: Vec<_> = members.iter().map(|member| self.note_as_away(member)).collect();
            self.persist(&changes);
            self.backlog.remove(silent);
            self.rekey(now, rng);
        }
    }

    /// Keeps out a drone that is no member just now, but was one before it lost its slot by being away.
    pub(super) fn evict_one_away(&mut self, now: Now, name: Name, rng: &mut dyn CryptoRngCore) {
        let Some(serial) = self.memory.away.get(&name).copied() else {
            return self.out.event(LeaderEvent::NoSuchMember(name));
        };
        if !self.roster().is_evicted(&serial) {
            self.backlog.evict([serial]);
            self.rekey(now, rng);
        }
        if self.put_out_the_rest(now, rng) {
            self.memory.away.remove(&name);
            self.out.event(LeaderEvent::Barred(name));
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
    use quiver_ainq::StrategyKind;

    use super::super::LeaderCommand;
    use super::super::crowd::{Crowd, name};
    use super::*;
    use quiver_machine::Output;

    #[test]
    fn a_member_without_a_slot_is_evicted_by_its_name_while_it_is_away() {
        // Every other slot is taken, by somebody without a spare point: a run each.
        let surplus = 2 * Slot::try_from(MAX_RUNS).unwrap();
        let mut crowd = Crowd::new(StrategyKind::Tree, (0..=surplus).step_by(2));
        assert_eq!(crowd.leader.roster().len(), MAX_RUNS);
        crowd.restart();
        crowd.records = crowd.leader.checkpoint();
        crowd.restart();
        let said = |outputs: &[Output<LeaderEvent, _>], event: &LeaderEvent| {
            outputs.iter().any(|output| matches!(output, Output::Event(said) if said == event))
        };
        let lost = name(&alloc::format!("drone-{surplus}"));
        let outputs = crowd.command(LeaderCommand::Evict(lost.clone()));
        assert!(said(&outputs, &LeaderEvent::Barred(lost)));
        assert_eq!(crowd.leader.roster().evicted().count(), 1);
        // A name that nobody had is still nobody's.
        let nobody = name(&alloc::format!("drone-{}", surplus + 2));
        let outputs = crowd.command(LeaderCommand::Evict(nobody.clone()));
        assert!(said(&outputs, &LeaderEvent::NoSuchMember(nobody)));
    }

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
