//! Where members are reached, as far as a deputy knows: they show every leader their spare point.
//!
//! A hint is no proof: the statement may be played again from elsewhere. It decides where an opening's entry is sent first,
//! which is of use to its member alone; a member that gets none asks.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quiver_ainq::{Serial, Suite};
use quiver_message::SparePublication;

use super::Leader;
use super::memory::Spare;
use quiver_machine::{Now, Peer};

/// The connection that each member was last heard from.
#[derive(Debug, Default)]
pub(super) struct Hints {
    by_serial: BTreeMap<Serial, Peer>,
    /// The same the other way round: connections come and go, and few of them are anybody's.
    by_peer: BTreeSet<(Peer, Serial)>,
    /// Connections that members came to or left.
    changed: Vec<Peer>,
}

impl Hints {
    pub(super) fn insert(&mut self, member: Serial, peer: Peer) {
        if let Some(before) = self.by_serial.insert(member, peer) {
            self.by_peer.remove(&(before, member));
            self.changed.push(before);
        }
        self.by_peer.insert((peer, member));
        self.changed.push(peer);
    }

    /// The connections that members came to or left since this was asked.
    pub(super) fn take_changed(&mut self) -> Vec<Peer> {
        core::mem::take(&mut self.changed)
    }

    pub(super) fn get(&self, member: &Serial) -> Option<Peer> {
        self.by_serial.get(member).copied()
    }

    /// The members that were last heard over this connection.
    pub(super) fn behind(&self, peer: Peer) -> impl Iterator<Item = Serial> + '_ {
        let hinted = self.by_peer.range((peer, [0; 16])..=(peer, [u8::MAX; 16]));
        hinted.map(|(_, member)| *member)
    }

    pub(super) fn disconnect(&mut self, peer: Peer) {
        for member in self.behind(peer).collect::<Vec<_>>() {
            self.by_peer.remove(&(peer, member));
            self.by_serial.remove(&member);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// All connections, once each.
    pub(super) fn peers(&self) -> BTreeSet<Peer> {
        self.by_peer.iter().map(|(peer, _)| *peer).collect()
    }
}

impl<S: Suite> Leader<S> {
    /// A member shows a deputy its spare point: kept if it is the newest, though only the leader in office answers.
    pub(super) fn spare_shown(&mut self, now: Now, from: Peer, message: &SparePublication<S>) {
        if message.group != self.config.group {
            return;
        }
        // The copy of the roster may be older than the member's slot: a member that is not hinted at asks.
        let Some(public) = self.memory.roster.get(message.slot) else {
            return;
        };
        let (serial, spare) = (public.identity.serial, &message.spare);
        let known = self.memory.spare(message.slot);
        if known.is_none_or(|known| !known.is(&Spare::of(spare))) {
            // Older, spent, or two points under one number; or a newer one so soon that it costs neither curve arithmetic nor a record.
            let old = known.is_some_and(|known| known.q >= spare.q);
            let Some(used) = self.memory.spare_allowance(message.slot, spare.q, now).filter(|_| !old) else {
                return;
            };
            if let Err(error) = spare.verify(&self.config.deployment, &message.group, public) {
                // The slot may be another's by now.
                return self.report_offence(from, error);
            }
            self.keep_spare(message.slot, Spare::of(spare).with_allowance(used));
        }
        self.hints.insert(serial, from);
    }

    /// A term of ours opens: whoever was hinted at is sent its entry.
    pub(super) fn follow_hints(&mut self) {
        let Some(lead) = &self.lead else { return };
        for (slot, public) in lead.leadership.roster().iter() {
            if self.links.peer(slot).is_none()
                && let Some(peer) = self.hints.get(&public.identity.serial)
            {
                self.links.connect(slot, peer);
            }
        }
        self.hints.clear();
        self.relays.all_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_goes_takes_its_own_hints_along() {
        let member = |n| [n; 16];
        let mut hints = Hints::default();
        for (n, peer) in [(0, 1), (1, 1), (255, 1), (2, 2), (1, 2)] {
            hints.insert(member(n), Peer(peer));
        }
        assert_eq!(hints.peers(), BTreeSet::from([Peer(1), Peer(2)]));
        hints.disconnect(Peer(1));
        hints.disconnect(Peer(3));
        assert_eq!(hints.peers(), BTreeSet::from([Peer(2)]));
        let found = [0, 1, 2, 255].map(|n| hints.get(&member(n)));
        assert_eq!(found, [None, Some(Peer(2)), Some(Peer(2)), None]);
        hints.disconnect(Peer(2));
        assert!(hints.peers().is_empty() && hints.get(&member(1)).is_none());
    }
}
