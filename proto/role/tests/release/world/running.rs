//! The world in motion: what goes into machines, what comes out of them, and the clock.

use std::time::Duration;

use quiver_ibe::{Condition, IdentityKey};
use quiver_message::Message;
use quiver_role::release::{CollectCommand, CollectEvent, Shortfall, Verdict};
use quiver_role::{Destination, Input, Machine, Now, Output, Peer, Route, Via};

use super::{Flight, Node, PATIENCE, S, World};

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
    pub(crate) fn connect(&mut self, drone: usize, kgc: u16) {
        let (at_kgc, at_drone) = (Node::Kgc(kgc), Node::Drone(drone));
        if self.handles.contains_key(&(at_kgc, at_drone)) {
            return;
        }
        for (at, of, route) in [(at_kgc, at_drone, Route::Inbound), (at_drone, at_kgc, Route::Kgc)] {
            let peer = Peer(self.next_peer);
            self.next_peer += 1;
            self.handles.insert((at, of), peer);
            self.feed(at, Stimulus::Connected(peer, route));
        }
    }

    pub(crate) fn disconnect(&mut self, drone: usize, kgc: u16) {
        let (at_kgc, at_drone) = (Node::Kgc(kgc), Node::Drone(drone));
        for (at, of) in [(at_kgc, at_drone), (at_drone, at_kgc)] {
            if let Some(peer) = self.handles.remove(&(at, of)) {
                self.feed(at, Stimulus::Disconnected(peer));
            }
        }
        let between =
            |flight: &Flight| [flight.from, flight.to].iter().all(|at| [at_kgc, at_drone].contains(at));
        self.queue.retain(|flight| !between(flight));
    }

    fn feed(&mut self, node: Node, stimulus: Stimulus<'_>) {
        let now = self.now();
        match node {
            Node::Kgc(kgc) => {
                if let Some(centre) = self.kgcs.get_mut(&kgc) {
                    let unix = now.unix.saturating_add_signed(centre.skew);
                    centre.office.handle_input(Now { unix, ..now }, stimulus.input(), &mut self.rng);
                }
                self.drain_kgc(kgc);
            }
            Node::Drone(drone) => {
                self.drones[drone].machine.handle_input(now, stimulus.input(), &mut self.rng);
                self.drain_drone(drone);
            }
        }
    }

    pub(super) fn drain_kgc(&mut self, kgc: u16) {
        while let Some(centre) = self.kgcs.get_mut(&kgc) {
            match centre.office.poll_output() {
                Output::Persist(record) => centre.records.push(record),
                Output::Event(event) => centre.events.push(event),
                Output::Transmit { to: Destination::Peer(peer), payload } => {
                    self.send(Node::Kgc(kgc), peer, payload);
                }
                Output::Transmit { .. }
                | Output::Block(_)
                | Output::Relay { .. }
                | Output::Penalize { .. } => unreachable!("a KGC speaks to single peers"),
                Output::Timeout(_) => return,
            }
        }
    }

    fn drain_drone(&mut self, drone: usize) {
        loop {
            match self.drones[drone].machine.poll_output() {
                Output::Persist(never) => match never {},
                Output::Event(event) => self.drones[drone].events.push(event),
                Output::Transmit { to: Destination::Peer(peer), payload } => {
                    self.send(Node::Drone(drone), peer, payload);
                }
                Output::Transmit { .. }
                | Output::Block(_)
                | Output::Relay { .. }
                | Output::Penalize { .. } => unreachable!("a collector speaks to KGCs"),
                Output::Timeout(deadline) => return self.drones[drone].deadline = deadline,
            }
        }
    }

    fn send(&mut self, from: Node, peer: Peer, bytes: Vec<u8>) {
        let to = self.handles.iter().find(|((at, _), known)| *at == from && **known == peer);
        let Some(((_, to), _)) = to else { return };
        if matches!(from, Node::Kgc(kgc) if self.mute.contains(&kgc)) {
            return;
        }
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
            assert!(steps < 100_000, "the machines never come to rest");
        }
    }

    /// Tells the drone to collect a key, and does not wait for it.
    pub(crate) fn begin(
        &mut self,
        drone: usize,
        condition: Option<&Condition>,
        patience: Duration,
        wait: bool,
    ) {
        let now = self.now();
        let command = CollectCommand::Collect { condition: condition.cloned(), patience, wait };
        self.drones[drone].machine.handle_input(now, Input::Command(command), &mut self.rng);
        self.drain_drone(drone);
    }

    /// Runs until the drone has nothing more to do.
    pub(crate) fn finish(&mut self, drone: usize) {
        let end = self.clock + Duration::from_secs(100_000);
        let mut steps = 0;
        while !self.drones[drone].machine.is_idle() {
            steps += 1;
            assert!(self.step(end) && steps < 100_000, "not through: {:?}", self.drones[drone].events);
        }
    }

    /// Has the drone collect a key, whatever comes of it.
    pub(crate) fn collect(&mut self, drone: usize, condition: &Condition) -> Result<IdentityKey, Shortfall> {
        self.begin(drone, Some(condition), PATIENCE, false);
        self.finish(drone);
        self.outcome(drone, condition)
    }

    /// What came last of collecting a key.
    pub(crate) fn outcome(&self, drone: usize, wanted: &Condition) -> Result<IdentityKey, Shortfall> {
        let outcome = self.drones[drone].events.iter().rev().find_map(|event| match event {
            CollectEvent::Collected { condition, key } if condition == wanted => {
                Some(Ok(IdentityKey::clone(key)))
            }
            CollectEvent::NotCollected(shortfall) if shortfall.condition.as_ref() == Some(wanted) => {
                Some(Err(shortfall.clone()))
            }
            _ => None,
        });
        outcome.expect("an outcome")
    }

    /// Whether a key opens what was encrypted to the condition.
    pub(crate) fn opens(&mut self, key: &IdentityKey, condition: &Condition) -> bool {
        let point = quiver_ibe::IdentityPoint::of(condition);
        let sealed = self.authority.master().encrypt(&point, b"orders", &mut self.rng).unwrap();
        key.decrypt(&sealed).is_ok_and(|opened| *opened == b"orders")
    }

    /// Whom the drone named for wrong shares.
    pub(crate) fn culprits(&self, drone: usize) -> Vec<u16> {
        let culprits = self.drones[drone].events.iter().filter_map(|event| match event {
            CollectEvent::Culprit { kgc, .. } => Some(*kgc),
            _ => None,
        });
        culprits.collect()
    }

    /// How many shares all KGCs have released.
    pub(crate) fn released(&self) -> usize {
        self.kgcs.values().map(|centre| centre.records.len()).sum()
    }

    /// The last message of this kind on its way, decoded.
    pub(crate) fn last(&self, wanted: impl Fn(&Message<S>) -> bool) -> (Flight, Message<S>) {
        let decoded =
            self.recorded.iter().rev().map(|flight| {
                (flight.clone(), Message::<S>::decode(&self.deployment, &flight.bytes).unwrap())
            });
        decoded.into_iter().find(|(_, message)| wanted(message)).expect("such a message")
    }
}

/// The verdict of a KGC in a shortfall.
pub(crate) fn verdict(shortfall: &Shortfall, kgc: u16) -> Option<Verdict> {
    shortfall.verdicts.iter().find(|(known, _)| *known == Some(kgc)).map(|(_, verdict)| *verdict)
}
