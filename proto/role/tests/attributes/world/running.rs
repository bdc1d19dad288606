//! The world in motion: what goes into machines, what comes out of them, and the clock.

use std::sync::atomic::Ordering;
use std::time::Duration;

use quiver_message::Message;
use quiver_role::attributes::{Answer, CentreEvent, CentreRecord, FetchCommand, FetchEvent, OfficeEvent};
use quiver_role::{Destination, Input, Machine, Output, Peer, Reason, Route, Via};

use super::{Flight, Node, S, World, name};

/// What any machine may be fed.
#[derive(Clone, Copy)]
enum Stimulus<'a> {
    Timeout,
    Connected(Peer, Route),
    Disconnected(Peer),
    Received(Peer, &'a [u8]),
}

impl<'a> Stimulus<'a> {
    fn input<C>(self) -> Input<'a, C> {
        match self {
            Self::Timeout => Input::Timeout,
            Self::Connected(peer, route) => Input::Connected { peer, route },
            Self::Disconnected(peer) => Input::Disconnected { peer },
            Self::Received(from, bytes) => Input::Received { from, via: Via::Peer, bytes },
        }
    }
}

impl World {
    pub(crate) fn connect(&mut self, drone: usize) {
        if self.centre.is_none() || self.handles.contains_key(&(Node::Centre, Node::Drone(drone))) {
            return;
        }
        for (at, of, route) in [
            (Node::Centre, Node::Drone(drone), Route::Inbound),
            (Node::Drone(drone), Node::Centre, Route::Kgc),
        ] {
            let peer = Peer(self.next_peer);
            self.next_peer += 1;
            self.handles.insert((at, of), peer);
            self.feed(at, Stimulus::Connected(peer, route));
        }
    }

    pub(crate) fn disconnect(&mut self, drone: usize) {
        for (at, of) in [(Node::Centre, Node::Drone(drone)), (Node::Drone(drone), Node::Centre)] {
            if let Some(peer) = self.handles.remove(&(at, of)) {
                self.feed(at, Stimulus::Disconnected(peer));
            }
        }
        self.queue.retain(|flight| flight.from != Node::Drone(drone) && flight.to != Node::Drone(drone));
    }

    fn feed(&mut self, node: Node, stimulus: Stimulus<'_>) {
        let now = self.now();
        match node {
            Node::Centre => {
                if let Some(centre) = &mut self.centre {
                    centre.handle_input(now, stimulus.input(), &mut self.rng);
                }
                self.drain_centre();
            }
            Node::Drone(drone) => {
                self.drones[drone].machine.handle_input(now, stimulus.input(), &mut self.rng);
                self.drain_drone(drone);
            }
        }
    }

    pub(super) fn drain_centre(&mut self) {
        while let Some(centre) = &mut self.centre {
            if self.doom == Some(0) {
                self.doom = None;
                return self.stop_centre();
            }
            let output = centre.poll_output();
            if let Some(doom) = self.doom.as_mut().filter(|_| !matches!(output, Output::Timeout(_))) {
                *doom -= 1;
            }
            match output {
                Output::Persist(record) => self.records.push(record),
                Output::Event(event) => self.events.push(event),
                Output::Transmit { to: Destination::Peer(peer), payload } => {
                    self.send(Node::Centre, peer, payload);
                }
                // What that brings is the driver's.
                Output::Penalize { .. } => {}
                Output::Transmit { .. } | Output::Block(_) | Output::Relay { .. } => {
                    unreachable!("a centre speaks to single peers")
                }
                Output::Timeout(_) => return,
            }
        }
    }

    fn drain_drone(&mut self, drone: usize) {
        loop {
            match self.drones[drone].machine.poll_output() {
                Output::Persist(never) => match never {},
                Output::Event(event) => self.heard(drone, event),
                Output::Transmit { to: Destination::Peer(peer), payload } => {
                    self.send(Node::Drone(drone), peer, payload);
                }
                Output::Transmit { .. }
                | Output::Block(_)
                | Output::Relay { .. }
                | Output::Penalize { .. } => unreachable!("a fetcher speaks to KGCs"),
                Output::Timeout(deadline) => return self.drones[drone].deadline = deadline,
            }
        }
    }

    /// What whoever runs a fetcher does.
    fn heard(&mut self, drone: usize, event: FetchEvent) {
        let node = &mut self.drones[drone];
        if let FetchEvent::Answered { authority, statement, answer } = &event {
            let entry = node.ring.entry(authority.clone()).or_default();
            entry.0.clone_from(statement);
            match answer {
                Answer::Withdrawn => entry.1 = None,
                Answer::Nothing | Answer::Held { .. } => {}
                Answer::Key { grant, key } => entry.1 = Some((*grant, key.to_vec())),
            }
        }
        node.events.push(event);
    }

    fn send(&mut self, from: Node, peer: Peer, bytes: Vec<u8>) {
        let to = self.handles.iter().find(|((at, _), known)| *at == from && **known == peer);
        let Some(((_, to), _)) = to else { return };
        let flight = Flight { from, to: *to, bytes };
        self.recorded.push(flight.clone());
        match &mut self.tamper {
            Some(tamper) => self.queue.extend(tamper(flight)),
            None => self.queue.push_back(flight),
        }
    }

    /// Gives bytes to a node as if `from` had sent them.
    pub(crate) fn inject(&mut self, from: Node, to: Node, bytes: &[u8]) {
        self.queue.push_back(Flight { from, to, bytes: bytes.to_vec() });
    }

    fn step(&mut self, end: Duration) -> bool {
        if let Some(flight) = self.queue.pop_front() {
            if let Some(from) = self.handles.get(&(flight.to, flight.from)).copied() {
                self.feed(flight.to, Stimulus::Received(from, &flight.bytes));
            }
            return true;
        }
        let due = self.drones.iter().enumerate().filter_map(|(drone, node)| Some((node.deadline?, drone)));
        match due.min() {
            Some((deadline, drone)) if deadline <= end => {
                self.clock = self.clock.max(deadline);
                self.feed(Node::Drone(drone), Stimulus::Timeout);
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

    /// Connects the drone, tells it to fetch and lets it, whatever comes of it.
    pub(crate) fn try_fetch(&mut self, drone: usize) {
        self.begin_fetch(drone);
        self.run(Duration::from_millis(1));
    }

    fn begin_fetch(&mut self, drone: usize) {
        self.connect(drone);
        if self.drones[drone].machine.is_idle() {
            let now = self.now();
            let machine = &mut self.drones[drone].machine;
            machine.handle_input(now, Input::Command(FetchCommand::Fetch), &mut self.rng);
            self.drain_drone(drone);
        }
    }

    /// Connects the drone and runs until it is through with all authorities.
    pub(crate) fn fetch(&mut self, drone: usize) {
        self.begin_fetch(drone);
        let end = self.clock + Duration::from_secs(300);
        while !self.drones[drone].machine.is_idle() {
            assert!(self.step(end), "drone {drone} is not through: {:?}", self.drones[drone].events);
        }
    }

    /// The key held of an authority.
    pub(crate) fn key(&self, drone: usize, authority: &str) -> Option<&[u8]> {
        let (_, key) = self.drones[drone].ring.get(&name(authority))?;
        key.as_ref().map(|(_, key)| key.as_slice())
    }

    /// How many keys the registry knows to be issued.
    pub(crate) fn issued(&self) -> usize {
        self.records.iter().filter(|record| matches!(record, CentreRecord::KeyIssued(_))).count()
    }

    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    pub(crate) fn refusals(&self, drone: usize) -> Vec<Reason> {
        let events = self.drones[drone].events.iter();
        let refusals = events.filter_map(|event| match event {
            FetchEvent::Refused(reason) => Some(*reason),
            _ => None,
        });
        refusals.collect()
    }

    pub(crate) fn office_events(&self) -> Vec<&OfficeEvent> {
        let events = self.events.iter().filter_map(|event| match event {
            CentreEvent::Office(event) => Some(event),
            _ => None,
        });
        events.collect()
    }

    /// The last message of this kind on its way, decoded.
    pub(crate) fn last(&self, from: Node, wanted: impl Fn(&Message<S>) -> bool) -> (Flight, Message<S>) {
        let decoded =
            self.recorded.iter().rev().filter(|flight| flight.from == from).map(|flight| {
                (flight.clone(), Message::<S>::decode(&self.deployment, &flight.bytes).unwrap())
            });
        decoded.into_iter().find(|(_, message)| wanted(message)).expect("such a message")
    }
}
