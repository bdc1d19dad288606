//! Commands nodes, sets their faults, wakes them, and applies the effects of their steps.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{KgcId, Suite};
use quiver_group::{EdgeCommand, LeaderCommand};
use quiver_machine::Either;
use quiver_testbed::{NEVER, Stimulus};

use super::WorldKernel;
use crate::event_queue::WorldEvent;
use crate::feature_part::RoleCommand;
use crate::features::LeaderNodeCommand;
use crate::kgc_node::KgcNodeCommand;
use crate::step::Sabotage;
use crate::world::ScheduledAction;
use crate::{Cause, Effect, NodeId, Step};
use sha2::Digest;

impl<S: Suite> WorldKernel<S> {
    /// Schedules an action of the world.
    pub(crate) fn plan(&mut self, after: Duration, scheduled: ScheduledAction) {
        self.timeline.plan(after, scheduled);
    }

    pub(crate) fn step_kgc(
        &mut self,
        id: KgcId,
        command: KgcNodeCommand,
        label: &'static str,
    ) -> Option<Step> {
        self.nodes.step_kgc(id, self.timeline.now(), Stimulus::Command(command), label)
    }

    pub(in crate::world) fn submit_to_kgcs(
        &mut self,
        command: &KgcNodeCommand,
        label: &'static str,
    ) -> Vec<Step> {
        let kgcs = 1..=self.nodes.index.kgcs;
        kgcs.filter_map(|id| self.step_kgc(id, command.clone(), label)).collect()
    }

    pub(in crate::world) fn submit_to_leaders(
        &mut self,
        command: &LeaderCommand,
        label: &'static str,
    ) -> Vec<Step> {
        (0..self.nodes.index.leaders)
            .filter_map(|ordinal| self.submit_to_leader(ordinal, command.clone(), label))
            .collect()
    }

    pub(crate) fn submit_to_leader(
        &mut self,
        ordinal: u16,
        command: impl Into<RoleCommand<LeaderCommand>>,
        label: &'static str,
    ) -> Option<Step> {
        self.step_leader(ordinal, Either::Left(command.into()), label)
    }

    pub(in crate::world) fn step_leader(
        &mut self,
        ordinal: u16,
        command: LeaderNodeCommand,
        label: &'static str,
    ) -> Option<Step> {
        self.nodes.step_leader(ordinal, self.timeline.now(), Stimulus::Command(command), label)
    }

    pub(crate) fn submit_to_edge(
        &mut self,
        edge: u32,
        command: EdgeCommand,
        label: &'static str,
    ) -> Option<Step> {
        let Self { nodes, timeline, wire, .. } = self;
        let stimulus = Stimulus::Command(Either::Left(command));
        nodes.step_edge(edge, timeline.now(), stimulus, label, wire.air.as_ref())
    }

    /// Switches a node off.
    pub(crate) fn stop(&mut self, node: NodeId) {
        if !self.alive(node) {
            return;
        }
        self.nodes.power_off(node);
        self.on_wire(|wire, context| wire.disconnect_all(context, node));
        self.stopped.push(node);
    }

    /// A node shall die after so many more outputs.
    pub(in crate::world) fn crash_after(&mut self, node: NodeId, after: u32, down_for: Duration) {
        if self.alive(node) {
            self.nodes.inject(node, |faults| *faults.crash_after = Some(after));
            self.returns.insert(node, down_for);
        }
    }

    /// Handles a node's crash: ends its connections, and schedules its return if that was planned.
    fn handle_crash(&mut self, node: NodeId) {
        self.on_wire(|wire, context| wire.disconnect_all(context, node));
        if let Some(down_for) = self.returns.remove(&node) {
            self.plan(down_for, ScheduledAction::Return(node));
        }
    }

    /// Counts a step, and adds it to the trace.
    pub(in crate::world) fn note_step(&mut self, step: &Step) {
        self.steps += 1;
        if let (Some(trace), Some(digest)) = (&mut self.trace, &step.digest) {
            trace.update(digest);
        }
        if let NodeId::Leader(_) = step.node {
            self.leader_cpu += step.cpu;
        }
        if let Some(air) = &mut self.wire.air {
            air.note(step);
        }
    }

    /// Applies an effect of a step on the node's connections.
    pub(in crate::world) fn apply_effect(&mut self, node: NodeId, effect: &Effect) {
        match effect {
            Effect::Blocked(peer) => {
                let (other, connection) = self.behind(*peer);
                self.on_wire(|wire, context| wire.block(context, node, other, connection));
            }
            Effect::Penalized(peer) => {
                let (other, connection) = self.behind(*peer);
                self.on_wire(|wire, context| wire.penalize(context, node, other, connection));
            }
            Effect::Disconnected(peer) => {
                let (other, connection) = self.behind(*peer);
                self.on_wire(|wire, context| wire.end_connection(context, node, other, connection));
            }
            Effect::Relayed { peer, allowed } => {
                let (other, connection) = self.behind(*peer);
                self.wire.links.set_relays(node, other, connection, *allowed);
            }
            Effect::Died => self.handle_crash(node),
            Effect::Sent { .. }
            | Effect::Persisted { .. }
            | Effect::Reported(_)
            | Effect::Stalled
            | Effect::Broken => {}
        }
    }

    /// Publishes a message to the group.
    pub(crate) fn spread(&mut self, at: u64, from: NodeId, payload: &Arc<[u8]>) {
        self.on_wire(|wire, context| wire.spread(context, at, from, payload));
    }

    /// Sends a message to one node.
    pub(crate) fn transmit(&mut self, at: u64, from: NodeId, to: NodeId, payload: &Arc<[u8]>) {
        self.on_wire(|wire, context| wire.transmit(context, at, (from, to), payload, false));
    }

    /// A node that took a message of the group passes it on, if there are relays.
    pub(in crate::world) fn pass_on(&mut self, step: &Step) {
        if let (true, Cause::Message { via, by_group: true, payload }) =
            (self.nodes.index.relays > 0, &step.cause)
        {
            self.on_wire(|wire, context| wire.pass_on(context, step, *via, payload));
        }
    }

    /// Plans when a node is woken next.
    pub(in crate::world) fn plan_wake(&mut self, node: NodeId) {
        let deaf = self.setup.sabotage == Sabotage::MissDeadlines && self.timeline.now() > 60_000_000_000;
        let Some((deadline, wake)) = self.nodes.deadline_and_wake(node) else { return };
        if deadline < *wake && !deaf {
            *wake = deadline;
            self.timeline.push(deadline, node, WorldEvent::Wake);
        }
    }

    /// A planned wake-up is here. Returns whether the node wants it; if it wants a later one, that is
    /// planned.
    pub(in crate::world) fn take_wake_up(&mut self, node: NodeId) -> bool {
        let now = self.timeline.now();
        let Some((deadline, wake)) = self.nodes.deadline_and_wake(node) else { return false };
        if *wake <= now {
            *wake = NEVER;
        }
        if deadline <= now {
            return true;
        }
        self.plan_wake(node);
        false
    }
}
