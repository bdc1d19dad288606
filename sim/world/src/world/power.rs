//! Starts and stops nodes, sets and ends their faults.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{KgcId, Suite};
use quiver_envelope::Envelopes;
use quiver_group::Leader;
use quiver_machine::{Either, Node as RoleNode};
use quiver_relay::{Relay, RelayTiming};
use quiver_testbed::{FaultInjection, Stimulus};

use super::step::take_step;
use super::{LeaderNode, ScheduledAction, World};
use crate::relays::RelayNode;
use crate::rng_stream::{self, RngStream};
use crate::step::Sabotage;
use crate::{Cause, DiskState, Effect, NodeId, Step};

impl<S: Suite> World<S> {
    /// Plans to switch all nodes on now: the KGCs first, then the leaders, then the edges.
    pub fn start_everyone(&mut self) {
        for index in 0..self.nodes.hubs() + self.edges.len() {
            self.schedule(self.time(), crate::Action::Start(self.nodes.node(index)));
        }
    }

    /// Switches a node on with its durable state. Machines may act before their first input.
    pub(crate) fn start(&mut self, node: NodeId) -> Option<Step> {
        if self.alive(node) {
            return None;
        }
        let (seed, now, sabotage) = (self.setup.seed, self.now, self.setup.sabotage);
        let kem = self.kem();
        let rng = |life| match sabotage {
            Sabotage::SameDice => rng_stream::compact(seed, RngStream::Node(node, 1)),
            _ => rng_stream::compact(seed, RngStream::Node(node, life)),
        };
        let restored = match node {
            NodeId::Kgc(id) => {
                let fleet = Arc::clone(&self.fleet);
                let approved = self.approved.contains(&id) || sabotage == Sabotage::EarlyRelease;
                let options = (approved, self.lying.contains(&id));
                let sim_node = self.kgc_node_mut(id)?;
                let machine = fleet.kgc_node((id, sim_node.life), &sim_node.disk.records, options);
                machine.map(|machine| sim_node.power_on(now, machine, rng(sim_node.life + 1)))
            }
            NodeId::Leader(ordinal) => {
                let unix = self.clock(node).unix;
                let sim_node = self.leaders.get_mut(usize::from(ordinal))?;
                let records = sim_node.disk.records.iter().cloned().map(Either::into_left);
                let machine = Leader::new(self.fleet.leader(ordinal, true), records);
                let machine = machine.map(|machine| self.fleet.demanding(machine.with_kem(kem), unix));
                let machine =
                    machine.map(|machine| LeaderNode::from(RoleNode::new(machine, Envelopes::default())));
                machine.map(|machine| sim_node.power_on(now, machine, rng(sim_node.life + 1)))
            }
            NodeId::Relay(number) => {
                let mut machine = RelayNode::new(Relay::new(self.edges.len(), RelayTiming::default()));
                if self.hostile.contains(&number) {
                    machine.set_hostile(self.hostile_dice(number));
                }
                let sim_node = self.relays.get_mut(usize::from(number))?;
                sim_node.power_on(now, machine, rng(sim_node.life + 1));
                Ok(())
            }
            NodeId::Edge(number) if self.is_anonymous(number) => {
                let machine = self.anonymous(number)?;
                let here = self.has(number);
                let sim_node = self.edges.get_mut(number as usize)?.as_deref_mut()?;
                machine.map(|machine| {
                    if here {
                        sim_node.power_on(now, machine, rng(sim_node.life + 1));
                    }
                })
            }
            NodeId::Edge(number) if !self.has(number) => Ok(()),
            NodeId::Edge(number) => {
                let sim_node = self.edges.get_mut(number as usize)?.as_deref_mut()?;
                let mut records = sim_node.disk.records.iter().rev();
                if sabotage == Sabotage::StaleState && records.len() > 1 {
                    records.next();
                }
                let machine = self.fleet.drone(number, records.next(), kem);
                machine.map(|machine| sim_node.power_on(now, machine, rng(sim_node.life + 1)))
            }
        };
        let (at, cause, cpu) = (self.time(), Cause::Start, Duration::ZERO);
        let broken =
            || Step { at, node, cause, effects: vec![Effect::Broken], cpu, digest: None, account: None };
        let broken = restored.is_err().then(broken);
        // Only the rank that has a drone knows whether its state restores it.
        let broken = match node {
            NodeId::Edge(number) => self.at_home(number, |_| broken),
            _ => broken,
        };
        if broken.is_some() {
            return broken;
        }
        self.plan_connections(node);
        if let (NodeId::Leader(ordinal), Some(_)) = (node, self.fleet.checkpoint()) {
            self.plan(Duration::ZERO, ScheduledAction::SlotKeys(ordinal));
        }
        self.step_start(node)
    }

    fn step_start(&mut self, node: NodeId) -> Option<Step> {
        let (options, now) = (self.step_options(), self.now);
        match node {
            NodeId::Kgc(id) => {
                let sim_node = self.kgc_node_mut(id)?;
                Some(take_step(sim_node, node, now, (Stimulus::Start, Cause::Start), options))
            }
            NodeId::Leader(ordinal) => {
                let sim_node = self.leaders.get_mut(usize::from(ordinal))?;
                Some(take_step(sim_node, node, now, (Stimulus::Start, Cause::Start), options))
            }
            NodeId::Relay(number) => {
                let sim_node = self.relays.get_mut(usize::from(number))?;
                Some(take_step(sim_node, node, now, (Stimulus::Start, Cause::Start), options))
            }
            NodeId::Edge(number) => self.at_home(number, |world| {
                let sim_node = world.edges.get_mut(number as usize)?.as_deref_mut()?;
                Some(take_step(sim_node, node, now, (Stimulus::Start, Cause::Start), options))
            }),
        }
    }

    pub(crate) fn stop(&mut self, node: NodeId) {
        if !self.alive(node) {
            return;
        }
        match node {
            NodeId::Kgc(id) => {
                if let Some(sim_node) = self.kgc_node_mut(id) {
                    sim_node.power_off();
                }
            }
            NodeId::Leader(ordinal) => {
                if let Some(sim_node) = self.leaders.get_mut(usize::from(ordinal)) {
                    sim_node.power_off();
                }
            }
            NodeId::Relay(number) => {
                if let Some(sim_node) = self.relays.get_mut(usize::from(number)) {
                    sim_node.power_off();
                }
            }
            NodeId::Edge(number) => {
                if let Some(sim_node) = self.edges.get_mut(number as usize).and_then(Option::as_deref_mut) {
                    sim_node.power_off();
                }
                self.note_off(number);
            }
        }
        self.disconnect_all(node);
        if let Some(stations) = &mut self.stations {
            stations.remove(node);
        }
    }

    /// A node shall die after so many more outputs.
    pub(crate) fn crash_after(&mut self, node: NodeId, after: u32, down_for: Duration) {
        if self.alive(node) {
            self.with(node, |faults| *faults.crash_after = Some(after));
            self.returns.insert(node, down_for);
        }
    }

    /// Makes a KGC lie, or be honest again.
    pub(crate) fn set_lying(&mut self, id: KgcId, lies: bool) {
        if lies {
            self.lying.insert(id)
        } else {
            self.lying.remove(&id)
        };
        let lie = lies.then(|| self.fleet.lies(id));
        if let Some(kgc_node) = self.kgc_node_mut(id).and_then(|sim_node| sim_node.machine.as_deref_mut()) {
            kgc_node.set_lying(lie);
        }
    }

    /// Makes a relay hostile, or puts an honest one in its place.
    pub(crate) fn set_hostile(&mut self, number: u16, hostile: bool) -> Option<Step> {
        let (dice, node) = (self.hostile_dice(number), NodeId::Relay(number));
        if hostile {
            self.hostile.insert(number);
            self.relays.get_mut(usize::from(number))?.machine.as_deref_mut()?.set_hostile(dice);
            return None;
        }
        // Its statements to its leader and its drones end with their connections.
        if !self.hostile.remove(&number) || !self.alive(node) {
            return None;
        }
        self.stop(node);
        self.start(node)
    }

    fn hostile_dice(&self, number: u16) -> [u8; 32] {
        rng_stream::key(self.setup.seed, RngStream::HostileRelay(number))
    }

    pub(crate) fn set_skew(&mut self, node: NodeId, seconds: i64) {
        self.with(node, |faults| *faults.skew = seconds);
    }

    pub(crate) fn set_disk(&mut self, node: NodeId, state: DiskState) {
        self.with(node, |faults| *faults.disk = state);
    }

    /// Ends all faults, and switches on every node that is off.
    pub(crate) fn calm(&mut self, steps: &mut Vec<Step>) {
        self.network.heal();
        self.network.calm();
        if let Some(air) = &mut self.air {
            air.calm();
        }
        self.returns.clear();
        self.cross_again();
        for id in std::mem::take(&mut self.lying) {
            self.set_lying(id, false);
        }
        for number in self.hostile.clone() {
            steps.extend(self.set_hostile(number, false));
        }
        for index in 0..self.nodes.hubs() + self.edges.len() {
            let node = self.nodes.node(index);
            self.with(node, |faults| {
                *faults.crash_after = None;
                *faults.skew = 0;
                *faults.disk = DiskState::Sound;
            });
            steps.extend(self.start(node));
        }
    }

    fn with(&mut self, node: NodeId, change: impl FnOnce(FaultInjection<'_>)) {
        match node {
            NodeId::Kgc(id) => {
                if let Some(sim_node) = self.kgc_node_mut(id) {
                    change(sim_node.fault_injection());
                }
            }
            NodeId::Leader(ordinal) => {
                if let Some(sim_node) = self.leaders.get_mut(usize::from(ordinal)) {
                    change(sim_node.fault_injection());
                }
            }
            NodeId::Relay(number) => {
                if let Some(sim_node) = self.relays.get_mut(usize::from(number)) {
                    change(sim_node.fault_injection());
                }
            }
            NodeId::Edge(number) => {
                if let Some(sim_node) = self.edges.get_mut(number as usize).and_then(Option::as_deref_mut) {
                    change(sim_node.fault_injection());
                }
            }
        }
    }
}
