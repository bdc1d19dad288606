//! Advances virtual time: takes events off the queue one by one, or batches of them in parallel, and applies the
//! effects of the steps that nodes take.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::Suite;
use quiver_group::EdgeCommand;
use quiver_machine::Destination;
use quiver_testbed::{NEVER, Stimulus, nanos};

use super::World;
use super::adversary::is_proof;
use super::kernel::WorldKernel;
use super::nodes::take_step;
use crate::drone_node::DroneNodeCommand;
use crate::event_queue::{QueuedEvent, WorldEvent};
use crate::features::LeaderNodeCommand;
use crate::rng_stream::{self, RngStream};
use crate::step::Sabotage;
use crate::{Cause, Effect, NodeId, Step, StepObserver};

/// Greatest number of events in a batch: all its steps are in memory at once.
const MAX_BATCH: usize = 1 << 16;

impl<S: Suite> World<S> {
    /// Lets the world run until this time since it began, or until the observer stops it. Returns whether it
    /// was stopped.
    pub fn run_until(&mut self, end: Duration, observer: &mut dyn StepObserver<S>) -> bool {
        let end = nanos(end);
        while !self.kernel.nodes.split.is_over(observer.stops()) {
            let timeline = &mut self.kernel.timeline;
            match timeline.queue().next_at() {
                Some(at) if at <= end => timeline.advance(at),
                _ => {
                    timeline.advance(end);
                    return false;
                }
            }
            let queue = timeline.queue();
            if queue.action_is_next() {
                self.run_next_action(observer);
            } else if queue.datagram_is_next() {
                self.take_datagram(observer);
            } else if queue.repeat_is_next() {
                self.take_repeat(observer);
            } else if self.kernel.setup.parallel {
                self.take_batch(end, observer);
            } else {
                self.take_step(observer);
            }
        }
        true
    }

    /// Lets the world run for this long.
    pub fn run_for(&mut self, time: Duration, observer: &mut dyn StepObserver<S>) -> bool {
        self.run_until(self.time() + time, observer)
    }

    fn run_next_action(&mut self, observer: &mut dyn StepObserver<S>) {
        let Some(queued) = self.kernel.timeline.pop() else { return };
        let (steps, action) = self.run_scheduled(queued.event.node);
        if let Some(action) = &action {
            observer.on_action(self, self.time(), action);
        }
        self.apply_and_show(&steps, observer);
    }

    /// An input of one node.
    fn take_step(&mut self, observer: &mut dyn StepObserver<S>) {
        let Some((node, queued)) = self.kernel.timeline.pop_event() else { return };
        if !self.ready(node, &queued) {
            return;
        }
        let WorldKernel { nodes, timeline, wire, .. } = &mut self.kernel;
        let step = nodes.step_due(node, timeline.now(), queued.event.event, wire.air.as_ref());
        self.apply_and_show(step.as_slice(), observer);
    }

    fn ready(&mut self, node: NodeId, queued: &QueuedEvent) -> bool {
        let wanted = queued.event.event != WorldEvent::Wake || self.kernel.take_wake_up(node);
        wanted && self.alive(node) && self.wire.is_deliverable(node, &queued.event.event)
    }

    /// All inputs of all nodes in a stretch of time so short that nothing sent in it arrives in it.
    fn take_batch(&mut self, end: u64, observer: &mut dyn StepObserver<S>) {
        let WorldKernel { nodes, timeline, wire, .. } = &mut self.kernel;
        let until =
            timeline.now().saturating_add(wire.network.shortest_delay().max(1)).min(end.saturating_add(1));
        let mut events = Vec::new();
        while events.len() < MAX_BATCH
            && timeline.queue().next_at().is_some_and(|at| at < until)
            && !timeline.queue().action_is_next()
            && !timeline.queue().datagram_is_next()
            && !timeline.queue().repeat_is_next()
        {
            let Some((node, queued)) = timeline.pop_event() else { break };
            let at = queued.at;
            if queued.event.event == WorldEvent::Wake
                && let Some((_, wake)) = nodes.deadline_and_wake(node)
                && *wake <= at
            {
                *wake = NEVER;
            }
            if nodes.alive(node) && wire.is_deliverable(node, &queued.event.event) {
                events.push(queued);
            }
        }
        // A scheduled action ends the batch, and so does an event that no longer fits: later ones are not
        // considered.
        let next = timeline.queue().next_at();
        let until = next.map_or(until, |next| until.min(next.max(timeline.now() + 1)));
        events.sort_unstable_by_key(|queued| (queued.event.node, queued.at, queued.number));
        let mut woken: Vec<NodeId> =
            events.iter().map(|queued| nodes.index.node(queued.event.node as usize)).collect();
        woken.dedup();
        let mut steps = nodes.run_schedules(events, until, wire.air.as_ref());
        steps.sort_by_key(|step| step.at);
        for step in &steps {
            self.kernel.timeline.advance(nanos(step.at));
            self.apply_effects(step);
        }
        for node in woken {
            // A node that woke up for nothing is to be woken again.
            self.kernel.plan_wake(node);
        }
        for step in &steps {
            self.show(step, observer);
        }
        self.report_hops(observer);
    }

    /// Switches these edges on, all at once, and connects them to all nodes they dial that are on.
    ///
    /// Issues their tokens here, on all cores, because a million of them take a while.
    pub fn start_edges(&mut self, edges: Range<u32>, observer: &mut dyn StepObserver<S>) {
        let (fleet, kem) = (self.kernel.shared_fleet(), self.kernel.kem());
        let WorldKernel { setup, nodes, timeline, wire, .. } = &mut self.kernel;
        let (seed, now, options) = (setup.seed, timeline.now(), nodes.options);
        let started = edges.clone();
        let steps = nodes.step_edges(edges, wire.air.as_ref(), |number, sim_node| {
            if sim_node.alive() {
                return None;
            }
            let machine = fleet.drone(number, sim_node.disk.records.last(), kem).ok()?;
            let node = NodeId::Edge(number);
            sim_node.power_on(
                now,
                machine,
                rng_stream::compact(seed, RngStream::Node(node, sim_node.life + 1)),
            );
            Some(take_step(sim_node, node, now, (Stimulus::Start, Cause::Start), options))
        });
        self.apply_and_show(&steps, observer);
        let index = self.kernel.index();
        let hubs: Vec<NodeId> = (0..index.hubs()).map(|place| index.node(place)).collect();
        for edge in started.map(NodeId::Edge) {
            for hub in hubs.iter().filter(|hub| index.dials(edge, **hub)) {
                self.kernel.on_wire(|wire, context| wire.connect(context, edge, *hub));
            }
        }
    }

    /// Tells these edges to do something, all at once.
    pub fn command_edges(
        &mut self,
        edges: impl IntoIterator<Item = u32>,
        command: &DroneNodeCommand,
        observer: &mut dyn StepObserver<S>,
    ) {
        let WorldKernel { nodes, timeline, wire, .. } = &mut self.kernel;
        let (now, options) = (timeline.now(), nodes.options);
        let steps = nodes.step_edges(edges, wire.air.as_ref(), |number, sim_node| {
            let stimulus = Stimulus::Command(command.clone());
            let cause = Cause::Command("do as all others");
            sim_node
                .alive()
                .then(|| take_step(sim_node, NodeId::Edge(number), now, (stimulus, cause), options))
        });
        self.apply_and_show(&steps, observer);
    }

    /// Tells a leader to do something.
    pub fn command_leader(
        &mut self,
        ordinal: u16,
        command: LeaderNodeCommand,
        observer: &mut dyn StepObserver<S>,
    ) {
        if let Some(step) = self.kernel.step_leader(ordinal, command, "do as told") {
            self.apply_effects(&step);
            observer.on_step(self, &step);
            self.report_hops(observer);
        }
    }

    /// Takes an event of the group's datagrams off the queue.
    fn take_datagram(&mut self, observer: &mut dyn StepObserver<S>) {
        let Some((node, queued)) = self.kernel.timeline.pop_event() else { return };
        let asks = self.features.datagrams.take_event(&mut self.kernel, node, queued);
        // §20.8: there may be a newer epoch: the member asks its leader.
        if let NodeId::Edge(edge) = node
            && asks
            && let Some(step) = self.kernel.submit_to_edge(edge, EdgeCommand::CatchUp, "catch up")
        {
            self.apply_effects(&step);
            observer.on_step(self, &step);
        }
        self.report_hops(observer);
    }

    /// Takes an event of the repetitions off the queue.
    fn take_repeat(&mut self, observer: &mut dyn StepObserver<S>) {
        let Some((node, queued)) = self.kernel.timeline.pop_event() else { return };
        if let (NodeId::Edge(edge), WorldEvent::Repeat { message }) = (node, queued.event.event) {
            self.kernel.on_wire(|wire, context| wire.serve_repeat(context, message, edge, queued.at));
        }
        self.report_hops(observer);
    }

    /// Applies the effects of steps one after the other, and tells an observer of each.
    fn apply_and_show(&mut self, steps: &[Step], observer: &mut dyn StepObserver<S>) {
        for step in steps {
            self.apply_effects(step);
            self.show(step, observer);
        }
        self.report_hops(observer);
    }

    /// Applies the effects of a step: the trace, the next wake-up, and what was sent.
    fn apply_effects(&mut self, step: &Step) {
        self.kernel.note_step(step);
        for effect in &step.effects {
            match effect {
                Effect::Sent { to, payload } => self.route(step, *to, payload),
                effect => self.kernel.apply_effect(step.node, effect),
            }
        }
        self.kernel.pass_on(step);
        self.kernel.plan_wake(step.node);
        for feature in self.features.all() {
            feature.on_step(&mut self.kernel, step);
        }
        self.tell_stopped();
    }

    fn route(&mut self, step: &Step, to: Destination, payload: &Arc<[u8]>) {
        let (kernel, adversary) = (&mut self.kernel, &mut self.features.adversary);
        adversary.overhear(kernel, step.node, to, payload);
        if kernel.setup.sabotage == Sabotage::KeepProofs && is_proof(kernel, payload) {
            return;
        }
        let at = u64::try_from(step.at.as_nanos()).unwrap_or(NEVER);
        match to {
            Destination::Peer(peer) => {
                let (node, connection) = kernel.behind(peer);
                if kernel.connection(step.node, node) == Some(connection)
                    && !adversary.takes_challenge(kernel, node, payload)
                {
                    kernel.transmit(at, step.node, node, payload);
                }
            }
            Destination::Group => kernel.spread(at, step.node, payload),
        }
    }

    /// Tells the features of nodes that were switched off.
    pub(super) fn tell_stopped(&mut self) {
        for node in std::mem::take(&mut self.kernel.stopped) {
            for feature in self.features.all() {
                feature.on_stop(node);
            }
        }
    }

    /// Tells an observer of a step, unless that is another rank's observer's.
    fn show(&self, step: &Step, observer: &mut dyn StepObserver<S>) {
        if step.account.is_none() {
            observer.on_step(self, step);
        }
    }

    /// Tells an observer of the hops, and of the stations' datagrams, since it was last told of some.
    fn report_hops(&mut self, observer: &mut dyn StepObserver<S>) {
        for hop in self.kernel.wire.hops.iter_mut().flat_map(|hops| hops.drain(..)) {
            observer.on_hop(&hop);
        }
        for event in self.features.datagrams.events() {
            observer.on_datagram(self, &event);
        }
    }
}
