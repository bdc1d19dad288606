//! Steps many edges at once, on all cores.

use std::collections::BTreeMap;
use std::ops::Range;

use quiver_ainq::Suite;
use quiver_testbed::{SimNode, Stimulus};
use rayon::prelude::*;

use super::step::take_step;
use super::{DroneNodeCommand, LeaderNodeCommand, World};
use crate::drone_node::DroneNode;
use crate::rng_stream::{self, RngStream};
use crate::{Cause, NodeId, Step, StepObserver};

type ParallelNode<S> = (u32, Box<SimNode<DroneNode<S>>>, Option<Step>);

impl<S: Suite> World<S> {
    /// Switches these edges on, all at once, and connects them to all nodes they dial that are on.
    ///
    /// Their tokens are issued here, on all cores: a million of them take a while.
    pub fn start_edges(&mut self, edges: Range<u32>, observer: &mut dyn StepObserver<S>) {
        let (seed, now, options) = (self.setup.seed, self.now, self.step_options());
        let (fleet, kem) = (std::sync::Arc::clone(&self.fleet), self.kem());
        let started = edges.clone();
        self.step_edges(edges, observer, |number, sim_node| {
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
        let hubs: Vec<NodeId> = (0..self.nodes.hubs()).map(|index| self.nodes.node(index)).collect();
        for number in started {
            for hub in &hubs {
                if self.nodes.dials(NodeId::Edge(number), *hub) {
                    self.connect(NodeId::Edge(number), *hub);
                }
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
        let (now, options) = (self.now, self.step_options());
        self.step_edges(edges, observer, |number, sim_node| {
            let stimulus = Stimulus::Command(command.clone());
            let cause = Cause::Command("do as all others");
            sim_node
                .alive()
                .then(|| take_step(sim_node, NodeId::Edge(number), now, (stimulus, cause), options))
        });
    }

    /// Tells a leader to do something.
    pub fn command_leader(
        &mut self,
        ordinal: u16,
        command: LeaderNodeCommand,
        observer: &mut dyn StepObserver<S>,
    ) {
        if let Some(step) = self.step_leader(ordinal, Stimulus::Command(command), "do as told") {
            self.apply_effects(&step);
            observer.on_step(self, &step);
            self.report_hops(observer);
        }
    }

    fn step_edges(
        &mut self,
        edges: impl IntoIterator<Item = u32>,
        observer: &mut dyn StepObserver<S>,
        act: impl Fn(u32, &mut SimNode<DroneNode<S>>) -> Option<Step> + Sync,
    ) {
        let numbers: Vec<u32> = edges.into_iter().collect();
        let mut places: Vec<ParallelNode<S>> = Vec::new();
        for number in numbers.iter().copied() {
            let here = self.has(number);
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
        if self.split.is_some() {
            let mut all: BTreeMap<u32, Vec<Step>> = self.share(own).into_iter().collect();
            steps.extend(numbers.iter().filter_map(|number| all.remove(number)).flatten());
        } else {
            steps.extend(own.into_iter().flat_map(|(_, steps)| steps));
        }
        for step in &steps {
            self.apply_effects(step);
            self.show(step, observer);
        }
        self.report_hops(observer);
    }
}
