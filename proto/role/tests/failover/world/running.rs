//! The world in motion: what goes into machines, what comes out of them, and the clock.

use std::time::Duration;

use quiver_role::{
    Destination, EdgeCommand, Input, KgcCommand, LeaderCommand, Machine, Output, Peer, Route, Via,
};

use super::{Flight, Node, World};

/// What any machine may be fed.
#[derive(Clone, Copy)]
pub(super) enum Stimulus<'a> {
    Timeout,
    Connected(Peer, Route),
    Disconnected(Peer),
    Received(Peer, Via, &'a [u8]),
}

impl<'a> Stimulus<'a> {
    fn input<C>(self) -> Input<'a, C> {
        match self {
            Self::Timeout => Input::Timeout,
            Self::Connected(peer, route) => Input::Connected { peer, route },
            Self::Disconnected(peer) => Input::Disconnected { peer },
            Self::Received(from, via, bytes) => Input::Received { from, via, bytes },
        }
    }
}

impl World {
    pub(crate) fn command(&mut self, edge: usize, command: EdgeCommand) {
        let now = self.now_at(Node::Edge(edge));
        let machine = self.edges[edge].machine.as_mut().unwrap();
        machine.handle_input(now, Input::Command(command), &mut self.rng);
        self.settle(Node::Edge(edge));
    }

    pub(crate) fn lead(&mut self, leader: usize, command: LeaderCommand) {
        let now = self.now_at(Node::Leader(leader));
        // A dead leader takes no orders.
        if let Some(machine) = &mut self.leaders[leader].machine {
            machine.handle_input(now, Input::Command(command), &mut self.rng);
        }
        self.settle(Node::Leader(leader));
    }

    pub(crate) fn rule(&mut self, command: KgcCommand) {
        let now = self.now_at(Node::Kgc);
        self.kgc.as_mut().unwrap().handle_input(now, Input::Command(command), &mut self.rng);
        self.settle(Node::Kgc);
    }

    /// Gives bytes to a machine as if `from` had sent them.
    pub(crate) fn inject(&mut self, from: Node, to: Node, bytes: &[u8]) {
        let flight = Flight { from, to, via: Via::Peer, bytes: bytes.to_vec() };
        self.enqueue(flight);
    }

    fn enqueue(&mut self, flight: Flight) {
        self.sent += 1;
        self.queue.insert((self.clock + self.latency, self.sent), flight);
    }

    pub(super) fn feed(&mut self, node: Node, stimulus: Stimulus<'_>) {
        let now = self.now_at(node);
        match node {
            Node::Kgc => {
                if let Some(machine) = &mut self.kgc {
                    machine.handle_input(now, stimulus.input(), &mut self.rng);
                }
            }
            Node::Leader(index) => {
                if let Some(machine) = &mut self.leaders[index].machine {
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
        let mut drained = Drained { budget: usize::MAX, flights: Vec::new() };
        if let Some((_, budget)) = self.doom.filter(|(doomed, _)| *doomed == node) {
            drained.budget = budget;
        }
        match node {
            Node::Kgc => {
                let Some(machine) = &mut self.kgc else { return };
                self.kgc_deadline = drained.drain(machine, &mut self.kgc_records, &mut self.kgc_events);
            }
            Node::Leader(index) => {
                let leader = &mut self.leaders[index];
                let Some(machine) = &mut leader.machine else { return };
                leader.deadline = drained.drain(machine, &mut leader.records, &mut leader.events);
            }
            Node::Edge(index) => {
                let edge = &mut self.edges[index];
                let Some(machine) = &mut edge.machine else { return };
                let mut states = Vec::new();
                edge.deadline = drained.drain(machine, &mut states, &mut edge.events);
                edge.state = states.pop().or(edge.state.take());
            }
        }
        let Drained { budget, flights } = drained;
        for (to, bytes) in flights {
            let via = if to == Destination::Group { Via::Group } else { Via::Peer };
            for to in self.targets(node, to) {
                self.transmit(Flight { from: node, to, via, bytes: bytes.clone() });
            }
        }
        if let Some((_, left)) = self.doom.as_mut().filter(|(doomed, _)| *doomed == node) {
            *left = budget;
            if budget == 0 {
                self.doom = None;
                self.crash(node);
            }
        }
    }

    fn transmit(&mut self, flight: Flight) {
        if self.records_all {
            self.recorded.push(flight.clone());
        }
        let delivered = match &mut self.tamper {
            Some(tamper) => tamper(flight),
            None => vec![flight],
        };
        for flight in delivered {
            self.enqueue(flight);
        }
    }

    fn node(&self, at: Node, peer: Peer) -> Option<Node> {
        let mut seen = self.handles.range((at, Node::Kgc)..=(at, Node::Edge(usize::MAX)));
        seen.find(|(_, handle)| **handle == peer).map(|((_, of), _)| *of)
    }

    fn targets(&self, from: Node, to: Destination) -> Vec<Node> {
        match to {
            Destination::Peer(peer) => self.node(from, peer).into_iter().collect(),
            Destination::Group => {
                let listens = |node: &Node| *node != from && *node != Node::Kgc && self.alive(*node);
                self.nodes().into_iter().filter(listens).collect()
            }
        }
    }

    fn deadlines(&self) -> impl Iterator<Item = (Node, Option<Duration>)> + '_ {
        let edges = self.edges.iter().enumerate().map(|(index, edge)| (Node::Edge(index), edge.deadline));
        let leaders =
            self.leaders.iter().enumerate().map(|(index, leader)| (Node::Leader(index), leader.deadline));
        [(Node::Kgc, self.kgc_deadline)].into_iter().chain(leaders).chain(edges)
    }

    /// Delivers one message or advances the clock to the next deadline, not beyond `end`. Returns false at the end.
    fn step(&mut self, end: Duration) -> bool {
        let next = self.deadlines().filter(|(node, _)| self.alive(*node));
        let next = next.filter_map(|(node, deadline)| Some((deadline?, node))).min();
        let arrival = self.queue.first_key_value().map(|((at, _), _)| *at);
        if let Some(at) = arrival.filter(|at| *at <= end && next.is_none_or(|(deadline, _)| *at <= deadline))
        {
            self.clock = self.clock.max(at);
            if let Some((_, flight)) = self.queue.pop_first() {
                self.deliver(&flight);
            }
            return true;
        }
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

    fn deliver(&mut self, flight: &Flight) {
        let Flight { from, to, via, bytes } = flight;
        if self.walls.contains(&(*from, *to)) {
            return;
        }
        // Gossip comes from whoever passed it on: some neighbour.
        let direct = self.handles.get(&(*to, *from)).copied();
        let mut neighbours = self.handles.range((*to, Node::Kgc)..=(*to, Node::Edge(usize::MAX)));
        let peer = direct.or_else(|| neighbours.next_back().map(|(_, peer)| *peer));
        if let Some(peer) = peer {
            self.feed(*to, Stimulus::Received(peer, *via, bytes));
        }
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.clock + time;
        let mut steps = 0;
        while self.step(end) {
            steps += 1;
            assert!(steps < 2_000_000, "the machines never come to rest");
        }
    }

    pub(crate) fn run_until(&mut self, what: &str, mut reached: impl FnMut(&Self) -> bool) {
        let end = self.clock + Duration::from_secs(300);
        while !reached(self) {
            assert!(
                self.step(end),
                "not reached in 300 s: {what}; {:?}",
                self.leaders
                    .iter()
                    .map(|l| l.events.iter().rev().take(6).collect::<Vec<_>>())
                    .collect::<Vec<_>>()
            );
        }
    }
}

/// What came out of a machine before its budget of outputs was used up.
struct Drained {
    budget: usize,
    flights: Vec<(Destination, Vec<u8>)>,
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
                Output::Block(_) | Output::Relay { .. } | Output::Penalize { .. } => {}
                Output::Timeout(_) => unreachable!(),
            }
        }
    }
}
