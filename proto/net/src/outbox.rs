//! Queues messages to single peers: bounded, in order, each with a deadline.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use libp2p::PeerId;
use libp2p::request_response::{Behaviour, OutboundRequestId};
use quiver_machine::Peer;
use tokio::time::Instant;

use crate::config::NodeConfig;
use crate::frame::{Frames, RequestFrame};
use crate::metrics::NetMetrics;
use crate::peers::{Partner, Peers};
use crate::unsent::Unsent;

/// Sends messages and keeps track of those not yet taken.
pub(crate) struct Outbox {
    in_flight: usize,
    queued: usize,
    patience: Duration,
    metrics: Arc<NetMetrics>,
    /// Deadlines in ascending order, as all messages have the same time to live. Entries outlive their
    /// messages.
    deadlines: VecDeque<(Instant, PeerId, OutboundRequestId)>,
    /// Bytes that wait for strangers, answers among them.
    pub(crate) unsent: Unsent,
}

impl Outbox {
    pub(crate) fn new(config: &NodeConfig, metrics: Arc<NetMetrics>) -> Self {
        Self {
            in_flight: config.limits.in_flight.max(1),
            queued: config.limits.queued.max(1),
            // As long as libp2p may take for the stream and then for the message. With less, the next message
            // could overtake one that is still on its way.
            patience: config.negotiation().saturating_add(config.request_timeout),
            metrics,
            deadlines: VecDeque::new(),
            unsent: Unsent::new(config.limits.unsent),
        }
    }

    /// Sends a message, now or in its turn. Returns false if it is dropped.
    pub(crate) fn send(
        &mut self,
        peers: &mut Peers,
        streams: &mut Behaviour<Frames>,
        to: Peer,
        frame: RequestFrame,
    ) -> bool {
        let Some(id) = peers.id(to) else {
            self.dropped(to, "it is gone");
            return false;
        };
        let Some(partner) = peers.partner(&id).filter(|partner| !partner.blocked) else {
            self.dropped(to, "it is blocked");
            return false;
        };
        // §16: room is taken before the message waits in the queue, because it takes memory there as well.
        if !self.unsent.take(&id, frame.message.len()) {
            self.dropped(to, "it has not proven who it is, and too much waits for it or others like it");
            return false;
        }
        partner.queue.push_back(frame);
        // The oldest goes, because epochs and answers supersede each other.
        if partner.queue.len() > self.queued
            && let Some(oldest) = partner.queue.pop_front()
        {
            self.unsent.give_back(&id, oldest.message.len());
            self.dropped(to, "too many messages wait for it");
        }
        self.pump(peers, streams, id);
        true
    }

    /// A message was taken, or will never be.
    pub(crate) fn finished(
        &mut self,
        peers: &mut Peers,
        streams: &mut Behaviour<Frames>,
        id: PeerId,
        request: OutboundRequestId,
    ) {
        if let Some(partner) = peers.partner(&id) {
            let unsent = &mut self.unsent;
            partner.in_flight.retain(|(other, bytes)| {
                if *other == request {
                    unsent.give_back(&id, *bytes);
                }
                *other != request
            });
            self.pump(peers, streams, id);
        }
    }

    /// Gives up on messages whose time is over, so that those behind them have their turn.
    pub(crate) fn expire(&mut self, peers: &mut Peers, streams: &mut Behaviour<Frames>, now: Instant) {
        while let Some(&(deadline, id, request)) = self.deadlines.front() {
            let is_waiting =
                |partner: &mut Partner| partner.in_flight.iter().any(|(other, _)| *other == request);
            let waiting = peers.partner(&id).is_some_and(is_waiting);
            // An entry of a message that was taken goes early, so that the node is not woken for it.
            if waiting && deadline > now {
                return;
            }
            self.deadlines.pop_front();
            if waiting {
                tracing::debug!(peer = %id, "a message was not taken in time");
                self.finished(peers, streams, id, request);
            }
        }
    }

    /// Time at which the next message expires.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.deadlines.front().map(|(deadline, ..)| *deadline)
    }

    fn pump(&mut self, peers: &mut Peers, streams: &mut Behaviour<Frames>, id: PeerId) {
        let Some(partner) = peers.partner(&id) else { return };
        // §16: streams that wait are few, so that messages of a peer keep their order and others their
        // memory.
        while partner.in_flight.len() < self.in_flight
            && let Some(frame) = partner.queue.pop_front()
        {
            let length = frame.message.len();
            self.metrics.sent(length, 1);
            let request = streams.send_request(&id, frame);
            partner.in_flight.push((request, length));
            self.deadlines.push_back((Instant::now() + self.patience, id, request));
        }
    }

    fn dropped(&self, to: Peer, reason: &str) {
        self.metrics.dropped.inc();
        tracing::debug!(peer = to.0, "a message was dropped: {reason}");
    }
}
