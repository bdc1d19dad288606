//! Recorded inputs of a machine, and the harness that replays them.

use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_machine::{Input, MAX_MESSAGE_LEN, Machine, Now, Output, Peer, Route, Via};
use quiver_testbed::Outputs;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::CryptoRngCore;

use super::roles::{EventChecker, FuzzMachine};
use crate::scene::rng;

/// An input that owns its bytes.
#[derive(Clone, Debug)]
pub(crate) enum TraceInput<C> {
    Timeout,
    Connected(Peer, Route),
    Disconnected(Peer),
    Received(Peer, Via, Vec<u8>),
    Command(C),
}

/// Inputs and outputs of one machine in the honest run.
#[derive(Debug)]
pub(crate) struct Trace<M: FuzzMachine> {
    /// Seed of its random numbers.
    pub(crate) seed: u64,
    /// The group's re-key strategy.
    pub(crate) strategy: StrategyKind,
    pub(crate) steps: Vec<(Now, TraceInput<M::Command>)>,
    /// Number of steps up to each state of interest.
    pub(crate) marks: Vec<usize>,
    /// Records that it persisted.
    pub(crate) records: Vec<M::Record>,
}

impl<M: FuzzMachine> Trace<M> {
    /// The machine in the state of a mark.
    pub(crate) fn replay(&self, mark: usize) -> (Harness<M>, Now) {
        let mut harness = Harness::new(self.seed, self.strategy);
        let steps = &self.steps[..self.marks[mark]];
        for (now, step) in steps {
            harness.take(*now, step);
        }
        let start = Now { monotonic: Duration::from_secs(100), unix: crate::scene::START };
        (harness, steps.last().map_or(start, |(now, _)| *now))
    }
}

/// A machine with its random numbers, its disk and a checker of what must hold.
pub(crate) struct Harness<M: FuzzMachine> {
    pub(crate) machine: M,
    strategy: StrategyKind,
    rng: ChaCha20Rng,
    pub(crate) disk: Vec<M::Record>,
    pub(crate) checker: EventChecker,
    pub(crate) deadline: Option<Duration>,
}

impl<M: FuzzMachine> Harness<M> {
    pub(crate) fn new(seed: u64, strategy: StrategyKind) -> Self {
        let machine = M::restart(&[], strategy).expect("a fresh machine");
        Self::with(machine, seed, strategy)
    }

    pub(crate) fn with(machine: M, seed: u64, strategy: StrategyKind) -> Self {
        let mut harness = Self {
            machine,
            strategy,
            rng: rng(seed),
            disk: Vec::new(),
            checker: EventChecker::default(),
            deadline: None,
        };
        harness.drain();
        harness
    }

    /// Feeds one input and executes the machine's outputs.
    pub(crate) fn take(&mut self, now: Now, step: &TraceInput<M::Command>) {
        let input = match step {
            TraceInput::Timeout => Input::Timeout,
            TraceInput::Connected(peer, route) => Input::Connected { peer: *peer, route: *route },
            TraceInput::Disconnected(peer) => Input::Disconnected { peer: *peer },
            TraceInput::Received(from, via, bytes) => Input::Received { from: *from, via: *via, bytes },
            TraceInput::Command(command) => Input::Command(command.clone()),
        };
        self.machine.handle_input(now, input, &mut self.rng);
        self.drain();
    }

    fn drain(&mut self) {
        let outputs = Outputs::of(&mut self.machine);
        outputs.events.iter().for_each(|event| M::observe(&mut self.checker, event));
        for (_, payload) in outputs.effects.sent {
            assert!(payload.len() <= MAX_MESSAGE_LEN, "a message of {} bytes", payload.len());
        }
        self.disk.extend(outputs.records);
        self.deadline = outputs.deadline;
    }

    /// Advances time to the deadline, if it comes within a day, and checks that the machine then has no more
    /// to do.
    pub(crate) fn expire(&mut self, now: &mut Now) {
        let Some(deadline) = self.deadline else { return };
        if deadline > now.monotonic + Duration::from_secs(86_400) {
            return;
        }
        let passed = deadline.saturating_sub(now.monotonic);
        now.monotonic += passed;
        now.unix = now.unix.saturating_add(passed.as_secs());
        for _ in 0..100 {
            self.take(*now, &TraceInput::Timeout);
            if self.deadline.is_none_or(|deadline| deadline > now.monotonic) {
                return;
            }
        }
        panic!("the machine asks for the same timeout again and again");
    }

    /// Restarts the machine from its disk, as after a crash.
    pub(crate) fn restart(&mut self) {
        self.machine = M::restart(&self.disk, self.strategy).expect("what was persisted restores");
        self.machine.check();
        self.drain();
    }
}

/// A machine of the honest run whose inputs are recorded: with its random numbers, they determine its state.
pub(crate) struct Recorder<M: FuzzMachine> {
    pub(crate) machine: M,
    rng: ChaCha20Rng,
    pub(crate) checker: EventChecker,
    pub(crate) trace: Trace<M>,
}

impl<M: FuzzMachine> Recorder<M> {
    pub(crate) fn new(machine: M, seed: u64, strategy: StrategyKind) -> Self {
        let mut checker = EventChecker::default();
        checker.trusting = true;
        let trace = Trace { seed, strategy, steps: Vec::new(), marks: vec![0], records: Vec::new() };
        Self { machine, rng: rng(seed), checker, trace }
    }
}

impl<M: FuzzMachine> Machine for Recorder<M> {
    type Command = M::Command;
    type Event = M::Event;
    type Record = M::Record;

    fn handle_input(&mut self, now: Now, input: Input<'_, M::Command>, _: &mut dyn CryptoRngCore) {
        let step = match &input {
            Input::Timeout => TraceInput::Timeout,
            Input::Connected { peer, route } => TraceInput::Connected(*peer, *route),
            Input::Disconnected { peer } => TraceInput::Disconnected(*peer),
            Input::Received { from, via, bytes } => TraceInput::Received(*from, *via, bytes.to_vec()),
            Input::Command(command) => TraceInput::Command(command.clone()),
            Input::Resumed => panic!("nobody makes a copy of it"),
        };
        self.trace.steps.push((now, step));
        self.machine.handle_input(now, input, &mut self.rng);
    }

    fn poll_output(&mut self) -> Output<M::Event, M::Record> {
        let output = self.machine.poll_output();
        if let Output::Event(event) = &output {
            M::observe(&mut self.checker, event);
        }
        output
    }
}
