//! Refusals that the log has told of: a peer that is refused asks again, often every second.

use std::collections::BTreeMap;

use quiver_machine::{Peer, RefusalReason};

/// The most peers that are remembered; further ones are told of again.
const MOST: usize = 4096;

/// Reasons that were told, by peer.
#[derive(Debug, Default)]
pub(super) struct ToldRefusals(BTreeMap<Peer, RefusalReason>);

impl ToldRefusals {
    /// Whether a refusal is another than this peer's last.
    pub(super) fn is_news(&mut self, peer: Peer, reason: RefusalReason) -> bool {
        if self.0.len() >= MOST && !self.0.contains_key(&peer) {
            self.0.clear();
        }
        self.0.insert(peer, reason) != Some(reason)
    }

    /// Forgets a peer that is gone.
    pub(super) fn forget(&mut self, peer: Peer) {
        self.0.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_once_for_as_long_as_the_peer_is_connected() {
        let (mut told, one, other) = (ToldRefusals::default(), Peer(1), Peer(2));
        assert!(told.is_news(one, RefusalReason::NotReady) && told.is_news(other, RefusalReason::NotReady));
        assert!(!told.is_news(one, RefusalReason::NotReady));
        assert!(told.is_news(one, RefusalReason::Busy) && told.is_news(one, RefusalReason::NotReady));
        told.forget(one);
        assert!(told.is_news(one, RefusalReason::NotReady) && !told.is_news(other, RefusalReason::NotReady));
    }

    #[test]
    fn peers_are_bounded() {
        let mut told = ToldRefusals::default();
        (0..3 * MOST as u64).for_each(|peer| assert!(told.is_news(Peer(peer), RefusalReason::Busy)));
        assert!(told.0.len() <= MOST);
    }
}
