//! Drains a machine as its contract demands: every record is durable before what follows it is transmitted.

use std::time::Duration;

use quiver_machine::{Destination, Machine, Misdeed, Output, Peer};

use crate::Disk;

/// Receives what a machine wants done, in order.
pub trait OutputSink<M: Machine> {
    /// Makes a record durable. `retried` says that the disk refused it before.
    ///
    /// # Errors
    /// Gives the record back if the disk does not take it.
    fn persist(
        &mut self,
        disk: &mut Disk<M::Record>,
        record: M::Record,
        retried: bool,
    ) -> Result<(), M::Record>;

    /// Sends a message.
    fn transmit(&mut self, to: Destination, payload: Vec<u8>);

    /// Takes an event.
    fn report(&mut self, event: M::Event);

    /// Disconnects a peer for good.
    fn block(&mut self, peer: Peer);

    /// Disconnects a peer.
    fn disconnect(&mut self, peer: Peer);

    /// Disconnects a peer for a while.
    fn penalize(&mut self, peer: Peer, misdeed: Misdeed);

    /// Passes on a peer's group messages from now on, or no more.
    fn relay(&mut self, peer: Peer, allowed: bool);

    /// The machine rests or stalls: nothing more comes from it now.
    fn drained(&mut self, _disk: &mut Disk<M::Record>) {}

    /// The disk refused a record: the node takes no input until it takes it.
    fn stalled(&mut self) {}

    /// The node crashed before its next output.
    fn crashed(&mut self) {}
}

/// End of draining a machine.
#[derive(Debug)]
pub enum DrainEnd<R> {
    /// The machine rests, until then (on its own clock) if there is a time.
    Rest(Option<Duration>),
    /// The disk did not take this record.
    Stalled(R),
    /// The machine crashed, as was planned.
    Crashed,
}

/// Carries out what a machine wants, until it rests, stalls on its disk, or has made as many outputs as it
/// may before it crashes.
pub fn drain<M: Machine>(
    machine: &mut M,
    disk: &mut Disk<M::Record>,
    crash_after: &mut Option<u32>,
    sink: &mut impl OutputSink<M>,
) -> DrainEnd<M::Record> {
    let end = loop {
        let output = match machine.poll_output() {
            Output::Timeout(deadline) => break DrainEnd::Rest(deadline),
            output => output,
        };
        if let Some(left) = crash_after {
            if *left == 0 {
                sink.crashed();
                return DrainEnd::Crashed;
            }
            *left -= 1;
        }
        match output {
            Output::Persist(record) => {
                if let Err(record) = sink.persist(disk, record, false) {
                    sink.stalled();
                    break DrainEnd::Stalled(record);
                }
            }
            Output::Transmit { to, payload } => sink.transmit(to, payload),
            Output::Event(event) => sink.report(event),
            Output::Block(peer) => sink.block(peer),
            Output::Disconnect(peer) => sink.disconnect(peer),
            Output::Penalize { peer, misdeed } => sink.penalize(peer, misdeed),
            Output::Relay { peer, allowed } => sink.relay(peer, allowed),
            Output::Timeout(_) => {}
        }
    };
    sink.drained(disk);
    end
}
