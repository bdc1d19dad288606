//! Absent members: drops those for whom the header of an opening has no room, and remembers them by name.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::{DronePublicKey, Element, Slot, Suite};

use crate::leader::store::{Change, LeaderStore, away_change};

/// Maximum number of runs of absent slots in a header: about 70 KB. Two restarts in a row of a leader of a
/// million can leave hundreds of thousands, more than a message takes.
const MAX_RUNS: usize = 1 << 13;

/// Drops members without an unused spare point, which have to join again anyway, for which the header has no
/// room: the loss of their slot has the same effect.
pub(super) fn drop_excess_absent<S: Suite>(
    store: &mut LeaderStore<S>,
    spares: &BTreeMap<Slot, (u64, Element<S>)>,
) -> Vec<Change> {
    let slots = store.roster.iter().map(|(slot, _)| slot);
    // §9.1: members without an unused spare point are listed as absent, as far as there is room.
    let surplus = beyond(slots.filter(|slot| !spares.contains_key(slot)), MAX_RUNS);
    let mut changes = Vec::with_capacity(surplus.len() * 2);
    for slot in surplus {
        changes.push(Change::Vacated(slot));
        store.remove_spare(slot);
        if let Some(holder) = store.roster.remove(slot) {
            changes.push(note_away(store, &holder));
        }
    }
    changes
}

/// Remembers a member by name although it has no slot, so that it can still be evicted.
pub(super) fn note_away<S: Suite>(store: &mut LeaderStore<S>, member: &DronePublicKey<S>) -> Change {
    let (name, serial) = (&member.identity.name, member.identity.serial);
    store.note_away(name.clone(), serial);
    away_change(name, &serial)
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

    use super::super::super::test_support::{LeaderFixture, name};
    use super::super::super::{LeaderCommand, LeaderEvent};
    use super::*;
    use quiver_machine::Output;

    #[test]
    fn a_member_without_a_slot_is_evicted_by_its_name_while_it_is_away() {
        // Every other slot is taken, by a member without a spare point: a run each.
        let surplus = 2 * Slot::try_from(MAX_RUNS).unwrap();
        let mut fixture = LeaderFixture::new(StrategyKind::Tree, (0..=surplus).step_by(2));
        assert_eq!(fixture.leader.roster().len(), MAX_RUNS);
        fixture.restart();
        fixture.records = fixture.leader.checkpoint();
        fixture.restart();
        let said = |outputs: &[Output<LeaderEvent, _>], event: &LeaderEvent| {
            outputs.iter().any(|output| matches!(output, Output::Event(said) if said == event))
        };
        let lost = name(&alloc::format!("drone-{surplus}"));
        let outputs = fixture.command(LeaderCommand::Evict(lost.clone()));
        assert!(said(&outputs, &LeaderEvent::Barred(lost)));
        assert_eq!(fixture.leader.roster().evicted().count(), 1);
        // A name that nobody had is still nobody's.
        let nobody = name(&alloc::format!("drone-{}", surplus + 2));
        let outputs = fixture.command(LeaderCommand::Evict(nobody.clone()));
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
