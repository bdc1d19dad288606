//! The kernel of the world: nodes, links, clock and queue, without any feature.

mod commands;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{Handle, KemKey, KgcId, Suite};
use quiver_enrolment::Kgc;
use quiver_group::Leader;
use quiver_kem::KemSetting;
use quiver_machine::Now;
use quiver_testbed::{CompactRng, Traffic};
use sha2::{Digest, Sha256};

use super::nodes::SimNodes;
use super::timeline::Timeline;
use super::wire::{Wire, WireContext};
use crate::air::Air;
use crate::node_id::NodeIndex;
use crate::ranks::wire::{RankWriter, Reader};
use crate::step::Sabotage;
use crate::{DroneRole, Fleet, NodeId, Setup, SimNetwork, TwoHopsReport};

/// Nodes, the links between them, and the clock. Features act on these, and observers read them through the
/// [world](crate::World).
pub struct WorldKernel<S: Suite> {
    pub(super) setup: Setup,
    pub(super) fleet: Arc<Fleet<S>>,
    pub(crate) timeline: Timeline,
    pub(crate) nodes: SimNodes<S>,
    pub(crate) wire: Wire,
    /// Time for which nodes that are to crash stay down.
    pub(super) returns: BTreeMap<NodeId, Duration>,
    /// Nodes that were switched off, of which the features do not know yet.
    pub(super) stopped: Vec<NodeId>,
    pub(crate) trace: Option<Sha256>,
    pub(super) steps: u64,
    pub(super) leader_cpu: Duration,
}

impl<S: Suite> WorldKernel<S> {
    /// Time since the world began.
    pub fn time(&self) -> Duration {
        self.timeline.time()
    }

    /// Unix time by the true clock.
    pub(crate) fn unix(&self) -> u64 {
        self.timeline.unix()
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

    /// The same, to be kept.
    pub(crate) fn shared_fleet(&self) -> Arc<Fleet<S>> {
        Arc::clone(&self.fleet)
    }

    /// The network between the nodes.
    pub fn network(&self) -> &SimNetwork {
        &self.wire.network
    }

    /// The radio between the nodes, and who paid for it, if the world has one.
    pub fn air(&self) -> Option<&Air> {
        self.wire.air.as_ref()
    }

    /// Traffic of the network.
    pub fn traffic(&self) -> Traffic {
        self.wire.traffic()
    }

    /// Counts of the leaders' broadcasts of epochs by outcome, if members are out of range.
    pub fn two_hops(&self) -> Option<TwoHopsReport> {
        self.wire.two_hops()
    }

    /// Number of edges.
    pub fn edge_count(&self) -> u32 {
        self.nodes.edge_count()
    }

    /// Number of leaders.
    pub fn leader_count(&self) -> u16 {
        self.nodes.index.leaders
    }

    /// An edge's machine, if it is switched on and [in this process](Self::has).
    pub fn edge(&self, number: u32) -> Option<&DroneRole<S>> {
        self.nodes.edge(number)
    }

    /// κ that an edge shares with leaders, in its memory and on its disk.
    pub(crate) fn second_factors(&self, number: u32) -> Vec<(Handle, KemKey<S>)> {
        let Some(node) = self.nodes.edge_node(number) else { return Vec::new() };
        let stored = node.disk.records.iter().filter_map(|record| {
            let drone = self.fleet.drone(number, Some(record), self.kem()).ok()?;
            drone.edge.compromised_state()
        });
        let memory = self.edge(number).and_then(DroneRole::compromised_state);
        let keys = stored.chain(memory).flat_map(|state| state.kems);
        keys.filter_map(|(leader, key)| Some((leader, KemKey::decode(&key).ok()?))).collect()
    }

    /// A leader's machine, if it is switched on.
    pub fn leader(&self, ordinal: u16) -> Option<&Leader<S>> {
        self.nodes.leader(ordinal)
    }

    /// The generator from which a leader draws next, for tests that compute once more what it drew.
    #[doc(hidden)]
    pub fn leader_generator(&self, ordinal: u16) -> Option<CompactRng> {
        self.nodes.leader_node(ordinal).map(|leader| leader.rng.clone())
    }

    /// The generator from which an edge draws next, for the same tests.
    #[doc(hidden)]
    pub fn edge_generator(&self, number: u32) -> Option<CompactRng> {
        self.nodes.edge_node(number).map(|edge| edge.rng.clone())
    }

    /// Number of KGCs.
    pub fn kgc_count(&self) -> u16 {
        self.nodes.index.kgcs
    }

    /// A KGC's machine, if it is switched on.
    pub fn kgc(&self, id: KgcId) -> Option<&Kgc<S>> {
        self.nodes.kgc(id)
    }

    /// A node's clocks.
    pub fn clock(&self, node: NodeId) -> Now {
        let clock = self.nodes.clock(node, self.timeline.now());
        clock.unwrap_or_else(|| Now { monotonic: self.time(), unix: self.unix() })
    }

    /// Returns true if a node is switched on.
    pub fn alive(&self, node: NodeId) -> bool {
        self.nodes.alive(node)
    }

    /// Number of starts of a node.
    pub fn life(&self, node: NodeId) -> u32 {
        self.nodes.life(node)
    }

    /// Returns true if a node waits because its disk refuses a record.
    pub fn stalled(&self, node: NodeId) -> bool {
        self.nodes.stalled(node)
    }

    /// Returns true if two nodes have a connection.
    pub fn connected(&self, a: NodeId, b: NodeId) -> bool {
        self.connection(a, b).is_some()
    }

    /// The number of the connection of two nodes, if they have one.
    pub(crate) fn connection(&self, a: NodeId, b: NodeId) -> Option<u32> {
        self.wire.links.connection(a, b)
    }

    pub(crate) fn index(&self) -> NodeIndex {
        self.nodes.index
    }

    /// The node and connection of a machine's handle.
    pub(crate) fn behind(&self, peer: quiver_machine::Peer) -> (NodeId, u32) {
        self.nodes.index.behind(peer)
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

    /// Returns true if the edge's machine is in this process: always, unless [ranks](crate::ranks) share the world.
    pub fn has(&self, edge: u32) -> bool {
        self.nodes.split.has(edge)
    }

    /// Returns true if this process is the one among all [ranks](crate::ranks) that counts what happens to a node: the
    /// one with its machine, and of those that all have, the first.
    pub fn counts(&self, node: NodeId) -> bool {
        self.nodes.split.counts(node)
    }

    /// Returns true if ranks share the world.
    pub fn is_split(&self) -> bool {
        self.nodes.split.is_split()
    }

    /// The rank without which the world cannot go on, if one is lost.
    pub fn lost_rank(&self) -> Option<u32> {
        self.nodes.split.lost()
    }

    /// The sums of these numbers over all ranks.
    pub fn totals<const N: usize>(&self, own: [u64; N]) -> [u64; N] {
        self.nodes.split.totals(own)
    }

    /// Returns true if this holds at a rank.
    pub fn anywhere(&self, own: bool) -> bool {
        let [ranks] = self.totals([own.into()]);
        ranks > 0
    }

    /// Extends this rank's items by those of all others. `write` and `read` are inverse.
    pub(crate) fn collect<T>(
        &self,
        own: Vec<T>,
        write: impl Fn(&mut RankWriter, &T),
        read: impl Fn(&mut Reader<'_>) -> Option<T>,
    ) -> Vec<T> {
        self.nodes.split.collect(own, write, read)
    }

    /// Lets the wire do something.
    pub(crate) fn on_wire<T>(&mut self, act: impl FnOnce(&mut Wire, &mut WireContext<'_>) -> T) -> T {
        let Self { wire, timeline, nodes, .. } = self;
        act(wire, &mut WireContext { timeline, alive: &|node| nodes.alive(node) })
    }
}
