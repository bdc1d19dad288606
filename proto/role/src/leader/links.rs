//! Where members are reached, and what they have acknowledged.

use alloc::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{Epoch, Slot};

use crate::Peer;

/// What is known of one member's connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    pub(super) peer: Option<Peer>,
    /// The highest catch-up number answered: boot number and count.
    pub(super) number: u64,
    pub(super) acknowledged: Option<Epoch>,
}

/// All members' links.
#[derive(Debug, Default)]
pub(super) struct Links {
    by_slot: BTreeMap<Slot, Link>,
    by_peer: BTreeMap<Peer, BTreeSet<Slot>>,
    /// Connected members that have not acknowledged the newest epoch.
    outstanding: BTreeSet<Slot>,
    /// How many have.
    acknowledged: usize,
}

impl Links {
    pub(super) fn peer(&self, slot: Slot) -> Option<Peer> {
        self.by_slot.get(&slot).and_then(|link| link.peer)
    }

    pub(super) fn entry(&mut self, slot: Slot) -> &mut Link {
        self.by_slot.entry(slot).or_default()
    }

    /// The member in this slot proved to be behind this connection. One connection may carry many (a gateway).
    pub(super) fn connect(&mut self, slot: Slot, peer: Peer) {
        let before = self.entry(slot).peer.replace(peer);
        if before != Some(peer) {
            if let Some(before) = before {
                self.unlist(before, slot);
            }
            self.by_peer.entry(peer).or_default().insert(slot);
        }
    }

    /// Whether members are reached over this connection.
    pub(super) fn carries(&self, peer: Peer) -> bool {
        self.by_peer.contains_key(&peer)
    }

    /// The connection is gone.
    pub(super) fn disconnect(&mut self, peer: Peer) {
        for slot in self.by_peer.remove(&peer).unwrap_or_default() {
            self.outstanding.remove(&slot);
            if let Some(link) = self.by_slot.get_mut(&slot) {
                link.peer = None;
            }
        }
    }

    /// The member is out.
    pub(super) fn remove(&mut self, slot: Slot) -> Option<Peer> {
        self.outstanding.remove(&slot);
        let peer = self.by_slot.remove(&slot)?.peer?;
        self.unlist(peer, slot);
        Some(peer)
    }

    fn unlist(&mut self, peer: Peer, slot: Slot) {
        if let Some(slots) = self.by_peer.get_mut(&peer) {
            slots.remove(&slot);
            if slots.is_empty() {
                self.by_peer.remove(&peer);
            }
        }
    }

    /// A new epoch: these members are to acknowledge it.
    pub(super) fn expect(&mut self, slots: impl Iterator<Item = Slot>) {
        self.acknowledged = 0;
        self.outstanding = slots.filter(|slot| self.peer(*slot).is_some()).collect();
    }

    /// One more member is to acknowledge the newest epoch.
    pub(super) fn expect_also(&mut self, slot: Slot) {
        self.outstanding.insert(slot);
    }

    /// Notes an acknowledgement of the newest epoch. Returns whether it is this member's first.
    pub(super) fn acknowledge(&mut self, slot: Slot, epoch: Epoch) -> bool {
        self.outstanding.remove(&slot);
        let first = self.entry(slot).acknowledged.replace(epoch) != Some(epoch);
        self.acknowledged += usize::from(first);
        first
    }

    pub(super) fn outstanding(&self) -> impl Iterator<Item = (Slot, Peer)> + '_ {
        self.outstanding.iter().filter_map(|slot| Some((*slot, self.peer(*slot)?)))
    }

    pub(super) fn connected(&self) -> usize {
        self.by_slot.values().filter(|link| link.peer.is_some()).count()
    }

    /// How many members acknowledged the newest epoch.
    pub(super) fn acknowledged(&self) -> usize {
        self.acknowledged
    }
}
