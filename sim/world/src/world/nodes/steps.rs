//! Takes one step of one node.

use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;
use quiver_ainq::{CacheScope, KgcId, Suite};
use quiver_machine::{Destination, Machine, Via};
use quiver_testbed::{SimNode, Stimulus};
use sha2::{Digest, Sha256};

use super::SimNodes;
use crate::air::Air;
use crate::drone_node::DroneNodeCommand;
use crate::event_queue::WorldEvent;
use crate::features::LeaderNodeCommand;
use crate::kgc_node::KgcNodeCommand;
use crate::node_id::NodeIndex;
use crate::record::Record;
use crate::step::{Sabotage, StepEffects};
use crate::{Cause, Effect, NodeEvent, NodeId, Setup, Step};

/// Options of a step.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) struct StepOptions {
    nodes: NodeIndex,
    sabotage: Sabotage,
    /// True to measure the leaders' CPU time: reading the clock takes as long as many a drone's step.
    metered: bool,
    share_verifications: bool,
    traced: bool,
}

impl StepOptions {
    pub(in crate::world) const fn new(setup: &Setup, nodes: NodeIndex) -> Self {
        let Setup { sabotage, metered, share_verifications, traced, .. } = *setup;
        Self { nodes, sabotage, metered, share_verifications, traced }
    }
}

/// Takes a step of one node.
pub(in crate::world) fn take_step<M: Machine<Record: Record>>(
    sim_node: &mut SimNode<M>,
    node: NodeId,
    at: u64,
    (mut stimulus, cause): (Stimulus<M::Command>, Cause),
    options: StepOptions,
) -> Step
where
    NodeEvent: From<M::Event>,
{
    if let (Stimulus::Received(_, via, _), Sabotage::HideGroup) = (&mut stimulus, options.sabotage) {
        *via = Via::Peer;
    }
    let mut sink = StepEffects::new(options.sabotage, options.traced);
    // Of this step alone: the thread may take steps of another world between two of this one.
    let _cache = CacheScope::new(options.share_verifications);
    let start = (options.metered && matches!(node, NodeId::Leader(_))).then(ThreadTime::now);
    sim_node.step(at, stimulus, &mut sink);
    let cpu = start.map(|start| start.elapsed()).unwrap_or_default();
    let StepEffects { effects, records, .. } = sink;
    let mut step =
        Step { at: Duration::from_nanos(at), node, cause, effects, cpu, digest: None, account: None };
    step.digest = records.map(|records| digest(&step, options.nodes, records));
    step
}

/// SHA-256 over all that a step was made of.
fn digest(step: &Step, nodes: NodeIndex, records: Sha256) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(step.at.as_nanos().to_be_bytes());
    hash.update(nodes.index(step.node).to_be_bytes());
    match &step.cause {
        Cause::Message { via, payload, .. } => {
            hash.update(nodes.index(*via).to_be_bytes());
            hash.update(payload);
        }
        // A trace of a world with one KGC is the same as before there were several.
        Cause::Connected(NodeId::Kgc(1)) => hash.update("Connected(Kgc)"),
        Cause::Disconnected(NodeId::Kgc(1)) => hash.update("Disconnected(Kgc)"),
        cause => hash.update(format!("{cause:?}")),
    }
    for effect in &step.effects {
        match effect {
            Effect::Sent { to, payload } => {
                let to = match to {
                    Destination::Group => u64::MAX,
                    Destination::Peer(peer) => peer.0,
                };
                hash.update(to.to_be_bytes());
                hash.update((payload.len() as u64).to_be_bytes());
                hash.update(payload);
            }
            effect => hash.update(format!("{effect:?}")),
        }
    }
    hash.update(records.finalize());
    hash.finalize().into()
}

/// The stimulus and cause of a due event.
pub(super) fn stimulus<C>(options: StepOptions, due: WorldEvent) -> Option<(Stimulus<C>, Cause)> {
    let nodes = options.nodes;
    let node = |number: u32| nodes.node(number as usize);
    let peer = |number: u32, connection| nodes.peer(node(number), connection);
    Some(match due {
        WorldEvent::Wake => (Stimulus::Deadline, Cause::Deadline),
        WorldEvent::Message { via, connection, by_group, payload } => (
            Stimulus::Received(
                peer(via, connection),
                if by_group { Via::Group } else { Via::Peer },
                Arc::clone(&payload),
            ),
            Cause::Message { via: node(via), by_group, payload },
        ),
        WorldEvent::Connected { other, connection, route } => {
            (Stimulus::Connected(peer(other, connection), route), Cause::Connected(node(other)))
        }
        WorldEvent::Disconnected { other, connection } => {
            (Stimulus::Disconnected(peer(other, connection)), Cause::Disconnected(node(other)))
        }
        WorldEvent::Datagram { .. }
        | WorldEvent::Station
        | WorldEvent::Repeat { .. }
        | WorldEvent::ScheduledAction => {
            return None;
        }
    })
}

impl<S: Suite> SimNodes<S> {
    pub(in crate::world) fn step_kgc(
        &mut self,
        id: KgcId,
        now: u64,
        stimulus: Stimulus<KgcNodeCommand>,
        label: &'static str,
    ) -> Option<Step> {
        let options = self.options;
        let sim_node = self.kgc_node_mut(id).filter(|kgc| kgc.alive())?;
        Some(take_step(sim_node, NodeId::Kgc(id), now, (stimulus, Cause::Command(label)), options))
    }

    pub(in crate::world) fn step_leader(
        &mut self,
        ordinal: u16,
        now: u64,
        stimulus: Stimulus<LeaderNodeCommand>,
        label: &'static str,
    ) -> Option<Step> {
        let options = self.options;
        let sim_node = self.leader_node_mut(ordinal).filter(|leader| leader.alive())?;
        Some(take_step(sim_node, NodeId::Leader(ordinal), now, (stimulus, Cause::Command(label)), options))
    }

    pub(in crate::world) fn step_edge(
        &mut self,
        number: u32,
        now: u64,
        stimulus: Stimulus<DroneNodeCommand>,
        label: &'static str,
        air: Option<&Air>,
    ) -> Option<Step> {
        let (options, node) = (self.options, NodeId::Edge(number));
        if !self.alive(node) {
            return None;
        }
        self.at_home(number, air, |nodes| {
            let sim_node = nodes.edge_node_mut(number)?;
            Some(take_step(sim_node, node, now, (stimulus, Cause::Command(label)), options))
        })
    }

    /// Lets a node that was switched on take its first step.
    pub(in crate::world) fn step_start(&mut self, node: NodeId, now: u64, air: Option<&Air>) -> Option<Step> {
        let options = self.options;
        match node {
            NodeId::Kgc(id) => {
                let sim_node = self.kgc_node_mut(id)?;
                Some(take_step(sim_node, node, now, (Stimulus::Start, Cause::Start), options))
            }
            NodeId::Leader(ordinal) => {
                let sim_node = self.leader_node_mut(ordinal)?;
                Some(take_step(sim_node, node, now, (Stimulus::Start, Cause::Start), options))
            }
            NodeId::Relay(number) => {
                let sim_node = self.relay_node_mut(number)?;
                Some(take_step(sim_node, node, now, (Stimulus::Start, Cause::Start), options))
            }
            NodeId::Edge(number) => self.at_home(number, air, |nodes| {
                let sim_node = nodes.edge_node_mut(number)?;
                Some(take_step(sim_node, node, now, (Stimulus::Start, Cause::Start), options))
            }),
        }
    }

    /// Lets a node take something that is due.
    pub(in crate::world) fn step_due(
        &mut self,
        node: NodeId,
        now: u64,
        due: WorldEvent,
        air: Option<&Air>,
    ) -> Option<Step> {
        let options = self.options;
        match node {
            NodeId::Kgc(id) => {
                let sim_node = self.kgc_node_mut(id)?;
                Some(take_step(sim_node, node, now, stimulus(options, due)?, options))
            }
            NodeId::Leader(ordinal) => {
                let sim_node = self.leader_node_mut(ordinal)?;
                Some(take_step(sim_node, node, now, stimulus(options, due)?, options))
            }
            NodeId::Relay(number) => {
                let sim_node = self.relay_node_mut(number)?;
                Some(take_step(sim_node, node, now, stimulus(options, due)?, options))
            }
            NodeId::Edge(number) => self.at_home(number, air, |nodes| {
                let sim_node = nodes.edge_node_mut(number)?;
                Some(take_step(sim_node, node, now, stimulus(options, due)?, options))
            }),
        }
    }
}
