//! A node of a net: a simulated node, and what it reported.

use std::any::Any;
use std::convert::Infallible;
use std::fmt::Debug;

use quiver_machine::{FinishedJob, Machine, Now};

use crate::{CompactRng, Effects, FaultInjection, Outputs, SimNode, Stimulus};

/// Number of events shown when a test fails.
const SHOWN: usize = 6;

/// A node, and all that it reported so far.
pub struct TestNode<M: Machine> {
    pub(super) sim: SimNode<M>,
    /// Events of the machine, over all its lives.
    pub events: Vec<M::Event>,
}

impl<M: Machine> TestNode<M> {
    /// Machine of the node, if it is switched on.
    pub fn machine(&self) -> Option<&M> {
        self.sim.machine.as_deref()
    }

    /// Machine of the node, if it is switched on. Outputs are carried out after its next input.
    pub fn machine_mut(&mut self) -> Option<&mut M> {
        self.sim.machine.as_deref_mut()
    }

    /// Number of its starts.
    pub fn lives(&self) -> u32 {
        self.sim.life
    }

    /// Generator of its random numbers as it is now: its clones draw what the node is going to draw.
    pub fn generator(&self) -> CompactRng {
        self.sim.rng.clone()
    }

    /// Takes its machine away.
    pub fn take_machine(&mut self) -> Option<Box<M>> {
        self.sim.machine.take()
    }

    /// Puts another machine in the place of its own, if it is switched on.
    pub fn map_machine(&mut self, change: impl FnOnce(M) -> M) {
        self.sim.machine = self.sim.machine.take().map(|machine| Box::new(change(*machine)));
    }

    /// The next time it is started, it draws the random numbers that it drew last time.
    pub fn repeat_life(&mut self) {
        self.sim.life = self.sim.life.saturating_sub(1);
    }

    /// All that it made durable, the newest last.
    pub fn records(&self) -> &[M::Record] {
        &self.sim.disk.records
    }

    /// The same, to change it.
    pub fn records_mut(&mut self) -> &mut Vec<M::Record> {
        &mut self.sim.disk.records
    }

    pub(super) fn take(&mut self, now: u64, stimulus: Stimulus<M::Command>) -> Effects {
        self.collect(|sim, outputs| sim.step(now, stimulus, outputs))
    }

    fn collect(&mut self, step: impl FnOnce(&mut SimNode<M>, &mut Outputs<M>)) -> Effects {
        let mut outputs = Outputs::default();
        step(&mut self.sim, &mut outputs);
        if let Some(machine) = self.machine_mut() {
            outputs.take_jobs(machine);
        }
        self.events.append(&mut outputs.events);
        outputs.effects
    }
}

/// A node whichever its machine.
pub(super) trait AnyNode {
    fn feed(&mut self, now: u64, stimulus: Stimulus<Infallible>) -> Effects;
    fn finish_job(&mut self, now: u64, done: FinishedJob) -> Effects;
    fn power_off(&mut self);
    fn alive(&self) -> bool;
    fn deadline(&self) -> u64;
    fn clock(&self, now: u64) -> Now;
    fn faults(&mut self) -> FaultInjection<'_>;
    fn last_events(&self) -> String;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<M: Machine<Event: Debug> + 'static> AnyNode for TestNode<M> {
    fn feed(&mut self, now: u64, stimulus: Stimulus<Infallible>) -> Effects {
        let stimulus = match stimulus {
            Stimulus::Start => Stimulus::Start,
            Stimulus::Deadline => Stimulus::Deadline,
            Stimulus::Connected(peer, route) => Stimulus::Connected(peer, route),
            Stimulus::Disconnected(peer) => Stimulus::Disconnected(peer),
            Stimulus::Received(from, via, bytes) => Stimulus::Received(from, via, bytes),
            Stimulus::Resumed => Stimulus::Resumed,
            Stimulus::Command(never) => match never {},
        };
        self.take(now, stimulus)
    }

    fn finish_job(&mut self, now: u64, done: FinishedJob) -> Effects {
        self.collect(|sim, outputs| sim.finish_job(now, done, outputs))
    }

    fn power_off(&mut self) {
        self.sim.power_off();
    }

    fn alive(&self) -> bool {
        self.sim.alive()
    }

    fn deadline(&self) -> u64 {
        self.sim.deadline
    }

    fn clock(&self, now: u64) -> Now {
        self.sim.clock(now)
    }

    fn faults(&mut self) -> FaultInjection<'_> {
        self.sim.fault_injection()
    }

    fn last_events(&self) -> String {
        let last = self.events.len().saturating_sub(SHOWN);
        format!("{:?}", self.events.get(last..).unwrap_or_default())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
