//! Time goes by.

use std::time::Duration;

use quiver_ainq::Suite;
use rayon::prelude::*;

use super::World;
use super::turning::{Style, stimulus, take};
use crate::disk::Stored;
use crate::drone::Drone;
use crate::network::nanos;
use crate::queue::{Due, Event};
use crate::station::{NEVER, Station, Stimulus};
use crate::{Cause, Node, NodeEvent, Turn, Witness};
use quiver_role::Machine;

/// From how many edges on a stretch is worth waking the other cores for.
const WORTH_IT: usize = 16;

/// How many events a stretch has at most: what comes of all of them is in memory at once.
const LONGEST: usize = 1 << 16;

/// What one node has to do in a stretch of time: in order of time.
type Agenda = Vec<(u64, Due)>;

/// An edge taken out of the world, what it has to do, and the steps it took.
type Job<S> = (u32, Box<Station<Drone<S>>>, Agenda, Vec<Turn>);

impl<S: Suite> World<S> {
    /// Lets the world run until this time since it began, or until the witness stops it. Returns whether it was stopped.
    pub fn run_until(&mut self, end: Duration, witness: &mut dyn Witness<S>) -> bool {
        let end = nanos(end);
        while !witness.stops() {
            match self.queue.next_at() {
                Some(at) if at <= end => self.now = self.now.max(at),
                _ => {
                    self.now = self.now.max(end);
                    return false;
                }
            }
            if self.queue.errand_is_next() {
                self.take_errand(witness);
            } else if self.setup.parallel {
                self.take_stretch(end, witness);
            } else {
                self.take_step(witness);
            }
        }
        true
    }

    /// Lets the world run for this long.
    pub fn run_for(&mut self, time: Duration, witness: &mut dyn Witness<S>) -> bool {
        self.run_until(self.time() + time, witness)
    }

    fn take_errand(&mut self, witness: &mut dyn Witness<S>) {
        let Some(event) = self.queue.pop() else { return };
        let (turns, action) = self.run_errand(event.node);
        if let Some(action) = &action {
            witness.acted(self, self.time(), action);
        }
        for turn in &turns {
            self.conclude(turn);
            witness.saw(self, turn);
        }
    }

    /// One input of one node.
    fn take_step(&mut self, witness: &mut dyn Witness<S>) {
        let Some(event) = self.queue.pop() else { return };
        let node = self.row.node(event.node as usize);
        if !self.ready(node, &event) {
            return;
        }
        if let Some(turn) = self.due_turn(node, event.due) {
            self.conclude(&turn);
            witness.saw(self, &turn);
        }
    }

    fn ready(&mut self, node: Node, event: &Event) -> bool {
        let wanted = event.due != Due::Wake || self.wanted(node);
        wanted && self.alive(node) && self.holds(node, &event.due)
    }

    /// All inputs of all nodes in a stretch of time so short that nothing sent in it arrives in it.
    fn take_stretch(&mut self, end: u64, witness: &mut dyn Witness<S>) {
        let until = self.now.saturating_add(self.network.shortest_delay().max(1)).min(end.saturating_add(1));
        let mut events = Vec::new();
        while events.len() < LONGEST
            && self.queue.next_at().is_some_and(|at| at < until)
            && !self.queue.errand_is_next()
        {
            let Some(event) = self.queue.pop() else { break };
            let node = self.row.node(event.node as usize);
            let at = event.at;
            if event.due == Due::Wake
                && let Some((_, wake)) = self.vitals(node)
                && *wake <= at
            {
                *wake = NEVER;
            }
            if self.alive(node) && self.holds(node, &event.due) {
                events.push(event);
            }
        }
        // An errand ends the stretch, and so does what no longer fits: nobody looks beyond it.
        let until = self.queue.next_at().map_or(until, |next| until.min(next.max(self.now + 1)));
        events.sort_unstable_by_key(|event| (event.node, event.at, event.number));
        let mut nodes: Vec<Node> = events.iter().map(|event| self.row.node(event.node as usize)).collect();
        nodes.dedup();
        let mut turns = self.work_off(events, until);
        turns.sort_by_key(|turn| turn.at);
        for turn in &turns {
            self.now = self.now.max(nanos(turn.at));
            self.conclude(turn);
        }
        for node in nodes {
            // Who woke up for nothing is to be woken again.
            self.plan_wake(node);
        }
        for turn in &turns {
            witness.saw(self, turn);
        }
    }

    /// Lets every node work off its agenda, on all cores. The steps come back by node, then by time.
    fn work_off(&mut self, events: Vec<Event>, until: u64) -> Vec<Turn> {
        let (style, row) = (self.style(), self.row);
        let mut turns = Vec::new();
        let mut edges = Vec::new();
        let mut hubs = Vec::new();
        for run in by_node(events) {
            let (node, agenda) = (row.node(run.0 as usize), run.1);
            match node {
                Node::Edge(number) => {
                    let station = self.edges.get_mut(number as usize).and_then(Option::take);
                    edges.extend(station.map(|station| (number, station, agenda, Vec::new())));
                }
                _ => hubs.push((node, agenda)),
            }
        }
        let (kgcs, leaders, headers) = (&mut self.kgcs, &mut self.leaders, &self.headers);
        let work_edge = |(number, station, agenda, turns): &mut Job<S>| {
            work(&mut **station, Node::Edge(*number), std::mem::take(agenda), until, style, turns);
            if let Some(drone) = &mut station.machine {
                headers.share(&mut drone.edge);
            }
        };
        let serve_hubs = || {
            let mut turns = Vec::new();
            for (node, agenda) in hubs {
                match node {
                    Node::Leader(ordinal) => {
                        if let Some(leader) = leaders.get_mut(usize::from(ordinal)) {
                            work(leader, node, agenda, until, style, &mut turns);
                        }
                    }
                    Node::Kgc(id) => {
                        if let Some(kgc) = kgcs.get_mut(usize::from(id) - 1) {
                            work(kgc, node, agenda, until, style, &mut turns);
                        }
                    }
                    Node::Edge(_) => {}
                }
            }
            turns
        };
        if edges.len() < WORTH_IT {
            turns.extend(serve_hubs());
            edges.iter_mut().for_each(work_edge);
        } else {
            let (of_hubs, ()) = rayon::join(serve_hubs, || edges.par_iter_mut().for_each(work_edge));
            turns.extend(of_hubs);
        }
        for (number, station, _, of_edge) in edges {
            turns.extend(of_edge);
            if let Some(place) = self.edges.get_mut(number as usize) {
                *place = Some(station);
            }
        }
        turns
    }
}

/// Sorted events as one agenda per node.
fn by_node(events: Vec<Event>) -> Vec<(u32, Agenda)> {
    let mut agendas: Vec<(u32, Agenda)> = Vec::new();
    for event in events {
        match agendas.last_mut() {
            Some((node, agenda)) if *node == event.node => agenda.push((event.at, event.due)),
            _ => agendas.push((event.node, vec![(event.at, event.due)])),
        }
    }
    agendas
}

/// Works off an agenda, and every deadline that comes before `until`.
fn work<M: Machine>(
    station: &mut Station<M>,
    node: Node,
    agenda: Agenda,
    until: u64,
    style: Style,
    turns: &mut Vec<Turn>,
) where
    M::Record: Stored,
    NodeEvent: From<M::Event>,
{
    let mut agenda = agenda.into_iter().filter(|(_, due)| *due != Due::Wake).peekable();
    loop {
        let next = agenda.peek().map_or(until, |(at, _)| *at);
        let (at, cue) = if station.alive() && station.deadline < until && station.deadline <= next {
            (station.deadline, Some((Stimulus::Deadline, Cause::Deadline)))
        } else {
            let Some((at, due)) = agenda.next() else { return };
            (at, stimulus(style.row, due))
        };
        if let Some(cue) = cue.filter(|_| station.alive()) {
            turns.push(take(station, node, at, cue, style));
        }
    }
}
