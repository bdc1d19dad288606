//! The world in motion: what goes into machines, what comes out of them, and the clock.

use std::time::Duration;

use quiver_role::{
    Destination, EdgeCommand, Input, KgcCommand, LeaderCommand, Machine, Misdeed, Output, Peer, Route, Via,
};

use super::{Flight, Node, World};

/// What any machine may be fed.
#[derive(Clone, Copy)]
pub(super) enum Stimulus<'a> {
    Timeout,
    Connected(Peer, Route),
    Disconnected(Peer),
    Received(Peer, Via, &'a [u8]),
    Resumed,
}

impl<'a> Stimulus<'a> {
    fn input<C>(self) -> Input<'a, C> {
        match self {
            Self::Timeout => Input::Timeout,
            Self::Connected(peer, route) => Input::Connected { peer, route },
            Self::Disconnected(peer) => Input::Disconnected { peer },
            Self::Received(from, via, bytes) => Input::Received { from, via, bytes },
            Self::Resumed => Input::Resumed,
        }
    }
}

impl World {
    pub(crate) fn command(&mut self, edge: usize, command: EdgeCommand) {
        let now = self.now();
        let machine = self.edges[edge].machine.as_mut().unwrap();
        machine.handle_input(now, Input::Command(command), &mut self.rng);
        self.settle(Node::Edge(edge));
    }

    pub(crate) fn lead(&mut self, command: LeaderCommand) {
        let now = self.now();
        // A dead leader takes no orders.
        if let Some(machine) = &mut self.leader {
            machine.handle_input(now, Input::Command(command), &mut self.rng);
        }
        self.settle(Node::Leader);
    }

    pub(crate) fn rule(&mut self, command: KgcCommand) {
        let now = self.now();
        self.kgc.as_mut().unwrap().handle_input(now, Input::Command(command), &mut self.rng);
        self.settle(Node::Kgc);
    }

    /// Gives bytes to a machine as if `from` had sent them.
    pub(crate) fn inject(&mut self, from: Node, to: Node, bytes: &[u8]) {
        self.queue.push_back(Flight { from, to, via: Via::Peer, bytes: bytes.to_vec() });
    }

    /// Gives bytes to all members as if the hub had passed on what `from` published.
    pub(crate) fn publish(&mut self, from: Node, bytes: &[u8]) {
        for to in self.targets(from, Destination::Group) {
            self.queue.push_back(Flight { from, to, via: Via::Group, bytes: bytes.to_vec() });
        }
    }

    /// Tells a machine that it may be a copy of what it was before.
    pub(crate) fn resume(&mut self, node: Node) {
        self.feed(node, Stimulus::Resumed);
    }

    pub(super) fn feed(&mut self, node: Node, stimulus: Stimulus<'_>) {
        let now = self.now();
        match node {
            Node::Kgc => {
                if let Some(machine) = &mut self.kgc {
                    machine.handle_input(now, stimulus.input(), &mut self.rng);
                }
            }
            Node::Leader => {
                if let Some(machine) = &mut self.leader {
                    machine.handle_input(now, stimulus.input(), &mut self.rng);
                }
            }
            Node::Edge(index) => {
                if let Some(machine) = &mut self.edges[index].machine {
                    machine.handle_input(now, stimulus.input(), &mut self.rng);
                }
            }
        }
        self.settle(node);
    }

    /// Drains a machine's outputs as a driver would.
    pub(super) fn settle(&mut self, node: Node) {
        let mut drained =
            Drained { budget: usize::MAX, flights: Vec::new(), blocked: Vec::new(), penalized: Vec::new() };
        if let Some((doomed, budget)) = self.doom.filter(|(doomed, _)| *doomed == node) {
            drained.budget = budget;
            self.doom = Some((doomed, 0));
        }
        match node {
            Node::Kgc => {
                let Some(machine) = &mut self.kgc else { return };
                self.kgc_deadline = drained.drain(machine, &mut self.kgc_records, &mut self.kgc_events);
            }
            Node::Leader => {
                let Some(machine) = &mut self.leader else { return };
                self.leader_deadline =
                    drained.drain(machine, &mut self.leader_records, &mut self.leader_events);
            }
            Node::Edge(index) => {
                let edge = &mut self.edges[index];
                let Some(machine) = &mut edge.machine else { return };
                let mut states = Vec::new();
                edge.deadline = drained.drain(machine, &mut states, &mut edge.events);
                edge.state = states.pop().or(edge.state.take());
            }
        }
        let Drained { budget, flights, blocked, penalized } = drained;
        let dies = self.doom.is_some_and(|(doomed, _)| doomed == node) && budget == 0;
        if let Some((doomed, left)) = &mut self.doom
            && *doomed == node
        {
            *left = budget;
        }
        for (peer, misdeed) in penalized {
            if let Some(other) = self.node(node, peer) {
                self.penalized.push((node, other, misdeed));
            }
        }
        for peer in blocked {
            if let Some(other) = self.node(node, peer) {
                self.blocked.push((node, other));
            }
        }
        for (to, bytes) in flights {
            let via = if to == Destination::Group { Via::Group } else { Via::Peer };
            for to in self.targets(node, to) {
                let flight = Flight { from: node, to, via, bytes: bytes.clone() };
                self.recorded.push(flight.clone());
                let delivered = match &mut self.tamper {
                    Some(tamper) => tamper(flight),
                    None => vec![flight],
                };
                self.queue.extend(delivered);
            }
        }
        if dies {
            self.doom = None;
            let sent = std::mem::take(&mut self.queue);
            self.crash(node);
            // What it had sent before it died is on its way.
            self.queue = sent;
        }
    }

    fn node(&self, at: Node, peer: Peer) -> Option<Node> {
        self.handles.iter().find(|((a, _), handle)| *a == at && **handle == peer).map(|((_, of), _)| *of)
    }

    fn targets(&self, from: Node, to: Destination) -> Vec<Node> {
        match to {
            Destination::Peer(peer) => self.node(from, peer).into_iter().collect(),
            Destination::Group => {
                let edges = (0..self.edges.len()).map(Node::Edge);
                let members = edges.chain([Node::Leader]).filter(|node| *node != from && self.alive(*node));
                members
                    .filter(|node| self.handles.contains_key(&(*node, Node::Leader)) || *node == Node::Leader)
                    .collect()
            }
        }
    }

    /// Delivers one message or advances the clock to the next deadline, not beyond `end`. Returns false at the end.
    fn step(&mut self, end: Duration) -> bool {
        if let Some(flight) = self.queue.pop_front() {
            let Flight { from, to, via: way, bytes } = flight;
            if self.cut.contains(&from) || self.cut.contains(&to) {
                return true;
            }
            // Gossip comes from whoever passed it on: the leader is the hub of the star.
            let via = if self.handles.contains_key(&(to, from)) { from } else { Node::Leader };
            let Some(peer) = self.handles.get(&(to, via)).copied() else {
                return true;
            };
            self.feed(to, Stimulus::Received(peer, way, &bytes));
            return true;
        }
        let edges = self.edges.iter().enumerate().map(|(index, edge)| (Node::Edge(index), edge.deadline));
        let others = [(Node::Kgc, self.kgc_deadline), (Node::Leader, self.leader_deadline)];
        let next = edges.chain(others).filter(|(node, _)| self.alive(*node));
        let next = next.filter_map(|(node, deadline)| Some((deadline?, node))).min();
        match next {
            Some((deadline, node)) if deadline <= end => {
                self.clock = self.clock.max(deadline);
                self.feed(node, Stimulus::Timeout);
                true
            }
            _ => {
                self.clock = end;
                false
            }
        }
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.clock + time;
        let mut steps = 0;
        while self.step(end) {
            steps += 1;
            assert!(steps < 1_000_000, "the machines never come to rest");
        }
    }

    pub(crate) fn run_until(&mut self, what: &str, reached: impl FnMut(&Self) -> bool) {
        self.run_until_in(Duration::from_secs(300), what, reached);
    }

    pub(crate) fn run_until_in(
        &mut self,
        patience: Duration,
        what: &str,
        mut reached: impl FnMut(&Self) -> bool,
    ) {
        let end = self.clock + patience;
        while !reached(self) {
            assert!(
                self.step(end),
                "not reached in {patience:?}: {what}; leader {:?}",
                self.leader_events.iter().rev().take(5).collect::<Vec<_>>()
            );
        }
    }
}

/// What came out of a machine before its budget of outputs was used up.
struct Drained {
    budget: usize,
    flights: Vec<(Destination, Vec<u8>)>,
    blocked: Vec<Peer>,
    penalized: Vec<(Peer, Misdeed)>,
}

impl Drained {
    fn drain<M: Machine>(
        &mut self,
        machine: &mut M,
        records: &mut Vec<M::Record>,
        events: &mut Vec<M::Event>,
    ) -> Option<Duration> {
        loop {
            let output = machine.poll_output();
            if let Output::Timeout(deadline) = output {
                return deadline;
            }
            if self.budget == 0 {
                return None;
            }
            self.budget -= 1;
            match output {
                Output::Persist(record) => records.push(record),
                Output::Transmit { to, payload } => self.flights.push((to, payload)),
                Output::Event(event) => events.push(event),
                Output::Block(peer) => self.blocked.push(peer),
                Output::Penalize { peer, misdeed } => self.penalized.push((peer, misdeed)),
                Output::Relay { .. } => {}
                Output::Timeout(_) => unreachable!(),
            }
        }
    }
}
