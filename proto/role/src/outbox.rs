//! What a machine wants done, in order, until the driver polls it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Deployment, Suite};
use quiver_message::Message;

#[cfg(feature = "services")]
use crate::Misdeed;
use crate::{Destination, Output, Peer};

/// Whether a message may come by the group: others are for one peer, and who publishes them wants many to answer.
pub(crate) const fn is_publication<S: Suite>(message: &Message<S>) -> bool {
    match message {
        Message::Rekey(_)
        | Message::GroupMessage(_)
        | Message::EvictionNotice(_)
        | Message::RevocationList(_)
        | Message::EquivocationProof(_) => true,
        #[cfg(feature = "abe")]
        Message::Envelope(_) | Message::OpeningRequest(_) => true,
        _ => false,
    }
}

/// The queue behind `poll_output`.
#[derive(Debug)]
pub(crate) struct Outbox<E, R> {
    queue: VecDeque<Output<E, R>>,
}

impl<E, R> Outbox<E, R> {
    pub(crate) fn new() -> Self {
        Self { queue: VecDeque::new() }
    }

    pub(crate) fn persist(&mut self, record: R) {
        self.queue.push_back(Output::Persist(record));
    }

    pub(crate) fn send<S: Suite>(&mut self, deployment: &Deployment<S>, peer: Peer, message: &Message<S>) {
        self.transmit(Destination::Peer(peer), message.encode(deployment));
    }

    pub(crate) fn send_to_group<S: Suite>(&mut self, deployment: &Deployment<S>, message: &Message<S>) {
        self.transmit(Destination::Group, message.encode(deployment));
    }

    /// Sends a message that was encoded before.
    pub(crate) fn send_encoded(&mut self, peer: Peer, payload: Vec<u8>) {
        self.transmit(Destination::Peer(peer), payload);
    }

    pub(crate) fn send_encoded_to_group(&mut self, payload: Vec<u8>) {
        self.transmit(Destination::Group, payload);
    }

    fn transmit(&mut self, to: Destination, payload: Vec<u8>) {
        self.queue.push_back(Output::Transmit { to, payload });
    }

    pub(crate) fn event(&mut self, event: E) {
        self.queue.push_back(Output::Event(event));
    }

    #[cfg(feature = "services")]
    pub(crate) fn block(&mut self, peer: Peer) {
        self.queue.push_back(Output::Block(peer));
    }

    #[cfg(feature = "services")]
    pub(crate) fn relay(&mut self, peer: Peer, allowed: bool) {
        self.queue.push_back(Output::Relay { peer, allowed });
    }

    #[cfg(feature = "services")]
    pub(crate) fn penalize(&mut self, peer: Peer, misdeed: Misdeed) {
        self.queue.push_back(Output::Penalize { peer, misdeed });
    }

    /// The next output, or the deadline to wait for.
    pub(crate) fn poll(&mut self, deadline: Option<Duration>) -> Output<E, R> {
        if let Some(output) = self.queue.pop_front() {
            return output;
        }
        // A mass re-key leaves megabytes of capacity behind, and most drones have nothing to say most of the time.
        self.queue = VecDeque::new();
        Output::Timeout(deadline)
    }
}
