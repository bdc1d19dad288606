//! Relays of a machine whose peers are behind none.

use quiver_machine::{MachinePart, Node, Peer, Primary};

use super::PeerRelays;

/// A machine whose peers are behind no relay.
pub(in crate::drone) type Outer<M> = M;

/// Leaves a machine as it is.
pub(in crate::drone) const fn outer<M>(machine: M) -> Outer<M> {
    machine
}

impl<P: Primary, Q: MachinePart<P::Suite>> PeerRelays for Node<P, Q> {
    fn relay_counts(&self) -> (usize, usize) {
        (0, 0)
    }

    fn relay_before(&self, _: Peer) -> Option<Peer> {
        None
    }
}
