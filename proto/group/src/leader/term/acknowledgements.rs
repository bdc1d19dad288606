//! Acknowledgements and connections of members.
//!
//! One flat table by slot (32 bytes per member) and one index by connection (16): a leader has up to 2^20 of
//! them.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use quiver_ainq::{Slot, UnixTime};

use quiver_machine::Peer;

/// State of one member's connection.
#[derive(Clone, Copy, Debug, Default)]
struct MemberConnection {
    peer: Option<Peer>,
    /// The highest catch-up number answered: boot number and count.
    number: u64,
    /// The mark of the newest epoch of this term that it acknowledged; 0 for none.
    acknowledged: u32,
    /// Time of its last message, in seconds since 1970; 0 for never. They fit until the year 2106.
    last_seen: u32,
}

/// Report about a member that has not acknowledged the newest epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::leader) struct Lagging {
    pub(in crate::leader) connected: bool,
    /// The counter of the newest epoch of this term that it acknowledged.
    pub(in crate::leader) acknowledged: Option<u64>,
    pub(in crate::leader) last_seen: Option<UnixTime>,
}

/// The lower half of an epoch's counter: no epoch is mistaken for another 2^32 later.
const fn mark(counter: u64) -> u32 {
    (counter & 0xffff_ffff) as u32
}

/// All members' connections and acknowledgements.
#[derive(Debug, Default)]
pub(in crate::leader) struct Acknowledgements {
    by_slot: Vec<MemberConnection>,
    by_peer: BTreeSet<(Peer, Slot)>,
    connected: usize,
    /// Number of members that acknowledged the newest epoch.
    acknowledged: usize,
    /// Connections over which members came or went.
    changed: Vec<Peer>,
}

impl Acknowledgements {
    pub(in crate::leader) fn peer(&self, slot: Slot) -> Option<Peer> {
        self.by_slot.get(slot as usize).and_then(|link| link.peer)
    }

    /// The link of a member. The caller knows that the slot is a member's, so the table grows no further than
    /// the group.
    fn entry(&mut self, slot: Slot) -> Option<&mut MemberConnection> {
        let index = slot as usize;
        if self.by_slot.len() <= index {
            self.by_slot.resize(index + 1, MemberConnection::default());
        }
        self.by_slot.get_mut(index)
    }

    /// The member in this slot proved to be behind this connection. One connection may carry many (a
    /// gateway).
    pub(in crate::leader) fn connect(&mut self, slot: Slot, peer: Peer) {
        let before = self.entry(slot).and_then(|link| link.peer.replace(peer));
        // §13.7: what a connection relays depends on the members proven over it.
        if before != Some(peer) {
            self.changed.extend(before.into_iter().chain([peer]));
        }
        if let Some(before) = before {
            self.by_peer.remove(&(before, slot));
        } else {
            self.connected += 1;
        }
        self.by_peer.insert((peer, slot));
    }

    /// The connections over which members came or went since this was asked.
    pub(in crate::leader) fn take_changed(&mut self) -> Vec<Peer> {
        core::mem::take(&mut self.changed)
    }

    /// Returns true if members are reached over this connection.
    pub(in crate::leader) fn carries(&self, peer: Peer) -> bool {
        self.slots_of(peer).next().is_some()
    }

    /// The slots of the members that are reached over this connection.
    pub(in crate::leader) fn slots_of(&self, peer: Peer) -> impl Iterator<Item = Slot> + '_ {
        self.by_peer.range((peer, Slot::MIN)..=(peer, Slot::MAX)).map(|(_, slot)| *slot)
    }

    /// The connection is gone.
    pub(in crate::leader) fn disconnect(&mut self, peer: Peer) {
        let slots: Vec<Slot> = self.slots_of(peer).collect();
        for slot in slots {
            self.by_peer.remove(&(peer, slot));
            if let Some(link) = self.by_slot.get_mut(slot as usize) {
                link.peer = None;
                self.connected -= 1;
            }
        }
    }

    /// The member is out.
    pub(in crate::leader) fn remove(&mut self, slot: Slot) -> Option<Peer> {
        let peer = core::mem::take(self.by_slot.get_mut(slot as usize)?).peer?;
        self.connected -= 1;
        self.by_peer.remove(&(peer, slot));
        self.changed.push(peer);
        Some(peer)
    }

    /// A new epoch, which everybody is to acknowledge.
    pub(in crate::leader) fn start_epoch(&mut self) {
        self.acknowledged = 0;
    }

    /// Notes an acknowledgement of the newest epoch. Returns whether it is this member's first.
    pub(in crate::leader) fn acknowledge(&mut self, slot: Slot, counter: u64) -> bool {
        let Some(link) = self.entry(slot) else { return false };
        let first = core::mem::replace(&mut link.acknowledged, mark(counter)) != mark(counter);
        self.acknowledged += usize::from(first);
        first
    }

    /// Notes the number of a question. Returns whether it is higher than all before.
    pub(in crate::leader) fn note_question(&mut self, slot: Slot, number: u64) -> bool {
        // §11.1: r rises strictly.
        let Some(link) = self.entry(slot).filter(|link| link.number < number) else { return false };
        link.number = number;
        true
    }

    /// Connected members, from this slot on, that have not acknowledged the epoch of this counter.
    pub(in crate::leader) fn late(
        &self,
        from: Slot,
        counter: u64,
    ) -> impl Iterator<Item = (Slot, Peer)> + '_ {
        // §7.5: the epoch is retransmitted to connected members that do not acknowledge it.
        let links = self.by_slot.get(from as usize..).unwrap_or_default();
        let late = (from..).zip(links).filter(move |(_, link)| link.acknowledged != mark(counter));
        late.filter_map(|(slot, link)| Some((slot, link.peer?)))
    }

    /// An authentic message of this member arrived.
    pub(in crate::leader) fn saw(&mut self, slot: Slot, at: UnixTime) {
        if let Some(link) = self.entry(slot) {
            link.last_seen = u32::try_from(at).unwrap_or(u32::MAX);
        }
    }

    /// Lag of a member behind epoch `counter`; `None` if it has acknowledged it.
    pub(in crate::leader) fn lagging(&self, slot: Slot, counter: u64) -> Option<Lagging> {
        let link = self.by_slot.get(slot as usize).copied().unwrap_or_default();
        let behind = u64::from(mark(counter).wrapping_sub(link.acknowledged));
        (behind != 0).then(|| Lagging {
            connected: link.peer.is_some(),
            acknowledged: (link.acknowledged != 0).then(|| counter.saturating_sub(behind)),
            last_seen: (link.last_seen != 0).then_some(link.last_seen.into()),
        })
    }

    /// Returns true if a member is not connected and acknowledged nothing in this term.
    pub(in crate::leader) fn is_silent(&self, slot: Slot) -> bool {
        // §12.1: no acknowledgement and no connection.
        self.by_slot.get(slot as usize).is_none_or(|link| link.peer.is_none() && link.acknowledged == 0)
    }

    /// The members whose connection is known.
    pub(in crate::leader) fn connections(&self) -> impl Iterator<Item = (Slot, Peer)> + '_ {
        (0..).zip(&self.by_slot).filter_map(|(slot, link)| Some((slot, link.peer?)))
    }

    /// The connections over which members are reached, each once.
    pub(in crate::leader) fn peers(&self) -> impl Iterator<Item = Peer> + '_ {
        let mut last = None;
        let peers = self.by_peer.iter().map(|(peer, _)| *peer);
        peers.filter(move |peer| last.replace(*peer) != Some(*peer))
    }

    /// Number of members with a known connection.
    pub(in crate::leader) fn connected(&self) -> usize {
        self.connected
    }

    /// Number of members that acknowledged the newest epoch.
    pub(in crate::leader) fn acknowledged(&self) -> usize {
        self.acknowledged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_members_are_told_once_each_and_not_those_of_drones_that_are_out() {
        let mut links = Acknowledgements::default();
        for (slot, peer) in [(0, Peer(7)), (1, Peer(7)), (2, Peer(9))] {
            links.connect(slot, peer);
        }
        assert_eq!(links.peers().collect::<Vec<_>>(), [Peer(7), Peer(9)]);
        links.remove(2);
        links.remove(0);
        assert_eq!(links.peers().collect::<Vec<_>>(), [Peer(7)]);
        links.disconnect(Peer(7));
        assert_eq!(links.peers().next(), None);
    }
}
