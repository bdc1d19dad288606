//! All runs in virtual time: a queue of messages that take a while, a gate, and so many drones before it at a time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use cpu_time::ThreadTime;
use quiver_ainq::Suite;
use quiver_role::admission::Ledger;
use quiver_role::admission::gate::GateCommand;
use quiver_role::{Destination, Input, Machine, Now, Output, Peer, Route};
use rand_chacha::ChaCha8Rng;

use super::checkpoint::{Checkpoint, CheckpointError, RUNS};
use super::parties::{Guard, GuardEvent, Shown, Visit, Visitor, VisitorEvent};
use crate::Node;
use crate::fleet::EPOCH_START;
use crate::seeds::{self, Player, below};

/// Drones before the gate at a time.
pub const AT_ONCE: usize = 128;
/// The leader, as drones see it.
const LEADER: Peer = Peer(0);
/// How long a message takes, in nanoseconds: at least, and how much longer at most.
const SHORTEST: u64 = 5_000_000;
const LONGER: u64 = 45_000_000;

/// What came of all runs.
#[derive(Debug, Default)]
pub struct Passage {
    /// The runs, as the drones saw them, in the order in which they ended.
    pub visits: Vec<Visit>,
    /// When each ended, since all began; and how long it took.
    pub times: Vec<(Duration, Duration)>,
    /// Whom the leader let in.
    pub admitted: Vec<Shown>,
    /// Whom it did not.
    pub denied: usize,
    /// How often one side blamed the other.
    pub blamed: usize,
    /// Messages and their bytes, both ways.
    pub messages: u64,
    /// Bytes of all messages.
    pub bytes: u64,
    /// CPU time of the gate.
    pub gate_cpu: Duration,
    /// SHA-256 over all that was sent, in order, so that two passages can be compared.
    pub digest: [u8; 32],
}

/// Something that happens at a time. Of two at the same time, the one that was thought of first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: u64,
    number: u64,
    deed: Deed,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Deed {
    /// A message of the drone of this visit to the gate.
    Ask(u64, Vec<u8>),
    /// A message of the gate.
    Answer(u64, Vec<u8>),
    WakeGate,
    Wake(u64),
}

/// Somebody before the gate.
struct Guest<S: Suite> {
    drone: u32,
    run: u32,
    machine: Visitor<S>,
    rng: ChaCha8Rng,
    since: u64,
    /// When the last message of either direction arrives: none overtakes another.
    last: [u64; 2],
    /// When it is to be woken.
    wake: Option<u64>,
}

/// Lets these drones make all their runs, one after the other and so many drones at a time.
///
/// # Errors
/// [`CheckpointError`], never.
pub fn pass<S: Suite>(
    checkpoint: &Checkpoint<S>,
    drones: u32,
    seed: u64,
    progress: &mut dyn FnMut(u32),
) -> Result<Passage, CheckpointError> {
    let mut hour = Hour::new(checkpoint, seed)?;
    let all = (0..RUNS).flat_map(|run| (0..drones).map(move |drone| (drone, run)));
    for (drone, run) in all {
        while hour.guests.len() >= AT_ONCE || hour.is_before_the_gate(drone) {
            hour.step();
        }
        hour.arrive(drone, run)?;
        progress(u32::try_from(hour.passage.visits.len()).unwrap_or(u32::MAX));
    }
    while !hour.guests.is_empty() {
        hour.step();
        progress(u32::try_from(hour.passage.visits.len()).unwrap_or(u32::MAX));
    }
    hour.passage.digest = hour.hash.finalize();
    Ok(hour.passage)
}

/// All that goes on.
struct Hour<'c, S: Suite> {
    checkpoint: &'c Checkpoint<S>,
    seed: u64,
    now: u64,
    queue: BinaryHeap<Reverse<Due>>,
    numbers: u64,
    gate: Guard<S>,
    gate_rng: ChaCha8Rng,
    /// When the gate is to be woken.
    gate_wake: Option<u64>,
    network: ChaCha8Rng,
    guests: BTreeMap<u64, Guest<S>>,
    /// Connections so far: no two are known under the same handle.
    connections: u64,
    /// What each drone's disk has.
    ledgers: BTreeMap<u32, Ledger>,
    hash: Print,
    passage: Passage,
}

impl<'c, S: Suite> Hour<'c, S> {
    fn new(checkpoint: &'c Checkpoint<S>, seed: u64) -> Result<Self, CheckpointError> {
        let mut hour = Self {
            checkpoint,
            seed,
            now: 0,
            queue: BinaryHeap::new(),
            numbers: 0,
            gate: checkpoint.guard(EPOCH_START)?,
            gate_rng: seeds::generator(seed, Player::Node(Node::Leader(0), 0)),
            gate_wake: None,
            network: seeds::generator(seed, Player::Network),
            guests: BTreeMap::new(),
            connections: 0,
            ledgers: BTreeMap::new(),
            hash: Print::default(),
            passage: Passage::default(),
        };
        let keys = GateCommand::SlotKeys(checkpoint.slot_keys());
        hour.tell_gate(Input::Command(keys));
        Ok(hour)
    }

    fn clock(&self) -> Now {
        let monotonic = Duration::from_nanos(self.now);
        Now { monotonic, unix: EPOCH_START + monotonic.as_secs() }
    }

    fn plan(&mut self, at: u64, deed: Deed) {
        self.numbers += 1;
        self.queue.push(Reverse(Due { at, number: self.numbers, deed }));
    }

    fn is_before_the_gate(&self, drone: u32) -> bool {
        self.guests.values().any(|guest| guest.drone == drone)
    }

    /// A drone comes, over a connection that nobody had before.
    fn arrive(&mut self, drone: u32, run: u32) -> Result<(), CheckpointError> {
        self.connections += 1;
        let (id, ledger) = (self.connections, self.ledgers.get(&drone).cloned().unwrap_or_default());
        let guest = Guest {
            drone,
            run,
            machine: self.checkpoint.visitor(drone, ledger)?,
            rng: seeds::generator(self.seed, Player::Visitor(drone, run)),
            since: self.now,
            last: [0; 2],
            wake: None,
        };
        self.guests.insert(id, guest);
        self.tell_gate(Input::Connected { peer: Peer(id), route: Route::Inbound });
        self.tell(id, Input::Connected { peer: LEADER, route: Route::Leader });
        Ok(())
    }

    /// The next thing happens. If nothing is to happen, whoever is left has been forgotten: he is sent away.
    fn step(&mut self) {
        let Some(Reverse(due)) = self.queue.pop() else {
            self.now = self.now.saturating_add(1_000_000_000);
            for id in self.guests.keys().copied().collect::<Vec<_>>() {
                self.tell(id, Input::Disconnected { peer: LEADER });
                self.leave(id);
            }
            return;
        };
        self.now = self.now.max(due.at);
        match due.deed {
            Deed::Ask(id, bytes) => self.tell_gate(Input::Received { from: Peer(id), bytes: &bytes }),
            Deed::Answer(id, bytes) => self.tell(id, Input::Received { from: LEADER, bytes: &bytes }),
            Deed::WakeGate => {
                if self.gate_wake == Some(due.at) {
                    self.gate_wake = None;
                    self.tell_gate(Input::Timeout);
                }
            }
            Deed::Wake(id) => {
                let guest = self.guests.get_mut(&id).filter(|guest| guest.wake == Some(due.at));
                if let Some(guest) = guest {
                    guest.wake = None;
                    self.tell(id, Input::Timeout);
                }
            }
        }
    }

    fn tell_gate(&mut self, input: Input<'_, GateCommand>) {
        let (now, since) = (self.clock(), ThreadTime::now());
        self.gate.handle_input(now, input, &mut self.gate_rng);
        let mut outputs = Vec::new();
        let deadline = loop {
            match self.gate.poll_output() {
                Output::Timeout(deadline) => break deadline,
                output => outputs.push(output),
            }
        };
        self.passage.gate_cpu += since.elapsed();
        for output in outputs {
            match output {
                Output::Transmit { to: Destination::Peer(Peer(id)), payload } => self.send(id, payload, 1),
                Output::Event(GuardEvent::Admitted(shown)) => self.passage.admitted.push(shown),
                Output::Event(GuardEvent::Denied(_)) => self.passage.denied += 1,
                Output::Event(GuardEvent::Blamed(_)) => self.passage.blamed += 1,
                Output::Transmit { .. } | Output::Block(_) | Output::Timeout(_) => {}
                Output::Persist(never) => match never {},
            }
        }
        if let Some(at) = self.sooner(deadline, self.gate_wake) {
            self.gate_wake = Some(at);
            self.plan(at, Deed::WakeGate);
        }
    }

    /// Tells a guest something, if he is still there.
    fn tell(&mut self, id: u64, input: Input<'_, std::convert::Infallible>) {
        let now = self.clock();
        let Some(guest) = self.guests.get_mut(&id) else { return };
        guest.machine.handle_input(now, input, &mut guest.rng);
        let (mut over, mut said) = (None, Vec::new());
        let deadline = loop {
            match guest.machine.poll_output() {
                Output::Timeout(deadline) => break deadline,
                // Durable at once: nothing that follows leaves before.
                Output::Persist(ledger) => drop(self.ledgers.insert(guest.drone, ledger)),
                Output::Transmit { to: Destination::Peer(_), payload } => said.push(payload),
                Output::Event(VisitorEvent::Over(outcome, seen)) => over = Some((outcome, seen)),
                Output::Event(VisitorEvent::Blamed(_)) => self.passage.blamed += 1,
                Output::Transmit { .. } | Output::Block(_) => {}
            }
        };
        let (drone, run, since, planned) = (guest.drone, guest.run, guest.since, guest.wake);
        for payload in said {
            self.send(id, payload, 0);
        }
        if let Some((outcome, seen)) = over {
            self.passage.visits.push(Visit { drone, run, outcome, seen });
            let taken = Duration::from_nanos(self.now - since);
            self.passage.times.push((Duration::from_nanos(self.now), taken));
            return self.leave(id);
        }
        if let Some(at) = self.sooner(deadline, planned) {
            if let Some(guest) = self.guests.get_mut(&id) {
                guest.wake = Some(at);
            }
            self.plan(at, Deed::Wake(id));
        }
    }

    fn leave(&mut self, id: u64) {
        if self.guests.remove(&id).is_some() {
            self.tell_gate(Input::Disconnected { peer: Peer(id) });
        }
    }

    fn send(&mut self, id: u64, payload: Vec<u8>, direction: usize) {
        let delay = SHORTEST + below(&mut self.network, LONGER);
        let Some(last) = self.guests.get_mut(&id).and_then(|guest| guest.last.get_mut(direction)) else {
            return;
        };
        let at = (self.now + delay).max(*last);
        *last = at;
        self.passage.messages += 1;
        self.passage.bytes += payload.len() as u64;
        self.hash.update(at, id, direction, &payload);
        self.plan(at, if direction == 0 { Deed::Ask(id, payload) } else { Deed::Answer(id, payload) });
    }

    /// When somebody is to be woken, if that is sooner than was planned.
    fn sooner(&self, deadline: Option<Duration>, planned: Option<u64>) -> Option<u64> {
        // One that wants to be woken at once does not spin.
        let at = u64::try_from(deadline?.as_nanos()).unwrap_or(u64::MAX).max(self.now + 1_000);
        (planned.is_none_or(|planned| at < planned)).then_some(at)
    }
}

/// SHA-256 over what was sent.
#[derive(Default)]
struct Print(sha2::Sha256);

impl Print {
    fn update(&mut self, at: u64, id: u64, direction: usize, payload: &[u8]) {
        use sha2::Digest as _;
        for number in [at, id, direction as u64, payload.len() as u64] {
            self.0.update(number.to_be_bytes());
        }
        self.0.update(payload);
    }

    fn finalize(&mut self) -> [u8; 32] {
        use sha2::Digest as _;
        self.0.finalize_reset().into()
    }
}
