//! Drones behind relays, as a leader's machine knows them. Without the feature `relays` there are none.

#[cfg(not(feature = "relays"))]
mod absent;
#[cfg(feature = "relays")]
mod present;

use quiver_machine::Peer;

#[cfg(not(feature = "relays"))]
pub(super) use self::absent::{Outer, outer};
#[cfg(feature = "relays")]
pub(super) use self::present::{Outer, outer};

/// Relays of a machine's peers.
pub trait PeerRelays {
    /// Number of connected relays, and of the drones behind them.
    fn relay_counts(&self) -> (usize, usize);

    /// The relay that a peer is behind.
    fn relay_before(&self, peer: Peer) -> Option<Peer>;
}
