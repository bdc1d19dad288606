//! Lets many nodes take their steps at once, on all cores.

use std::collections::BTreeMap;

use quiver_ainq::Suite;
use quiver_machine::Machine;
use quiver_testbed::{SimNode, Stimulus};
use rayon::prelude::*;

use super::SimNodes;
use super::steps::{StepOptions, stimulus, take_step};
use crate::air::Air;
use crate::drone_node::DroneNode;
use crate::event_queue::{QueuedEvent, WorldEvent};
use crate::record::Record;
use crate::{Cause, NodeEvent, NodeId, Step};

/// Number of edges in a batch from which on other cores are used.
const PARALLEL_FROM: usize = 16;

/// Events of one node in a batch, in order of time.
type NodeSchedule = Vec<(u64, WorldEvent)>;

/// An edge taken out of the world, its schedule, and its steps.
type NodeWork<S> = (u32, Box<SimNode<DroneNode<S>>>, NodeSchedule, Vec<Step>);

/// An edge taken out of the world, and its step.
type ParallelNode<S> = (u32, Box<SimNode<DroneNode<S>>>, Option<Step>);

impl<S: Suite> SimNodes<S> {
    /// Lets these edges do something at once, on all cores.
    pub(in crate::world) fn step_edges(
        &mut self,
        edges: impl IntoIterator<Item = u32>,
        air: Option<&Air>,
        act: impl Fn(u32, &mut SimNode<DroneNode<S>>) -> Option<Step> + Sync,
    ) -> Vec<Step> {
        let numbers: Vec<u32> = edges.into_iter().collect();
        let mut places: Vec<ParallelNode<S>> = Vec::new();
        for number in numbers.iter().copied() {
            let here = self.split.has(number);
            let place = self.edges.get_mut(number as usize).filter(|_| here);
            let sim_node = place.and_then(Option::take);
            places.extend(sim_node.map(|sim_node| (number, sim_node, None)));
        }
        places.par_iter_mut().for_each(|(number, sim_node, step)| *step = act(*number, sim_node));
        let mut own = Vec::new();
        for (number, sim_node, step) in places {
            if let Some(place) = self.edges.get_mut(number as usize) {
                *place = Some(sim_node);
            }
            own.extend(step.map(|step| (number, vec![step])));
        }
        let mut steps: Vec<Step> = Vec::new();
        if self.split.is_split() {
            let mut all: BTreeMap<u32, Vec<Step>> = self.share(own, air).into_iter().collect();
            steps.extend(numbers.iter().filter_map(|number| all.remove(number)).flatten());
        } else {
            steps.extend(own.into_iter().flat_map(|(_, steps)| steps));
        }
        steps
    }

    /// Lets every node work off its agenda, on all cores. The steps come back by node, then by time.
    pub(in crate::world) fn run_schedules(
        &mut self,
        events: Vec<QueuedEvent>,
        until: u64,
        air: Option<&Air>,
    ) -> Vec<Step> {
        let (options, index) = (self.options, self.index);
        let mut steps = Vec::new();
        let mut edges = Vec::new();
        let mut hubs = Vec::new();
        // Of this rank or another: all know alike whether there are any.
        let mut any_edge = false;
        for run in schedules_by_node(events) {
            let (node, schedule) = (index.node(run.0 as usize), run.1);
            any_edge |= matches!(node, NodeId::Edge(_));
            match node {
                NodeId::Edge(number) if !self.split.has(number) => {}
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
            of_edges = self.share(of_edges, air);
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
            (at, stimulus(options, due))
        };
        if let Some(cue) = cue.filter(|_| sim_node.alive()) {
            steps.push(take_step(sim_node, node, at, cue, options));
        }
    }
}
