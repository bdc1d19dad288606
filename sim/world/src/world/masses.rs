//! The same thing for many edges at once, on all cores.

use std::ops::Range;

use quiver_ainq::Suite;
use quiver_role::{EdgeCommand, LeaderCommand};
use rayon::prelude::*;

use super::World;
use super::turning::take;
use crate::drone::Drone;
use crate::seeds::{Dormant, Player};
use crate::station::{Station, Stimulus};
use crate::{Cause, Node, Turn, Witness};

type Place<S> = (u32, Box<Station<Drone<S>>>, Option<Turn>);

impl<S: Suite> World<S> {
    /// Switches these edges on, all at once, and connects them to everybody they dial who is on.
    ///
    /// Their tokens are issued here, on all cores: a million of them take a while.
    pub fn start_edges(&mut self, edges: Range<u32>, witness: &mut dyn Witness<S>) {
        let (seed, now, style) = (self.setup.seed, self.now, self.style());
        let fleet = std::sync::Arc::clone(&self.fleet);
        let started = edges.clone();
        self.mass(edges, witness, |number, station| {
            if station.alive() {
                return None;
            }
            let machine = fleet.drone(number, station.disk.records.last()).ok()?;
            let node = Node::Edge(number);
            station.power_on(now, machine, Dormant::new(seed, Player::Node(node, station.life + 1)));
            Some(take(station, node, now, (Stimulus::Start, Cause::Start), style))
        });
        let hubs: Vec<Node> = (0..self.row.hubs()).map(|index| self.row.node(index)).collect();
        for number in started {
            for hub in &hubs {
                self.connect(Node::Edge(number), *hub);
            }
        }
    }

    /// Tells these edges to do something, all at once.
    pub fn command_edges(
        &mut self,
        edges: impl IntoIterator<Item = u32>,
        command: &EdgeCommand,
        witness: &mut dyn Witness<S>,
    ) {
        let (now, style) = (self.now, self.style());
        self.mass(edges, witness, |number, station| {
            let stimulus = Stimulus::Command(command.clone());
            let cause = Cause::Command("do as all others");
            station.alive().then(|| take(station, Node::Edge(number), now, (stimulus, cause), style))
        });
    }

    /// Tells a leader to do something.
    pub fn command_leader(&mut self, ordinal: u16, command: LeaderCommand, witness: &mut dyn Witness<S>) {
        if let Some(turn) = self.tell_leader(ordinal, command, "do as told") {
            self.conclude(&turn);
            witness.saw(self, &turn);
        }
    }

    fn mass(
        &mut self,
        edges: impl IntoIterator<Item = u32>,
        witness: &mut dyn Witness<S>,
        act: impl Fn(u32, &mut Station<Drone<S>>) -> Option<Turn> + Sync,
    ) {
        let take_out = |number: u32| Some((number, self.edges.get_mut(number as usize)?.take()?, None));
        let mut places: Vec<Place<S>> = edges.into_iter().filter_map(take_out).collect();
        places.par_iter_mut().for_each(|(number, station, turn)| *turn = act(*number, station));
        let mut turns = Vec::new();
        for (number, station, turn) in places {
            if let Some(place) = self.edges.get_mut(number as usize) {
                *place = Some(station);
            }
            turns.extend(turn);
        }
        for turn in &turns {
            self.conclude(turn);
            witness.saw(self, turn);
        }
    }
}
