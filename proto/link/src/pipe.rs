//! Messages over datagrams within one session: in order, whole, at most once, or given up.

mod assembly;
mod receiver;
mod retransmission_timer;
mod sender;
mod transfer;

use alloc::vec::Vec;
use core::time::Duration;

use crate::datagram::Datagram;
use crate::limits::{EndpointLimits, PipeCounters};
use receiver::PipeReceiver;
use sender::PipeSender;
pub(crate) use sender::{Outgoing, PeerLimits};

/// Sender and receiver of a session, for both directions.
#[derive(Debug)]
pub(crate) struct Pipe {
    session: u32,
    sender: PipeSender,
    receiver: PipeReceiver,
}

/// A message without which the session makes no sense was not taken by the other side, or several in a row
/// were not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl Pipe {
    pub(crate) fn new(session: u32, limits: EndpointLimits, peer: PeerLimits) -> Self {
        Self {
            session,
            sender: PipeSender::new(limits, peer),
            receiver: PipeReceiver::new(session, limits.max_message),
        }
    }

    pub(crate) fn session(&self) -> u32 {
        self.session
    }

    /// Takes a message to be sent.
    pub(crate) fn send(&mut self, message: Outgoing, counters: &mut PipeCounters) -> Result<(), Broken> {
        self.sender.push(message, counters)
    }

    /// The longest encoded message the other side takes, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.sender.longest()
    }

    /// Takes a datagram of this session; a message if it completes one.
    pub(crate) fn handle(
        &mut self,
        now: Duration,
        datagram: &Datagram<'_>,
        counters: &mut PipeCounters,
    ) -> Option<Vec<u8>> {
        match datagram {
            // Each end sends and receives: fragments are for the receiver, acknowledgements for the sender.
            Datagram::Fragment { fragment, .. } => return self.receiver.handle(fragment, counters),
            Datagram::Have { id, bitmap, .. } => self.sender.handle_have(now, *id, bitmap, counters),
            Datagram::Done { id, checksum, .. } => self.sender.handle_done(now, *id, *checksum, counters),
            _ => {}
        }
        None
    }

    pub(crate) fn handle_timeout(
        &mut self,
        now: Duration,
        counters: &mut PipeCounters,
    ) -> Result<(), Broken> {
        self.sender.handle_timeout(now, counters)
    }

    pub(crate) fn poll(&mut self, now: Duration, counters: &mut PipeCounters) -> Option<Vec<u8>> {
        // Acknowledgements first: without them the other side repeats.
        self.receiver.poll().or_else(|| self.sender.poll(now, self.session, counters))
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.sender.timeout()
    }

    /// Number of messages that are lost if the session ends now.
    pub(crate) fn unsent(&self) -> u64 {
        self.sender.unsent()
    }
}
