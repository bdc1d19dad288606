//! A simulated node: machine, disk, clock, random numbers and injected faults.

use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;
use quiver_role::{Input, Machine, Now, Peer, Route, Via};

use crate::disk::{Disk, Keep, Stored};
use crate::driver::{Drain, DrainEnd, Sabotage, StepOutcome};
use crate::fleet::EPOCH_START;
use crate::rng_stream::CompactRng;
use crate::{DiskState, Effect, NodeEvent};

/// The shortest time between two wake-ups: a machine that asks for the past does not spin.
const SHORTEST: u64 = 1_000_000;
/// How soon a driver tries a failed write again.
const RETRY_WRITE: u64 = 500_000_000;
/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

/// What a node is fed.
#[derive(Debug)]
pub(crate) enum Stimulus<C> {
    Start,
    Deadline,
    Connected(Peer, Route),
    Disconnected(Peer),
    /// Who handed the message over, whether it came by the group, and the message.
    Received(Peer, bool, Arc<[u8]>),
    Command(C),
}

/// The state of a node whose disk failed.
struct FaultState<M: Machine> {
    /// A record that the disk did not take, and the connections that came and went since.
    stalled: Option<M::Record>,
    backlog: Vec<Stimulus<M::Command>>,
}

/// A simulated node.
pub(crate) struct SimNode<M: Machine> {
    pub(crate) machine: Option<Box<M>>,
    pub(crate) disk: Disk<M::Record>,
    pub(crate) rng: CompactRng,
    /// How often it was started.
    pub(crate) life: u32,
    /// Nanoseconds of the world: when it wants to be woken, and when it will be.
    pub(crate) deadline: u64,
    pub(crate) wake: u64,
    /// When its monotonic clock read zero.
    pub(crate) boot: u64,
    /// Seconds by which its wall clock is wrong.
    pub(crate) skew: i64,
    /// It dies after so many more outputs.
    pub(crate) crash_after: Option<u32>,
    faults: Option<Box<FaultState<M>>>,
}

/// Faults that can be injected into a node.
pub(crate) struct FaultInjection<'a> {
    pub(crate) crash_after: &'a mut Option<u32>,
    pub(crate) skew: &'a mut i64,
    pub(crate) disk: &'a mut DiskState,
}

/// How a step is taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepOptions {
    pub(crate) sabotage: Sabotage,
    /// Whether to measure the CPU time.
    pub(crate) metered: bool,
}

impl<M: Machine> SimNode<M>
where
    M::Record: Stored,
    NodeEvent: From<M::Event>,
{
    pub(crate) fn new(keep: Keep, records: Vec<M::Record>, rng: CompactRng) -> Self {
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

    pub(crate) fn alive(&self) -> bool {
        self.machine.is_some()
    }

    pub(crate) fn fault_injection(&mut self) -> FaultInjection<'_> {
        FaultInjection {
            crash_after: &mut self.crash_after,
            skew: &mut self.skew,
            disk: &mut self.disk.state,
        }
    }

    /// Puts a machine in; the next thing to do is to feed it [`Stimulus::Start`].
    pub(crate) fn power_on(&mut self, now: u64, machine: M, rng: CompactRng) {
        self.machine = Some(Box::new(machine));
        self.rng = rng;
        self.life += 1;
        self.boot = now;
        self.crash_after = None;
        self.faults = None;
    }

    /// All that was not durable is gone.
    pub(crate) fn power_off(&mut self) {
        self.machine = None;
        self.deadline = NEVER;
        self.crash_after = None;
        self.faults = None;
    }

    /// What its clocks say.
    pub(crate) fn clock(&self, now: u64) -> Now {
        let unix = (EPOCH_START + now / 1_000_000_000).saturating_add_signed(self.skew);
        Now { monotonic: Duration::from_nanos(now.saturating_sub(self.boot)), unix }
    }

    /// Feeds the node and carries out what it wants. Returns the CPU time, if it is metered.
    pub(crate) fn step(
        &mut self,
        now: u64,
        stimulus: Stimulus<M::Command>,
        options: StepOptions,
        outcome: &mut StepOutcome,
    ) -> Duration {
        let start = options.metered.then(ThreadTime::now);
        if self.faults.is_some() {
            self.step_stalled(now, stimulus, options, outcome);
        } else {
            self.step_running(now, stimulus, options, outcome);
        }
        start.map(|start| start.elapsed()).unwrap_or_default()
    }

    fn step_running(
        &mut self,
        now: u64,
        stimulus: Stimulus<M::Command>,
        options: StepOptions,
        outcome: &mut StepOutcome,
    ) {
        let clock = self.clock(now);
        let Some(machine) = &mut self.machine else { return };
        let mut drain = Drain {
            machine: &mut **machine,
            disk: &mut self.disk,
            crash_after: &mut self.crash_after,
            sabotage: options.sabotage,
            outcome,
        };
        let mut rng = self.rng.wake();
        let ending = match stimulus {
            // A machine may have outputs before its first input.
            Stimulus::Start => drain.drain(),
            Stimulus::Deadline => drain.feed(clock, Input::Timeout, &mut rng),
            Stimulus::Connected(peer, route) => drain.feed(clock, Input::Connected { peer, route }, &mut rng),
            Stimulus::Disconnected(peer) => drain.feed(clock, Input::Disconnected { peer }, &mut rng),
            Stimulus::Received(from, by_group, bytes) => {
                let told = by_group && options.sabotage != Sabotage::HideGroup;
                let via = if told { Via::Group } else { Via::Peer };
                drain.feed(clock, Input::Received { from, via, bytes: &bytes }, &mut rng)
            }
            Stimulus::Command(command) => drain.feed(clock, Input::Command(command), &mut rng),
        };
        drop(rng);
        self.settle(now, ending);
    }

    fn settle(&mut self, now: u64, ending: DrainEnd<M::Record>) {
        match ending {
            DrainEnd::Rest(deadline) => self.deadline = self.world_time(now, deadline),
            DrainEnd::Died => self.power_off(),
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
    fn step_stalled(
        &mut self,
        now: u64,
        stimulus: Stimulus<M::Command>,
        options: StepOptions,
        outcome: &mut StepOutcome,
    ) {
        let Some(mut faults) = self.faults.take() else { return };
        match stimulus {
            Stimulus::Connected(..) | Stimulus::Disconnected(_) => faults.backlog.push(stimulus),
            Stimulus::Deadline => {
                return self.retry_write(now, faults, options, outcome);
            }
            Stimulus::Start | Stimulus::Received(..) | Stimulus::Command(_) => {}
        }
        self.faults = Some(faults);
    }

    fn retry_write(
        &mut self,
        now: u64,
        mut faults: Box<FaultState<M>>,
        options: StepOptions,
        outcome: &mut StepOutcome,
    ) {
        if let Some(record) = faults.stalled.take() {
            let bytes = record.bytes();
            if let Err(record) = self.disk.write(record) {
                faults.stalled = Some(record);
                self.faults = Some(faults);
                self.deadline = now + RETRY_WRITE;
                return;
            }
            outcome.effects.push(Effect::Persisted { bytes });
        }
        // What the machine wanted before it stalled, then what it missed.
        self.step_running(now, Stimulus::Start, options, outcome);
        let mut backlog = faults.backlog.into_iter();
        for missed in backlog.by_ref() {
            if !self.alive() {
                return;
            }
            self.step(now, missed, options, outcome);
        }
    }

    fn world_time(&self, now: u64, deadline: Option<Duration>) -> u64 {
        let Some(deadline) = deadline else { return NEVER };
        let nanos = u64::try_from(deadline.as_nanos()).unwrap_or(NEVER);
        self.boot.saturating_add(nanos).max(now + SHORTEST)
    }

    /// Whether the disk holds it up.
    pub(crate) fn stalled(&self) -> bool {
        self.faults.is_some()
    }
}
