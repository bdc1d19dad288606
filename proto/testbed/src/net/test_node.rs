//! A node of a net: a simulated node, and what it reported.

use std::any::Any;
use std::convert::Infallible;
use std::fmt::Debug;

use quiver_machine::{Destination, Machine, Misdeed, Now, Peer};

use crate::{Disk, FaultInjection, OutputSink, SimNode, Stimulus};

/// How many events are shown when a test fails.
const SHOWN: usize = 6;

/// A node, and all that it reported so far.
pub struct TestNode<M: Machine> {
    pub(super) sim: SimNode<M>,
    /// What it reported, over all its lives.
    pub events: Vec<M::Event>,
}

impl<M: Machine> TestNode<M> {
    /// Its machine, if it is switched on.
    pub fn machine(&self) -> Option<&M> {
        self.sim.machine.as_deref()
    }

    /// Its machine, if it is switched on. Outputs are carried out after its next input.
    pub fn machine_mut(&mut self) -> Option<&mut M> {
        self.sim.machine.as_deref_mut()
    }

    /// How often it was started.
    pub fn lives(&self) -> u32 {
        self.sim.life
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

    pub(super) fn take(&mut self, now: u64, stimulus: Stimulus<M::Command>) -> StepEffects {
        let mut collected = Collected::<M> { effects: StepEffects::default(), events: &mut self.events };
        self.sim.step(now, stimulus, &mut collected);
        collected.effects
    }
}

/// What a step wants of the net.
#[derive(Debug, Default)]
pub(super) struct StepEffects {
    pub(super) sent: Vec<(Destination, Vec<u8>)>,
    pub(super) blocked: Vec<Peer>,
    pub(super) penalized: Vec<(Peer, Misdeed)>,
    pub(super) crashed: bool,
}

struct Collected<'a, M: Machine> {
    effects: StepEffects,
    events: &'a mut Vec<M::Event>,
}

impl<M: Machine> OutputSink<M> for Collected<'_, M> {
    fn persist(&mut self, disk: &mut Disk<M::Record>, record: M::Record, _: bool) -> Result<(), M::Record> {
        disk.write(record)
    }

    fn transmit(&mut self, to: Destination, payload: Vec<u8>) {
        self.effects.sent.push((to, payload));
    }

    fn report(&mut self, event: M::Event) {
        self.events.push(event);
    }

    fn block(&mut self, peer: Peer) {
        self.effects.blocked.push(peer);
    }

    fn penalize(&mut self, peer: Peer, misdeed: Misdeed) {
        self.effects.penalized.push((peer, misdeed));
    }

    fn relay(&mut self, _: Peer, _: bool) {}

    fn crashed(&mut self) {
        self.effects.crashed = true;
    }
}

/// A node whichever its machine.
pub(super) trait AnyNode {
    fn feed(&mut self, now: u64, stimulus: Stimulus<Infallible>) -> StepEffects;
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
    fn feed(&mut self, now: u64, stimulus: Stimulus<Infallible>) -> StepEffects {
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
