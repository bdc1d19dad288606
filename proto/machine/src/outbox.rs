//! Queue of a machine's outputs, in order, until the driver polls them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Deployment, Suite};
use quiver_message::Message;

use crate::{Destination, Misdeed, Output, Peer};

/// The queue behind `poll_output`.
#[derive(Debug)]
pub struct Outbox<E, R> {
    queue: VecDeque<Output<E, R>>,
}

impl<E, R> Default for Outbox<E, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E, R> Outbox<E, R> {
    /// An empty queue.
    pub fn new() -> Self {
        Self { queue: VecDeque::new() }
    }

    /// Makes this record durable before what follows is transmitted.
    pub fn persist(&mut self, record: R) {
        self.queue.push_back(Output::Persist(record));
    }

    /// Encodes a message and sends it to one peer.
    pub fn send<S: Suite>(&mut self, deployment: &Deployment<S>, peer: Peer, message: &Message<S>) {
        self.transmit(Destination::Peer(peer), message.encode(deployment));
    }

    /// Encodes a message and publishes it to the group.
    pub fn send_to_group<S: Suite>(&mut self, deployment: &Deployment<S>, message: &Message<S>) {
        self.transmit(Destination::Group, message.encode(deployment));
    }

    /// Sends a message that was encoded before.
    pub fn send_encoded(&mut self, peer: Peer, payload: Vec<u8>) {
        self.transmit(Destination::Peer(peer), payload);
    }

    /// Publishes a message that was encoded before.
    pub fn send_encoded_to_group(&mut self, payload: Vec<u8>) {
        self.transmit(Destination::Group, payload);
    }

    fn transmit(&mut self, to: Destination, payload: Vec<u8>) {
        self.queue.push_back(Output::Transmit { to, payload });
    }

    /// Reports an event.
    pub fn event(&mut self, event: E) {
        self.queue.push_back(Output::Event(event));
    }

    /// Disconnects a peer for good.
    pub fn block(&mut self, peer: Peer) {
        self.queue.push_back(Output::Block(peer));
    }

    /// Disconnects a peer, which may come again.
    pub fn disconnect(&mut self, peer: Peer) {
        self.queue.push_back(Output::Disconnect(peer));
    }

    /// Sets whether a hub relays the group messages of this peer.
    pub fn relay(&mut self, peer: Peer, allowed: bool) {
        self.queue.push_back(Output::Relay { peer, allowed });
    }

    /// Disconnects a peer and refuses it for a while.
    pub fn penalize(&mut self, peer: Peer, misdeed: Misdeed) {
        self.queue.push_back(Output::Penalize { peer, misdeed });
    }

    /// Appends the outputs of another outbox, converted by `event` and `record`.
    pub(crate) fn append<F, Q>(&mut self, other: Outbox<F, Q>, event: fn(F) -> E, record: fn(Q) -> R) {
        self.queue.extend(other.queue.into_iter().map(|output| output.map(event, record)));
    }

    /// The next output, or the deadline to wait for.
    pub fn poll(&mut self, deadline: Option<Duration>) -> Output<E, R> {
        if let Some(output) = self.queue.pop_front() {
            return output;
        }
        // A mass re-key leaves megabytes of capacity behind, and most drones have nothing to say most of the
        // time.
        self.queue = VecDeque::new();
        Output::Timeout(deadline)
    }
}
