//! Where members are reached, as far as a deputy knows: they show every leader their spare point.
//!
//! A hint is no proof: the statement may be played again from elsewhere. It decides where an opening's entry is sent first,
//! which is of use to its member alone; a member that gets none asks.

use alloc::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{Handle, Suite};
use quiver_message::SparePublication;

use super::Leader;
use super::memory::Spare;
use crate::Peer;

/// The connection that each member was last heard from.
#[derive(Debug, Default)]
pub(super) struct Hints {
    by_handle: BTreeMap<Handle, Peer>,
}

impl Hints {
    pub(super) fn insert(&mut self, member: Handle, peer: Peer) {
        self.by_handle.insert(member, peer);
    }

    pub(super) fn get(&self, member: &Handle) -> Option<Peer> {
        self.by_handle.get(member).copied()
    }

    pub(super) fn disconnect(&mut self, peer: Peer) {
        self.by_handle.retain(|_, hinted| *hinted != peer);
    }

    pub(super) fn clear(&mut self) {
        self.by_handle.clear();
    }

    /// All connections, once each.
    pub(super) fn peers(&self) -> BTreeSet<Peer> {
        self.by_handle.values().copied().collect()
    }
}

impl<S: Suite> Leader<S> {
    /// A member shows a deputy its spare point: kept if it is the newest, though only the leader in office answers.
    pub(super) fn spare_shown(&mut self, from: Peer, message: &SparePublication<S>) {
        if message.group != self.config.group {
            return;
        }
        // The copy of the roster may be older than the member's slot: a member that is not hinted at asks.
        let Some(public) = self.memory.roster.get(message.slot) else {
            return;
        };
        let (handle, spare) = (public.handle(), &message.spare);
        let known = self.memory.spare(message.slot);
        if known.is_some_and(|known| known.q > spare.q) {
            return;
        }
        let same = known.is_some_and(|known| known.is(&Spare::of(spare)));
        if !same {
            if let Err(error) = spare.verify(&self.config.deployment, &message.group, public) {
                return self.blame(from, error);
            }
            if known.is_some_and(|known| known.q == spare.q) {
                // Spent, or two points under one number.
                return;
            }
            self.keep_spare(message.slot, Spare::of(spare));
        }
        self.hints.insert(handle, from);
    }

    /// A term of ours opens: whoever was hinted at is sent its entry.
    pub(super) fn follow_hints(&mut self) {
        let Some(lead) = &self.lead else { return };
        for (slot, public) in lead.leadership.roster().iter() {
            if self.links.peer(slot).is_none()
                && let Some(peer) = self.hints.get(&public.handle())
            {
                self.links.connect(slot, peer);
            }
        }
        self.hints.clear();
    }
}
