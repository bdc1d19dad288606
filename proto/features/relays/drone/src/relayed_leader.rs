//! The machine of a leader whose drones may be behind relays.

use std::ops::Deref;

use quiver_machine::{Input, Machine, Now, Output, Peer, forward_jobs};
use quiver_relay::WithRelays;
use quiver_service::drone::RoleNode;
use quiver_service::drone::feature::{GroupLeader, LeaderRelays, RelayedMachine};
use rand_core::CryptoRngCore;

use crate::RelayedLeaderFeature;

type LeaderNode = RoleNode<GroupLeader>;

/// A leader with relays before it.
#[derive(Debug)]
struct RelayedLeader(WithRelays<LeaderNode>);

impl LeaderRelays for RelayedLeaderFeature {
    fn put_before(&self, leader: LeaderNode) -> Box<dyn RelayedMachine<GroupLeader>> {
        Box::new(RelayedLeader(leader.into()))
    }
}

impl RelayedMachine<GroupLeader> for RelayedLeader {
    fn relay_counts(&self) -> (usize, usize) {
        self.0.relayed()
    }

    fn relay_before(&self, peer: Peer) -> Option<Peer> {
        self.0.relay_of(peer)
    }
}

impl Deref for RelayedLeader {
    type Target = LeaderNode;

    fn deref(&self) -> &LeaderNode {
        &self.0
    }
}

impl Machine for RelayedLeader {
    type Command = <LeaderNode as Machine>::Command;
    type Event = <LeaderNode as Machine>::Event;
    type Record = <LeaderNode as Machine>::Record;

    fn handle_input(&mut self, now: Now, input: Input<'_, Self::Command>, rng: &mut dyn CryptoRngCore) {
        self.0.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<Self::Event, Self::Record> {
        self.0.poll_output()
    }

    forward_jobs! {
        Self(machine) => machine,
    }
}
