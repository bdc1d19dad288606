//! Relays of a machine whose peers may be behind some.

use quiver_machine::{Machine, Peer};
use quiver_relay::WithRelays;

use super::PeerRelays;

/// A machine whose peers may be behind relays.
pub(in crate::drone) type Outer<M> = WithRelays<M>;

/// Puts relays before a machine.
pub(in crate::drone) fn outer<M: Machine>(machine: M) -> Outer<M> {
    machine.into()
}

impl<M: Machine> PeerRelays for WithRelays<M> {
    fn relay_counts(&self) -> (usize, usize) {
        self.relayed()
    }

    fn relay_before(&self, peer: Peer) -> Option<Peer> {
        self.relay_of(peer)
    }
}
