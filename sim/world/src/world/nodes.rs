//! All nodes of the world with their machines, disks and clocks.

mod schedules;
mod split;
mod steps;

use quiver_ainq::{KgcId, Suite};
use quiver_enrolment::Kgc;
use quiver_group::Leader;
use quiver_machine::Now;
use quiver_testbed::{FaultInjection, SimNode};

use super::headers::Headers;
use crate::drone_node::DroneNode;
use crate::features::LeaderNode;
use crate::kgc_node::KgcNode;
use crate::node_id::NodeIndex;
use crate::relays::RelayNode;
use crate::{DroneRole, NodeId};

pub(super) use self::split::Split;
pub(super) use self::steps::{StepOptions, take_step};

/// The nodes, by role and number.
pub(crate) struct SimNodes<S: Suite> {
    pub(super) index: NodeIndex,
    /// Options of every step.
    pub(super) options: StepOptions,
    pub(super) kgcs: Vec<SimNode<KgcNode<S>>>,
    pub(super) leaders: Vec<SimNode<LeaderNode<S>>>,
    pub(super) relays: Vec<SimNode<RelayNode>>,
    pub(super) edges: Vec<Option<Box<SimNode<DroneNode<S>>>>>,
    pub(super) headers: Headers,
    /// Share of this process, if others play the world with it.
    pub(super) split: Split,
}

impl<S: Suite> SimNodes<S> {
    /// Number of all nodes.
    pub(super) fn count(&self) -> usize {
        self.index.hubs() + self.edges.len()
    }

    pub(super) fn edge_count(&self) -> u32 {
        u32::try_from(self.edges.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn kgc_node(&self, id: KgcId) -> Option<&SimNode<KgcNode<S>>> {
        self.kgcs.get(usize::from(id).checked_sub(1)?)
    }

    pub(crate) fn kgc_node_mut(&mut self, id: KgcId) -> Option<&mut SimNode<KgcNode<S>>> {
        self.kgcs.get_mut(usize::from(id).checked_sub(1)?)
    }

    pub(crate) fn leader_node(&self, ordinal: u16) -> Option<&SimNode<LeaderNode<S>>> {
        self.leaders.get(usize::from(ordinal))
    }

    pub(super) fn leader_node_mut(&mut self, ordinal: u16) -> Option<&mut SimNode<LeaderNode<S>>> {
        self.leaders.get_mut(usize::from(ordinal))
    }

    fn relay_node(&self, number: u16) -> Option<&SimNode<RelayNode>> {
        self.relays.get(usize::from(number))
    }

    pub(crate) fn relay_node_mut(&mut self, number: u16) -> Option<&mut SimNode<RelayNode>> {
        self.relays.get_mut(usize::from(number))
    }

    pub(crate) fn edge_node(&self, number: u32) -> Option<&SimNode<DroneNode<S>>> {
        self.edges.get(number as usize)?.as_deref()
    }

    pub(crate) fn edge_node_mut(&mut self, number: u32) -> Option<&mut SimNode<DroneNode<S>>> {
        self.edges.get_mut(number as usize)?.as_deref_mut()
    }

    pub(super) fn kgc(&self, id: KgcId) -> Option<&Kgc<S>> {
        self.kgc_node(id)?.machine.as_deref().map(|kgc_node| &**kgc_node)
    }

    pub(super) fn leader(&self, ordinal: u16) -> Option<&Leader<S>> {
        self.leader_node(ordinal)?.machine.as_deref().map(|leader| -> &Leader<S> { leader })
    }

    pub(super) fn edge(&self, number: u32) -> Option<&DroneRole<S>> {
        self.edge_node(number)?.machine.as_deref().map(|drone| &*drone.edge)
    }

    /// A node's clocks; `None` if there is no such node.
    pub(super) fn clock(&self, node: NodeId, now: u64) -> Option<Now> {
        match node {
            NodeId::Kgc(id) => self.kgc_node(id).map(|kgc| kgc.clock(now)),
            NodeId::Leader(ordinal) => self.leader_node(ordinal).map(|leader| leader.clock(now)),
            NodeId::Relay(number) => self.relay_node(number).map(|relay| relay.clock(now)),
            NodeId::Edge(number) => self.edge_node(number).map(|edge| edge.clock(now)),
        }
    }

    /// Returns true if a node is switched on.
    pub(crate) fn alive(&self, node: NodeId) -> bool {
        match node {
            NodeId::Kgc(id) => self.kgc(id).is_some(),
            NodeId::Leader(ordinal) => self.leader(ordinal).is_some(),
            NodeId::Relay(number) => self.relay_node(number).is_some_and(SimNode::alive),
            NodeId::Edge(number) => self.split.alive(number).unwrap_or_else(|| self.edge(number).is_some()),
        }
    }

    /// Number of starts of a node.
    pub(super) fn life(&self, node: NodeId) -> u32 {
        let life = match node {
            NodeId::Kgc(id) => self.kgc_node(id).map(|kgc| kgc.life),
            NodeId::Leader(ordinal) => self.leader_node(ordinal).map(|leader| leader.life),
            NodeId::Relay(number) => self.relay_node(number).map(|relay| relay.life),
            NodeId::Edge(number) => self.edge_node(number).map(|edge| edge.life),
        };
        life.unwrap_or_default()
    }

    /// Returns true if a node waits because its disk refuses a record.
    pub(super) fn stalled(&self, node: NodeId) -> bool {
        match node {
            NodeId::Kgc(id) => self.kgc_node(id).is_some_and(SimNode::stalled),
            NodeId::Leader(ordinal) => self.leader_node(ordinal).is_some_and(|leader| leader.stalled()),
            // It writes nothing.
            NodeId::Relay(_) => false,
            NodeId::Edge(number) => self
                .split
                .stalled(number)
                .unwrap_or_else(|| self.edge_node(number).is_some_and(|edge| edge.stalled())),
        }
    }

    /// Switches a node off.
    pub(super) fn power_off(&mut self, node: NodeId) {
        match node {
            NodeId::Kgc(id) => {
                if let Some(sim_node) = self.kgc_node_mut(id) {
                    sim_node.power_off();
                }
            }
            NodeId::Leader(ordinal) => {
                if let Some(sim_node) = self.leader_node_mut(ordinal) {
                    sim_node.power_off();
                }
            }
            NodeId::Relay(number) => {
                if let Some(sim_node) = self.relay_node_mut(number) {
                    sim_node.power_off();
                }
            }
            NodeId::Edge(number) => {
                if let Some(sim_node) = self.edge_node_mut(number) {
                    sim_node.power_off();
                }
                self.split.note_off(number);
            }
        }
    }

    /// Changes the faults of a node.
    pub(super) fn inject(&mut self, node: NodeId, change: impl FnOnce(FaultInjection<'_>)) {
        match node {
            NodeId::Kgc(id) => {
                if let Some(sim_node) = self.kgc_node_mut(id) {
                    change(sim_node.fault_injection());
                }
            }
            NodeId::Leader(ordinal) => {
                if let Some(sim_node) = self.leader_node_mut(ordinal) {
                    change(sim_node.fault_injection());
                }
            }
            NodeId::Relay(number) => {
                if let Some(sim_node) = self.relay_node_mut(number) {
                    change(sim_node.fault_injection());
                }
            }
            NodeId::Edge(number) => {
                if let Some(sim_node) = self.edge_node_mut(number) {
                    change(sim_node.fault_injection());
                }
            }
        }
    }

    /// Time at which a node must be woken, and the time at which it will be.
    pub(super) fn deadline_and_wake(&mut self, node: NodeId) -> Option<(u64, &mut u64)> {
        match node {
            NodeId::Kgc(id) => {
                let sim_node = self.kgc_node_mut(id)?;
                Some((sim_node.deadline, &mut sim_node.wake))
            }
            NodeId::Leader(ordinal) => {
                let sim_node = self.leader_node_mut(ordinal)?;
                Some((sim_node.deadline, &mut sim_node.wake))
            }
            NodeId::Relay(number) => {
                let sim_node = self.relay_node_mut(number)?;
                Some((sim_node.deadline, &mut sim_node.wake))
            }
            NodeId::Edge(number) => {
                let sim_node = self.edge_node_mut(number)?;
                Some((sim_node.deadline, &mut sim_node.wake))
            }
        }
    }
}
