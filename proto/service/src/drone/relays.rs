//! Drones behind relays, as a leader's machine knows them. Without the feature `relays` there are none.

#[cfg_attr(not(feature = "relays"), path = "relays/absent.rs")]
mod outer;

use quiver_machine::Peer;

pub(super) use self::outer::{Outer, outer};

/// Relays of a machine's peers.
pub trait PeerRelays {
    /// Number of connected relays, and of the drones behind them.
    fn relay_counts(&self) -> (usize, usize);

    /// The relay that a peer is behind.
    fn relay_before(&self, peer: Peer) -> Option<Peer>;
}
