//! Advances virtual time: takes events off the queue one by one, or batches of them in parallel.

use std::time::Duration;

use quiver_ainq::Suite;
use quiver_machine::Machine;
use quiver_testbed::{NEVER, SimNode, Stimulus, nanos};
use rayon::prelude::*;

use super::World;
use super::step::{StepOptions, stimulus, take_step};
use crate::drone_node::DroneNode;
use crate::event_queue::{QueuedEvent, WorldEvent};
use crate::record::Record;
use crate::{Cause, NodeEvent, NodeId, Step, StepObserver};

/// Number of edges in a batch from which on other cores are used.
const PARALLEL_FROM: usize = 16;

/// Greatest number of events in a batch: all its steps are in memory at once.
const MAX_BATCH: usize = 1 << 16;

/// Events of one node in a batch, in order of time.
type NodeSchedule = Vec<(u64, WorldEvent)>;

/// An edge taken out of the world, its schedule, and its steps.
type NodeWork<S> = (u32, Box<SimNode<DroneNode<S>>>, NodeSchedule, Vec<Step>);

impl<S: Suite> World<S> {
    /// Lets the world run until this time since it began, or until the observer stops it. Returns whether it
    /// was stopped.
    pub fn run_until(&mut self, end: Duration, observer: &mut dyn StepObserver<S>) -> bool {
        let end = nanos(end);
        while !self.is_over(observer) {
            match self.queue.next_at() {
                Some(at) if at <= end => self.now = self.now.max(at),
                _ => {
                    self.now = self.now.max(end);
                    return false;
                }
            }
            if self.queue.action_is_next() {
                self.run_next_action(observer);
            } else if self.queue.datagram_is_next() {
                self.take_datagram(observer);
            } else if self.queue.repeat_is_next() {
                self.take_repeat(observer);
            } else if self.setup.parallel {
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
        let Some(queued) = self.queue.pop() else { return };
        let (steps, action) = self.run_scheduled(queued.event.node);
        if let Some(action) = &action {
            observer.on_action(self, self.time(), action);
        }
        for step in &steps {
            self.apply_effects(step);
            self.show(step, observer);
        }
        self.report_hops(observer);
    }

    /// An input of one node.
    fn take_step(&mut self, observer: &mut dyn StepObserver<S>) {
        let Some(queued) = self.queue.pop() else { return };
        let node = self.nodes.node(queued.event.node as usize);
        if !self.ready(node, &queued) {
            return;
        }
        if let Some(step) = self.step_due(node, queued.event.event) {
            self.apply_effects(&step);
            self.show(&step, observer);
            self.report_hops(observer);
        }
    }

    fn ready(&mut self, node: NodeId, queued: &QueuedEvent) -> bool {
        let wanted = queued.event.event != WorldEvent::Wake || self.take_wake_up(node);
        wanted && self.alive(node) && self.is_deliverable(node, &queued.event.event)
    }

    /// All inputs of all nodes in a stretch of time so short that nothing sent in it arrives in it.
    fn take_batch(&mut self, end: u64, observer: &mut dyn StepObserver<S>) {
        let until = self.now.saturating_add(self.network.shortest_delay().max(1)).min(end.saturating_add(1));
        let mut events = Vec::new();
        while events.len() < MAX_BATCH
            && self.queue.next_at().is_some_and(|at| at < until)
            && !self.queue.action_is_next()
            && !self.queue.datagram_is_next()
            && !self.queue.repeat_is_next()
        {
            let Some(queued) = self.queue.pop() else { break };
            let node = self.nodes.node(queued.event.node as usize);
            let at = queued.at;
            if queued.event.event == WorldEvent::Wake
                && let Some((_, wake)) = self.deadline_and_wake(node)
                && *wake <= at
            {
                *wake = NEVER;
            }
            if self.alive(node) && self.is_deliverable(node, &queued.event.event) {
                events.push(queued);
            }
        }
        // A scheduled action ends the batch, and so does an event that no longer fits: later ones are not
        // considered.
        let until = self.queue.next_at().map_or(until, |next| until.min(next.max(self.now + 1)));
        events.sort_unstable_by_key(|queued| (queued.event.node, queued.at, queued.number));
        let mut nodes: Vec<NodeId> =
            events.iter().map(|queued| self.nodes.node(queued.event.node as usize)).collect();
        nodes.dedup();
        let mut steps = self.run_schedules(events, until);
        steps.sort_by_key(|step| step.at);
        for step in &steps {
            self.now = self.now.max(nanos(step.at));
            self.apply_effects(step);
        }
        for node in nodes {
            // A node that woke up for nothing is to be woken again.
            self.plan_wake(node);
        }
        for step in &steps {
            self.show(step, observer);
        }
        self.report_hops(observer);
    }

    /// Lets every node work off its agenda, on all cores. The steps come back by node, then by time.
    fn run_schedules(&mut self, events: Vec<QueuedEvent>, until: u64) -> Vec<Step> {
        let (options, nodes) = (self.step_options(), self.nodes);
        let mut steps = Vec::new();
        let mut edges = Vec::new();
        let mut hubs = Vec::new();
        // Of this rank or another: all know alike whether there are any.
        let mut any_edge = false;
        for run in schedules_by_node(events) {
            let (node, schedule) = (nodes.node(run.0 as usize), run.1);
            any_edge |= matches!(node, NodeId::Edge(_));
            match node {
                NodeId::Edge(number) if !self.has(number) => {}
                NodeId::Edge(number) => {
                    let sim_node = self.edges.get_mut(number as usize).and_then(Option::take);
                    edges.extend(sim_node.map(|sim_node| (number, sim_node, schedule, Vec::new())));
                }
                _ => hubs.push((node, schedule)),
            }
        }
        let (kgcs, leaders, relays) = (&mut self.kgcs, &mut self.leaders, &mut self.relays);
        let headers = &self.headers;
        let work_edge = |(number, sim_node, schedule, steps): &mut NodeWork<S>| {
            run_schedule(
                &mut **sim_node,
                NodeId::Edge(*number),
                std::mem::take(schedule),
                until,
                options,
                steps,
            );
            if let Some(drone) = &mut sim_node.machine {
                headers.share(drone.edge.primary_mut());
            }
        };
        let serve_hubs = || {
            let mut steps = Vec::new();
            for (node, schedule) in hubs {
                match node {
                    NodeId::Leader(ordinal) => {
                        if let Some(leader) = leaders.get_mut(usize::from(ordinal)) {
                            run_schedule(leader, node, schedule, until, options, &mut steps);
                        }
                    }
                    NodeId::Kgc(id) => {
                        if let Some(kgc) = kgcs.get_mut(usize::from(id) - 1) {
                            run_schedule(kgc, node, schedule, until, options, &mut steps);
                        }
                    }
                    NodeId::Relay(number) => {
                        if let Some(relay) = relays.get_mut(usize::from(number)) {
                            run_schedule(relay, node, schedule, until, options, &mut steps);
                        }
                    }
                    NodeId::Edge(_) => {}
                }
            }
            steps
        };
        if edges.len() < PARALLEL_FROM {
            steps.extend(serve_hubs());
            edges.iter_mut().for_each(work_edge);
        } else {
            let (of_hubs, ()) = rayon::join(serve_hubs, || edges.par_iter_mut().for_each(work_edge));
            steps.extend(of_hubs);
        }
        let mut of_edges = Vec::new();
        for (number, sim_node, _, of_edge) in edges {
            if let Some(place) = self.edges.get_mut(number as usize) {
                *place = Some(sim_node);
            }
            of_edges.push((number, of_edge));
        }
        if any_edge {
            of_edges = self.share(of_edges);
        }
        steps.extend(of_edges.into_iter().flat_map(|(_, of_edge)| of_edge));
        steps
    }
}

/// Sorted events as one agenda per node.
fn schedules_by_node(events: Vec<QueuedEvent>) -> Vec<(u32, NodeSchedule)> {
    let mut schedules: Vec<(u32, NodeSchedule)> = Vec::new();
    for queued in events {
        match schedules.last_mut() {
            Some((node, schedule)) if *node == queued.event.node => {
                schedule.push((queued.at, queued.event.event));
            }
            _ => schedules.push((queued.event.node, vec![(queued.at, queued.event.event)])),
        }
    }
    schedules
}

/// Executes a schedule, and every deadline that comes before `until`.
fn run_schedule<M: Machine>(
    sim_node: &mut SimNode<M>,
    node: NodeId,
    schedule: NodeSchedule,
    until: u64,
    options: StepOptions,
    steps: &mut Vec<Step>,
) where
    M::Record: Record,
    NodeEvent: From<M::Event>,
{
    let mut schedule = schedule.into_iter().filter(|(_, due)| *due != WorldEvent::Wake).peekable();
    loop {
        let next = schedule.peek().map_or(until, |(at, _)| *at);
        let (at, cue) = if sim_node.alive() && sim_node.deadline < until && sim_node.deadline <= next {
            (sim_node.deadline, Some((Stimulus::Deadline, Cause::Deadline)))
        } else {
            let Some((at, due)) = schedule.next() else { return };
            (at, stimulus(options.nodes, due))
        };
        if let Some(cue) = cue.filter(|_| sim_node.alive()) {
            steps.push(take_step(sim_node, node, at, cue, options));
        }
    }
}
