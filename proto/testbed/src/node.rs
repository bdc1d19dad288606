//! A simulated node: machine, disk, clock, random numbers and injected faults.

use std::sync::Arc;
use std::time::Duration;

use quiver_machine::{FinishedJob, Input, Machine, Now, Peer, Route, Via};

use crate::driver::{DrainEnd, OutputSink, drain};
use crate::{CompactRng, Disk, DiskState, EPOCH_START, Keep};

/// The shortest time between two wake-ups, in nanoseconds: a machine that asks for the past does not spin.
const SHORTEST: u64 = 1_000_000;
/// Pause before a driver tries a failed write again, in nanoseconds.
const RETRY_WRITE: u64 = 500_000_000;
/// No deadline.
pub const NEVER: u64 = u64::MAX;

/// Input of a node.
#[derive(Debug)]
pub enum Stimulus<C> {
    /// The machine was switched on: it may have outputs before its first input.
    Start,
    /// The machine's deadline came.
    Deadline,
    /// A connection stands.
    Connected(Peer, Route),
    /// A connection is gone.
    Disconnected(Peer),
    /// A message: the peer that delivered it, its way, its bytes.
    Received(Peer, Via, Arc<[u8]>),
    /// The machine may be a copy of what it was before.
    Resumed,
    /// The operator or the application wants something.
    Command(C),
}

/// The state of a node whose disk failed.
struct FaultState<M: Machine> {
    /// A record that the disk did not take, and the connections that came and went since.
    stalled: Option<M::Record>,
    backlog: Vec<Stimulus<M::Command>>,
}

/// A simulated node.
pub struct SimNode<M: Machine> {
    /// The machine, while the node is switched on.
    pub machine: Option<Box<M>>,
    /// Records that survive a crash.
    pub disk: Disk<M::Record>,
    /// Random numbers of the node, of this life.
    pub rng: CompactRng,
    /// Number of its starts.
    pub life: u32,
    /// Time at which the machine wants to be woken, in nanoseconds of virtual time.
    pub deadline: u64,
    /// Time at which it will be woken, if somebody plans that.
    pub wake: u64,
    /// Time at which its monotonic clock read zero.
    pub boot: u64,
    /// Seconds by which its wall clock is wrong.
    pub skew: i64,
    /// Number of outputs after which it crashes.
    pub crash_after: Option<u32>,
    faults: Option<Box<FaultState<M>>>,
}

/// Faults that can be injected into a node, whichever its machine.
#[derive(Debug)]
pub struct FaultInjection<'a> {
    /// See [`SimNode::crash_after`].
    pub crash_after: &'a mut Option<u32>,
    /// See [`SimNode::skew`].
    pub skew: &'a mut i64,
    /// State of its disk.
    pub disk: &'a mut DiskState,
}

impl<M: Machine> SimNode<M> {
    /// A node that is switched off and has these records.
    pub fn new(keep: Keep, records: Vec<M::Record>, rng: CompactRng) -> Self {
        Self {
            machine: None,
            disk: Disk::new(keep, records),
            rng,
            life: 0,
            deadline: NEVER,
            wake: NEVER,
            boot: 0,
            skew: 0,
            crash_after: None,
            faults: None,
        }
    }

    /// Returns true if the node is switched on.
    pub fn alive(&self) -> bool {
        self.machine.is_some()
    }

    /// Returns true if the disk holds it up.
    pub fn stalled(&self) -> bool {
        self.faults.is_some()
    }

    /// The faults that can be injected.
    pub fn fault_injection(&mut self) -> FaultInjection<'_> {
        FaultInjection {
            crash_after: &mut self.crash_after,
            skew: &mut self.skew,
            disk: &mut self.disk.state,
        }
    }

    /// Puts a machine in; the next thing to do is to feed it [`Stimulus::Start`].
    pub fn power_on(&mut self, now: u64, machine: M, rng: CompactRng) {
        self.machine = Some(Box::new(machine));
        self.rng = rng;
        self.life += 1;
        self.boot = now;
        self.crash_after = None;
        self.faults = None;
    }

    /// Switches it off: all that was not durable is gone.
    pub fn power_off(&mut self) {
        self.machine = None;
        self.deadline = NEVER;
        self.crash_after = None;
        self.faults = None;
    }

    /// Readings of its clocks.
    pub fn clock(&self, now: u64) -> Now {
        let unix = (EPOCH_START + now / 1_000_000_000).saturating_add_signed(self.skew);
        Now { monotonic: Duration::from_nanos(now.saturating_sub(self.boot)), unix }
    }

    /// Feeds the node and carries out what it wants. One that is switched off takes nothing.
    pub fn step(&mut self, now: u64, stimulus: Stimulus<M::Command>, sink: &mut impl OutputSink<M>) {
        if self.faults.is_some() {
            self.step_stalled(now, stimulus, sink);
        } else {
            self.step_running(now, stimulus, sink);
        }
    }

    /// Gives the machine what came of a job and carries out what it then wants. A node that takes no input
    /// loses it.
    pub fn finish_job(&mut self, now: u64, done: FinishedJob, sink: &mut impl OutputSink<M>) {
        let clock = self.clock(now);
        if let (Some(machine), None) = (&mut self.machine, &self.faults) {
            machine.finish_job(clock, done, &mut self.rng.wake());
            self.step_running(now, Stimulus::Start, sink);
        }
    }

    fn step_running(&mut self, now: u64, stimulus: Stimulus<M::Command>, sink: &mut impl OutputSink<M>) {
        let clock = self.clock(now);
        let Some(machine) = &mut self.machine else { return };
        let mut rng = self.rng.wake();
        match stimulus {
            Stimulus::Start => {}
            Stimulus::Deadline => machine.handle_input(clock, Input::Timeout, &mut rng),
            Stimulus::Connected(peer, route) => {
                machine.handle_input(clock, Input::Connected { peer, route }, &mut rng);
            }
            Stimulus::Disconnected(peer) => {
                machine.handle_input(clock, Input::Disconnected { peer }, &mut rng);
            }
            Stimulus::Received(from, via, bytes) => {
                machine.handle_input(clock, Input::Received { from, via, bytes: &bytes }, &mut rng);
            }
            Stimulus::Resumed => machine.handle_input(clock, Input::Resumed, &mut rng),
            Stimulus::Command(command) => {
                machine.handle_input(clock, Input::Command(command), &mut rng);
            }
        }
        drop(rng);
        let end = drain(&mut **machine, &mut self.disk, &mut self.crash_after, sink);
        self.settle(now, end);
    }

    fn settle(&mut self, now: u64, end: DrainEnd<M::Record>) {
        match end {
            DrainEnd::Rest(deadline) => self.deadline = self.virtual_time(now, deadline),
            DrainEnd::Crashed => self.power_off(),
            DrainEnd::Stalled(record) => {
                let faults = self
                    .faults
                    .get_or_insert_with(|| Box::new(FaultState { stalled: None, backlog: Vec::new() }));
                faults.stalled = Some(record);
                self.deadline = now + RETRY_WRITE;
            }
        }
    }

    /// A stalled node takes no input: messages and commands are lost on it, connections are told to it later.
    fn step_stalled(&mut self, now: u64, stimulus: Stimulus<M::Command>, sink: &mut impl OutputSink<M>) {
        let Some(mut faults) = self.faults.take() else { return };
        match stimulus {
            Stimulus::Connected(..) | Stimulus::Disconnected(_) => faults.backlog.push(stimulus),
            Stimulus::Deadline => return self.retry_write(now, faults, sink),
            Stimulus::Start | Stimulus::Received(..) | Stimulus::Resumed | Stimulus::Command(_) => {}
        }
        self.faults = Some(faults);
    }

    fn retry_write(&mut self, now: u64, mut faults: Box<FaultState<M>>, sink: &mut impl OutputSink<M>) {
        if let Some(record) = faults.stalled.take()
            && let Err(record) = sink.persist(&mut self.disk, record, true)
        {
            faults.stalled = Some(record);
            self.faults = Some(faults);
            self.deadline = now + RETRY_WRITE;
            return;
        }
        // The outputs from before the machine stalled, then the inputs it missed.
        self.step_running(now, Stimulus::Start, sink);
        let mut backlog = faults.backlog.into_iter();
        for missed in backlog.by_ref() {
            if !self.alive() {
                return;
            }
            self.step(now, missed, sink);
        }
    }

    fn virtual_time(&self, now: u64, deadline: Option<Duration>) -> u64 {
        let Some(deadline) = deadline else { return NEVER };
        let nanos = u64::try_from(deadline.as_nanos()).unwrap_or(NEVER);
        self.boot.saturating_add(nanos).max(now + SHORTEST)
    }
}
