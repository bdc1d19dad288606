//! Outputs of a machine at one step, by kind.

use std::time::Duration;

use quiver_machine::{Destination, Job, Machine, Misdeed, Peer};

use crate::driver::{DrainEnd, OutputSink, drain};
use crate::{Disk, Keep};

/// More outputs than any one input may cause.
const MAX_OUTPUTS: u32 = 100_000;

/// Outputs of a machine for its driver; in order within each kind.
#[derive(Debug, Default)]
pub struct Effects {
    /// Messages, and for whom they are.
    pub sent: Vec<(Destination, Vec<u8>)>,
    /// Peers to disconnect for good.
    pub blocked: Vec<Peer>,
    /// Peers to disconnect.
    pub disconnected: Vec<Peer>,
    /// Peers to disconnect for a while, and the reason.
    pub penalized: Vec<(Peer, Misdeed)>,
    /// Peers whose group messages are relayed from now on, or no more, and the number of messages sent before.
    pub relayed: Vec<(Peer, bool, usize)>,
    /// Work to be done elsewhere.
    pub jobs: Vec<Job>,
    pub(crate) crashed: bool,
    count: u32,
}

/// All that a machine wants at once.
#[derive(Debug)]
pub struct Outputs<M: Machine> {
    /// Records to make durable.
    pub records: Vec<M::Record>,
    /// Events reported.
    pub events: Vec<M::Event>,
    /// Outputs for its driver.
    pub effects: Effects,
    /// Time at which the machine wants to be woken.
    pub deadline: Option<Duration>,
}

impl<M: Machine> Default for Outputs<M> {
    fn default() -> Self {
        Self { records: Vec::new(), events: Vec::new(), effects: Effects::default(), deadline: None }
    }
}

impl<M: Machine> Outputs<M> {
    /// Takes all outputs of a machine that a test drives by hand.
    ///
    /// # Panics
    /// If they do not end.
    pub fn of(machine: &mut M) -> Self {
        let (mut outputs, mut disk) = (Self::default(), Disk::new(Keep::All, Vec::new()));
        if let DrainEnd::Rest(deadline) = drain(machine, &mut disk, &mut None, &mut outputs) {
            outputs.deadline = deadline;
        }
        outputs.records = disk.records;
        outputs.take_jobs(machine);
        outputs
    }

    pub(crate) fn take_jobs(&mut self, machine: &mut M) {
        self.effects.jobs.extend(std::iter::from_fn(|| machine.take_job()));
    }

    fn count(&mut self) -> &mut Effects {
        self.effects.count += 1;
        assert!(self.effects.count < MAX_OUTPUTS, "the outputs of one input do not end");
        &mut self.effects
    }
}

impl<M: Machine> OutputSink<M> for Outputs<M> {
    fn persist(&mut self, disk: &mut Disk<M::Record>, record: M::Record, _: bool) -> Result<(), M::Record> {
        self.count();
        disk.write(record)
    }

    fn transmit(&mut self, to: Destination, payload: Vec<u8>) {
        self.count().sent.push((to, payload));
    }

    fn report(&mut self, event: M::Event) {
        self.count();
        self.events.push(event);
    }

    fn block(&mut self, peer: Peer) {
        self.count().blocked.push(peer);
    }

    fn disconnect(&mut self, peer: Peer) {
        self.count().disconnected.push(peer);
    }

    fn penalize(&mut self, peer: Peer, misdeed: Misdeed) {
        self.count().penalized.push((peer, misdeed));
    }

    fn relay(&mut self, peer: Peer, allowed: bool) {
        let effects = self.count();
        effects.relayed.push((peer, allowed, effects.sent.len()));
    }

    fn crashed(&mut self) {
        self.effects.crashed = true;
    }
}
