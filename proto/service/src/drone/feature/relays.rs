//! Interface of a feature that has relays between a leader and its drones.

use std::fmt;
use std::ops::Deref;

use quiver_ainq::Ristretto255;
use quiver_machine::{Machine, Peer, Primary};

use super::GroupLeader;
use crate::drone::RoleNode;

/// Relays that a feature has between a leader and its drones.
pub trait LeaderRelays: Sync {
    /// Puts relays before the machine of a leader.
    fn put_before(&self, leader: RoleNode<GroupLeader>) -> Box<dyn RelayedMachine<GroupLeader>>;
}

/// A machine whose peers may be behind relays. It dereferences to the machine behind them.
pub trait RelayedMachine<P: Primary<Suite = Ristretto255>>:
    Machine<
        Command = <RoleNode<P> as Machine>::Command,
        Event = <RoleNode<P> as Machine>::Event,
        Record = <RoleNode<P> as Machine>::Record,
    > + Deref<Target = RoleNode<P>>
    + fmt::Debug
    + Send
    + Sync
{
    /// Number of connected relays, and of the drones behind them.
    fn relay_counts(&self) -> (usize, usize);

    /// The relay that a peer is behind.
    fn relay_before(&self, peer: Peer) -> Option<Peer>;
}
