//! Members of a term, beside its roster: who has no key, who came in this term, and whose identity ends next.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use quiver_ainq::{Epoch, Header, Roster, Slot, SlotChanges, Suite, UnixTime};

use crate::leader::failover::competing_leaders::departed;

/// Facts about the members of a term that its roster does not have.
#[derive(Debug)]
pub(in crate::leader) struct TermMembers {
    /// Members of the roster that have no key in this term.
    absent: BTreeSet<Slot>,
    /// Not later than the end of the first identity or anonymous membership on the roster that ends.
    first_end: UnixTime,
    /// The epoch whose roster the term was opened with, which may be older than the term before.
    pub(in crate::leader) opened_with: Option<Epoch>,
    /// Slots that were given to a drone in this term.
    joined: BTreeSet<Slot>,
}

impl TermMembers {
    pub(super) const fn new(absent: BTreeSet<Slot>, first_end: UnixTime, opened_with: Option<Epoch>) -> Self {
        Self { absent, first_end, opened_with, joined: BTreeSet::new() }
    }

    /// Number of members with a key in this term.
    pub(super) fn keyed<S: Suite>(&self, roster: &Roster<S>) -> usize {
        roster.len().saturating_sub(self.absent.len())
    }

    /// Slots of members whose identity has ended. Scans the roster only if there can be any.
    pub(super) fn expired<S: Suite>(&mut self, roster: &Roster<S>, now: UnixTime) -> Vec<Slot> {
        if now < self.first_end {
            return Vec::new();
        }
        let (expired, first_end) = expired(roster, now);
        self.first_end = first_end;
        expired
    }

    /// Goes on to an epoch without the members that were dropped, and with others, whose identities and
    /// memberships end then.
    pub(super) fn advance(
        &mut self,
        dropped: &[Slot],
        assigned: &[Slot],
        ends: impl Iterator<Item = UnixTime>,
    ) {
        for slot in dropped {
            self.absent.remove(slot);
        }
        self.joined.extend(assigned);
        self.first_end = ends.fold(self.first_end, UnixTime::min);
    }

    /// Members that are out by another leader's verified header, unless they joined in this term.
    pub(in crate::leader) fn departures<S: Suite>(
        &self,
        roster: &Roster<S>,
        header: &Header<S>,
        changes: Option<&SlotChanges>,
    ) -> Vec<Slot> {
        let mut out = departed(roster, self.opened_with, header, changes);
        out.retain(|slot| !self.joined.contains(slot));
        out
    }
}

/// The slots of those whose identity or anonymous membership has ended, and when the next one ends.
pub(super) fn expired<S: Suite>(roster: &Roster<S>, now: UnixTime) -> (Vec<Slot>, UnixTime) {
    let (mut expired, mut first_end) = (Vec::new(), UnixTime::MAX);
    let named = roster.iter().map(|(slot, public)| (slot, public.identity.not_after));
    for (slot, end) in named.chain(roster.anonymous_members().map(|(slot, member)| (slot, member.until))) {
        match end {
            end if end <= now => expired.push(slot),
            end => first_end = first_end.min(end),
        }
    }
    (expired, first_end)
}
