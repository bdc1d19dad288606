//! The machine of a running service: its role, parts of features beside it, and relays before it if a feature has
//! some.

use std::ops::Deref;

use quiver_ainq::Ristretto255;
use quiver_machine::{Input, Machine, Node, Now, Output, Peer, Primary, forward_jobs};
use rand_core::CryptoRngCore;

use super::feature::{FeatureParts, Features, GroupLeader, RelayedMachine};

/// A role with parts of features.
pub type RoleNode<P> = Node<P, FeatureParts>;

/// The machine of a running service: an edge or a leader, and parts of features. Leaders may have relays; edges have none.
#[derive(Debug)]
pub enum DroneMachine<P: Primary<Suite = Ristretto255>> {
    /// A machine whose peers connect to it themselves.
    Direct(RoleNode<P>),
    /// A machine whose peers may be behind relays.
    Relayed(Box<dyn RelayedMachine<P>>),
}

/// Commands of the drone's machine.
pub type Command<P> = <RoleNode<P> as Machine>::Command;

/// The machine of a service in this role, of a program with these features.
pub fn with_parts<P: Primary<Suite = Ristretto255>>(features: Features, primary: P) -> DroneMachine<P> {
    DroneMachine::Direct(Node::new(primary, FeatureParts::of(features)))
}

/// The machine of a leader, of a program with these features, behind relays if one of them has any.
pub fn leader_with_parts(features: Features, leader: GroupLeader) -> DroneMachine<GroupLeader> {
    let node = Node::new(leader, FeatureParts::of(features));
    match features.iter().find_map(|feature| feature.relays()) {
        Some(relays) => DroneMachine::Relayed(relays.put_before(node)),
        None => DroneMachine::Direct(node),
    }
}

impl<P: Primary<Suite = Ristretto255>> DroneMachine<P> {
    /// Number of connected relays, and of the drones behind them.
    pub fn relay_counts(&self) -> (usize, usize) {
        match self {
            Self::Direct(_) => (0, 0),
            Self::Relayed(machine) => machine.relay_counts(),
        }
    }

    /// The relay that a peer is behind.
    pub fn relay_before(&self, peer: Peer) -> Option<Peer> {
        match self {
            Self::Direct(_) => None,
            Self::Relayed(machine) => machine.relay_before(peer),
        }
    }
}

impl<P: Primary<Suite = Ristretto255>> Deref for DroneMachine<P> {
    type Target = RoleNode<P>;

    fn deref(&self) -> &RoleNode<P> {
        match self {
            Self::Direct(node) => node,
            Self::Relayed(machine) => machine,
        }
    }
}

impl<P: Primary<Suite = Ristretto255>> Machine for DroneMachine<P> {
    type Command = Command<P>;
    type Event = <RoleNode<P> as Machine>::Event;
    type Record = <RoleNode<P> as Machine>::Record;

    fn handle_input(&mut self, now: Now, input: Input<'_, Command<P>>, rng: &mut dyn CryptoRngCore) {
        match self {
            Self::Direct(node) => node.handle_input(now, input, rng),
            Self::Relayed(machine) => machine.handle_input(now, input, rng),
        }
    }

    fn poll_output(&mut self) -> Output<Self::Event, Self::Record> {
        match self {
            Self::Direct(node) => node.poll_output(),
            Self::Relayed(machine) => machine.poll_output(),
        }
    }

    forward_jobs! {
        Self::Direct(node) => node,
        Self::Relayed(machine) => machine,
    }
}
