//! Advances virtual time: takes events off the queue one by one, or batches of them in parallel.

use std::time::Duration;

use quiver_ainq::Suite;
use rayon::prelude::*;

use super::World;
use super::step::{StepContext, stimulus, take_step};
use crate::disk::Stored;
use crate::drone_node::Drone;
use crate::event_queue::{Event, QueuedEvent};
use crate::network::nanos;
use crate::node::{NEVER, SimNode, Stimulus};
use crate::{Cause, NodeEvent, NodeId, Step, StepObserver};
use quiver_role::Machine;

/// From how many edges on a stretch is worth waking the other cores for.
const PARALLEL_FROM: usize = 16;

/// How many events a stretch has at most: what comes of all of them is in memory at once.
const MAX_BATCH: usize = 1 << 16;

/// What one node has to do in a stretch of time: in order of time.
type NodeSchedule = Vec<(u64, Event)>;

/// An edge taken out of the world, what it has to do, and the steps it took.
type NodeWork<S> = (u32, Box<SimNode<Drone<S>>>, NodeSchedule, Vec<Step>);

impl<S: Suite> World<S> {
    /// Lets the world run until this time since it began, or until the witness stops it. Returns whether it was stopped.
    pub fn run_until(&mut self, end: Duration, observer: &mut dyn StepObserver<S>) -> bool {
        let end = nanos(end);
        while !observer.stops() {
            match self.queue.next_at() {
                Some(at) if at <= end => self.now = self.now.max(at),
                _ => {
                    self.now = self.now.max(end);
                    return false;
                }
            }
            if self.queue.action_is_next() {
                self.run_next_action(observer);
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
        let Some(event) = self.queue.pop() else { return };
        let (steps, action) = self.run_scheduled(event.node);
        if let Some(action) = &action {
            observer.on_action(self, self.time(), action);
        }
        for step in &steps {
            self.apply_effects(step);
            observer.on_step(self, step);
        }
    }

    /// One input of one node.
    fn take_step(&mut self, observer: &mut dyn StepObserver<S>) {
        let Some(event) = self.queue.pop() else { return };
        let node = self.nodes.node(event.node as usize);
        if !self.ready(node, &event) {
            return;
        }
        if let Some(step) = self.step_due(node, event.due) {
            self.apply_effects(&step);
            observer.on_step(self, &step);
        }
    }

    fn ready(&mut self, node: NodeId, event: &QueuedEvent) -> bool {
        let take_wake_up = event.due != Event::Wake || self.take_wake_up(node);
        take_wake_up && self.alive(node) && self.is_deliverable(node, &event.due)
    }

    /// All inputs of all nodes in a stretch of time so short that nothing sent in it arrives in it.
    fn take_batch(&mut self, end: u64, observer: &mut dyn StepObserver<S>) {
        let until = self.now.saturating_add(self.network.shortest_delay().max(1)).min(end.saturating_add(1));
        let mut events = Vec::new();
        while events.len() < MAX_BATCH
            && self.queue.next_at().is_some_and(|at| at < until)
            && !self.queue.action_is_next()
        {
            let Some(event) = self.queue.pop() else { break };
            let node = self.nodes.node(event.node as usize);
            let at = event.at;
            if event.due == Event::Wake
                && let Some((_, wake)) = self.deadline_and_wake(node)
                && *wake <= at
            {
                *wake = NEVER;
            }
            if self.alive(node) && self.is_deliverable(node, &event.due) {
                events.push(event);
            }
        }
        // An errand ends the stretch, and so does what no longer fits: nobody looks beyond it.
        let until = self.queue.next_at().map_or(until, |next| until.min(next.max(self.now + 1)));
        events.sort_unstable_by_key(|event| (event.node, event.at, event.number));
        let mut nodes: Vec<NodeId> =
            events.iter().map(|event| self.nodes.node(event.node as usize)).collect();
        nodes.dedup();
        let mut steps = self.run_schedules(events, until);
        steps.sort_by_key(|step| step.at);
        for step in &steps {
            self.now = self.now.max(nanos(step.at));
            self.apply_effects(step);
        }
        for node in nodes {
            // Who woke up for nothing is to be woken again.
            self.plan_wake(node);
        }
        for step in &steps {
            observer.on_step(self, step);
        }
    }

    /// Lets every node work off its agenda, on all cores. The steps come back by node, then by time.
    fn run_schedules(&mut self, events: Vec<QueuedEvent>, until: u64) -> Vec<Step> {
        let (context, nodes) = (self.context(), self.nodes);
        let mut steps = Vec::new();
        let mut edges = Vec::new();
        let mut hubs = Vec::new();
        for run in schedules_by_node(events) {
            let (node, schedule) = (nodes.node(run.0 as usize), run.1);
            match node {
                NodeId::Edge(number) => {
                    let sim_node = self.edges.get_mut(number as usize).and_then(Option::take);
                    edges.extend(sim_node.map(|sim_node| (number, sim_node, schedule, Vec::new())));
                }
                _ => hubs.push((node, schedule)),
            }
        }
        let (kgcs, leaders, headers) = (&mut self.kgcs, &mut self.leaders, &self.headers);
        let work_edge = |(number, sim_node, schedule, steps): &mut NodeWork<S>| {
            run_schedule(
                &mut **sim_node,
                NodeId::Edge(*number),
                std::mem::take(schedule),
                until,
                context,
                steps,
            );
            if let Some(drone) = &mut sim_node.machine {
                headers.share(&mut drone.edge);
            }
        };
        let serve_hubs = || {
            let mut steps = Vec::new();
            for (node, schedule) in hubs {
                match node {
                    NodeId::Leader(ordinal) => {
                        if let Some(leader) = leaders.get_mut(usize::from(ordinal)) {
                            run_schedule(leader, node, schedule, until, context, &mut steps);
                        }
                    }
                    NodeId::Kgc(id) => {
                        if let Some(kgc) = kgcs.get_mut(usize::from(id) - 1) {
                            run_schedule(kgc, node, schedule, until, context, &mut steps);
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
        for (number, sim_node, _, of_edge) in edges {
            steps.extend(of_edge);
            if let Some(place) = self.edges.get_mut(number as usize) {
                *place = Some(sim_node);
            }
        }
        steps
    }
}

/// Sorted events as one agenda per node.
fn schedules_by_node(events: Vec<QueuedEvent>) -> Vec<(u32, NodeSchedule)> {
    let mut schedules: Vec<(u32, NodeSchedule)> = Vec::new();
    for event in events {
        match schedules.last_mut() {
            Some((node, schedule)) if *node == event.node => schedule.push((event.at, event.due)),
            _ => schedules.push((event.node, vec![(event.at, event.due)])),
        }
    }
    schedules
}

/// Works off an agenda, and every deadline that comes before `until`.
fn run_schedule<M: Machine>(
    sim_node: &mut SimNode<M>,
    node: NodeId,
    schedule: NodeSchedule,
    until: u64,
    context: StepContext,
    steps: &mut Vec<Step>,
) where
    M::Record: Stored,
    NodeEvent: From<M::Event>,
{
    let mut schedule = schedule.into_iter().filter(|(_, due)| *due != Event::Wake).peekable();
    loop {
        let next = schedule.peek().map_or(until, |(at, _)| *at);
        let (at, cue) = if sim_node.alive() && sim_node.deadline < until && sim_node.deadline <= next {
            (sim_node.deadline, Some((Stimulus::Deadline, Cause::Deadline)))
        } else {
            let Some((at, due)) = schedule.next() else { return };
            (at, stimulus(context.nodes, due))
        };
        if let Some(cue) = cue.filter(|_| sim_node.alive()) {
            steps.push(take_step(sim_node, node, at, cue, context));
        }
    }
}
