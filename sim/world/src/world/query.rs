//! Read-only queries of the world: nodes, clocks, links, counters.

use std::time::Duration;

use quiver_admission::AnyEdge;
use quiver_ainq::{Handle, KemKey, KgcId, Suite};
use quiver_enrolment::Kgc;
use quiver_group::Leader;
use quiver_kem::KemSetting;
use quiver_machine::Now;
use quiver_testbed::{CompactRng, SimNode, Traffic};
use sha2::Digest;

use super::World;
use crate::EPOCH_START;
use crate::air::Air;
use crate::kgc_node::KgcNode;
use crate::node_id::NodeIndex;
use crate::step::Sabotage;
use crate::{Fleet, NodeId, Setup, SimNetwork};

impl<S: Suite> World<S> {
    /// Time since the world began.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// Setup of the world.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Second factor with which nodes start.
    pub(crate) fn kem(&self) -> KemSetting {
        match self.setup.sabotage {
            Sabotage::LeaveOutKem => KemSetting::None,
            _ => self.setup.kem,
        }
    }

    /// Keys, names and tokens.
    pub fn fleet(&self) -> &Fleet<S> {
        &self.fleet
    }

    /// The network between the nodes.
    pub fn network(&self) -> &SimNetwork {
        &self.network
    }

    /// The radio between the nodes, and who paid for it, if the world has one.
    pub fn air(&self) -> Option<&Air> {
        self.air.as_ref()
    }

    /// Traffic of the network.
    pub fn traffic(&self) -> Traffic {
        // Datagrams of the group are no messages.
        let (all, datagrams) =
            (self.network.traffic(), self.stations.as_ref().map(|stations| stations.traffic));
        let Some(datagrams) = datagrams else { return all };
        Traffic {
            sent: all.sent - datagrams.sent,
            bytes: all.bytes - datagrams.bytes,
            lost: all.lost - datagrams.lost,
            duplicated: all.duplicated - datagrams.duplicated,
            corrupted: all.corrupted - datagrams.corrupted,
        }
    }

    /// Number of edges.
    pub fn edge_count(&self) -> u32 {
        u32::try_from(self.edges.len()).unwrap_or(u32::MAX)
    }

    /// Number of leaders.
    pub fn leader_count(&self) -> u16 {
        self.nodes.leaders
    }

    /// An edge's machine, if it is switched on and [in this process](Self::has).
    pub fn edge(&self, number: u32) -> Option<&AnyEdge<S>> {
        self.edges.get(number as usize)?.as_ref()?.machine.as_deref().map(|drone| &*drone.edge)
    }

    /// κ that an edge shares with leaders, in its memory and on its disk.
    pub(crate) fn second_factors(&self, number: u32) -> Vec<(Handle, KemKey<S>)> {
        let Some(node) = self.edges.get(number as usize).and_then(Option::as_ref) else { return Vec::new() };
        let stored = node.disk.records.iter().filter_map(|record| {
            let drone = self.fleet.drone(number, Some(record), self.kem()).ok()?;
            drone.edge.compromised_state()
        });
        let memory = self.edge(number).and_then(AnyEdge::compromised_state);
        let keys = stored.chain(memory).flat_map(|state| state.kems);
        keys.filter_map(|(leader, key)| Some((leader, KemKey::decode(&key).ok()?))).collect()
    }

    /// A leader's machine, if it is switched on.
    pub fn leader(&self, ordinal: u16) -> Option<&Leader<S>> {
        self.leaders.get(usize::from(ordinal))?.machine.as_deref().map(|leader| &****leader)
    }

    /// The generator from which a leader draws next, for tests that compute once more what it drew.
    #[doc(hidden)]
    pub fn leader_generator(&self, ordinal: u16) -> Option<CompactRng> {
        self.leaders.get(usize::from(ordinal)).map(|leader| leader.rng.clone())
    }

    /// The generator from which an edge draws next, for the same tests.
    #[doc(hidden)]
    pub fn edge_generator(&self, number: u32) -> Option<CompactRng> {
        self.edges.get(number as usize)?.as_ref().map(|edge| edge.rng.clone())
    }

    /// Number of KGCs.
    pub fn kgc_count(&self) -> u16 {
        self.nodes.kgcs
    }

    /// A KGC's machine, if it is switched on.
    pub fn kgc(&self, id: KgcId) -> Option<&Kgc<S>> {
        self.kgc_node(id)?.machine.as_deref().map(|kgc_node| &**kgc_node)
    }

    pub(crate) fn kgc_node(&self, id: KgcId) -> Option<&SimNode<KgcNode<S>>> {
        self.kgcs.get(usize::from(id).checked_sub(1)?)
    }

    pub(crate) fn kgc_node_mut(&mut self, id: KgcId) -> Option<&mut SimNode<KgcNode<S>>> {
        self.kgcs.get_mut(usize::from(id).checked_sub(1)?)
    }

    /// A node's clocks.
    pub fn clock(&self, node: NodeId) -> Now {
        let now = self.now;
        let clock = match node {
            NodeId::Kgc(id) => self.kgc_node(id).map(|kgc| kgc.clock(now)),
            NodeId::Leader(ordinal) => self.leaders.get(usize::from(ordinal)).map(|leader| leader.clock(now)),
            NodeId::Relay(number) => self.relays.get(usize::from(number)).map(|relay| relay.clock(now)),
            NodeId::Edge(number) => {
                self.edges.get(number as usize).and_then(Option::as_ref).map(|edge| edge.clock(now))
            }
        };
        clock.unwrap_or(Now { monotonic: self.time(), unix: EPOCH_START + now / 1_000_000_000 })
    }

    /// Returns true if a node is switched on.
    pub fn alive(&self, node: NodeId) -> bool {
        match node {
            NodeId::Kgc(id) => self.kgc(id).is_some(),
            NodeId::Leader(ordinal) => self.leader(ordinal).is_some(),
            NodeId::Relay(number) => self.relays.get(usize::from(number)).is_some_and(SimNode::alive),
            NodeId::Edge(number) => self.is_on(number),
        }
    }

    /// Number of starts of a node.
    pub fn life(&self, node: NodeId) -> u32 {
        let edge = |number: u32| self.edges.get(number as usize).and_then(Option::as_ref);
        let life = match node {
            NodeId::Kgc(id) => self.kgc_node(id).map(|kgc| kgc.life),
            NodeId::Leader(ordinal) => self.leaders.get(usize::from(ordinal)).map(|leader| leader.life),
            NodeId::Relay(number) => self.relays.get(usize::from(number)).map(|relay| relay.life),
            NodeId::Edge(number) => edge(number).map(|edge| edge.life),
        };
        life.unwrap_or_default()
    }

    /// Returns true if a node waits because its disk refuses a record.
    pub fn stalled(&self, node: NodeId) -> bool {
        match node {
            NodeId::Kgc(id) => self.kgc_node(id).is_some_and(SimNode::stalled),
            NodeId::Leader(ordinal) => {
                self.leaders.get(usize::from(ordinal)).is_some_and(|leader| leader.stalled())
            }
            // It writes nothing.
            NodeId::Relay(_) => false,
            NodeId::Edge(number) => self.is_stalled(number),
        }
    }

    /// Returns true if two nodes have a connection.
    pub fn connected(&self, a: NodeId, b: NodeId) -> bool {
        self.links.connection(a, b).is_some()
    }

    /// The number of the connection of two nodes, if they have one.
    pub(crate) fn connection(&self, a: NodeId, b: NodeId) -> Option<u32> {
        self.links.connection(a, b)
    }

    /// Number of connected relays of a leader, and of the drones behind them.
    pub fn relayed(&self, ordinal: u16) -> Option<(usize, usize)> {
        let leader = self.leaders.get(usize::from(ordinal))?.machine.as_deref()?;
        Some(leader.relayed())
    }

    pub(crate) fn index(&self) -> NodeIndex {
        self.nodes
    }

    /// The node and connection of a machine's handle.
    pub(crate) fn behind(&self, peer: quiver_machine::Peer) -> (NodeId, u32) {
        self.nodes.behind(peer)
    }

    /// Number of steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// CPU time of all leaders' steps, if the world is metered.
    pub fn leader_cpu(&self) -> Duration {
        self.leader_cpu
    }

    /// SHA-256 over every step so far: time, node, input and outputs. None unless the world is traced.
    pub fn trace_hash(&self) -> Option<[u8; 32]> {
        self.trace.clone().map(|trace| trace.finalize().into())
    }

    pub(crate) fn number(&self, node: NodeId) -> u32 {
        u32::try_from(self.nodes.index(node)).unwrap_or(u32::MAX)
    }
}
