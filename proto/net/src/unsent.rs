//! Counts bytes that wait for strangers to take them: messages in their turn, on their way, and answers.
//!
//! A stranger decides what it asks for, and how slowly it takes what it is answered. Some bytes of each need
//! no room, so that drones join while others take nothing.

use std::collections::HashMap;

use libp2p::PeerId;

use crate::config::UnsentLimits;

/// Bytes that a message takes beside its content.
const MESSAGE_COST: usize = 256;

/// Bytes that wait for strangers. Peers that have proven who they are are not counted.
pub(crate) struct Unsent {
    limits: UnsentLimits,
    strangers: HashMap<PeerId, usize>,
    all: usize,
}

impl Unsent {
    pub(crate) fn new(limits: UnsentLimits) -> Self {
        Self { limits, strangers: HashMap::new(), all: 0 }
    }

    /// A stranger is connected.
    pub(crate) fn add(&mut self, peer: PeerId) {
        self.strangers.entry(peer).or_default();
    }

    /// The peer has proven who it is, or is gone.
    pub(crate) fn remove(&mut self, peer: &PeerId) {
        if let Some(bytes) = self.strangers.remove(peer) {
            self.all = self.all.saturating_sub(bytes);
        }
    }

    /// A message of so many bytes waits for a peer from now on, if there is room for it: whether there is.
    pub(crate) fn take(&mut self, peer: &PeerId, message: usize) -> bool {
        let Some(bytes) = self.strangers.get_mut(peer) else { return true };
        let needed = message.saturating_add(MESSAGE_COST);
        let after = bytes.saturating_add(needed);
        let all = self.all.saturating_add(needed);
        if after > self.limits.free && (after > self.limits.each || all > self.limits.strangers) {
            return false;
        }
        (*bytes, self.all) = (after, all);
        true
    }

    /// It was taken, or is lost.
    pub(crate) fn give_back(&mut self, peer: &PeerId, message: usize) {
        if let Some(bytes) = self.strangers.get_mut(peer) {
            // Messages sent to it before it was counted are not.
            let back = message.saturating_add(MESSAGE_COST).min(*bytes);
            (*bytes, self.all) = (*bytes - back, self.all.saturating_sub(back));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: UnsentLimits = UnsentLimits { free: 4_000, each: 20_000, strangers: 50_000 };

    #[test]
    fn strangers_that_take_nothing_hold_bounded_bytes_and_short_messages_pass() {
        let mut unsent = Unsent::new(LIMITS);
        let peers: Vec<_> = (0..20).map(|_| PeerId::random()).collect();
        peers.iter().for_each(|peer| unsent.add(*peer));
        let fits = |unsent: &mut Unsent, peer| (0..100).filter(|_| unsent.take(peer, 1_000)).count();
        assert_eq!(fits(&mut unsent, &peers[0]), LIMITS.each / (1_000 + MESSAGE_COST));
        for peer in &peers[1..] {
            assert!(fits(&mut unsent, peer) >= LIMITS.free / (1_000 + MESSAGE_COST));
        }
        assert!(unsent.all <= LIMITS.strangers + peers.len() * LIMITS.free);
        let stranger = PeerId::random();
        unsent.add(stranger);
        assert!(!unsent.take(&stranger, 10_000), "there is no room");
        assert!(unsent.take(&stranger, 1_000), "but for what is short");
        // A peer that is no stranger is not counted.
        unsent.remove(&stranger);
        assert!((0..100).all(|_| unsent.take(&stranger, 1_000_000)));
        unsent.give_back(&stranger, 1_000_000);
        peers.iter().for_each(|peer| unsent.remove(peer));
        assert_eq!((unsent.all, unsent.strangers.len()), (0, 0));
    }

    #[test]
    fn what_was_taken_leaves_room() {
        let mut unsent = Unsent::new(LIMITS);
        let peer = PeerId::random();
        unsent.add(peer);
        for _ in 0..100 {
            assert!(unsent.take(&peer, 15_000));
            assert!(!unsent.take(&peer, 15_000));
            unsent.give_back(&peer, 15_000);
        }
        assert_eq!(unsent.all, 0);
        unsent.give_back(&peer, 15_000);
        assert_eq!(unsent.all, 0, "never less than nothing");
    }
}
