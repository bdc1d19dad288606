//! Handles the swarm's events.

use std::error::Error;

use libp2p::core::ConnectedPoint;
use libp2p::request_response::{self, Message, OutboundRequestId};
use libp2p::swarm::{ConnectionError, ConnectionId, SwarmEvent};
use libp2p::{Multiaddr, PeerId, gossipsub, identify, ping};
use quiver_machine::{Misdeed, Route, Via};
use tokio::time::Instant;

use super::{AnswerChannel, ClockAnswer, ClockQuestion, DriverNetwork, Incoming, MAX_ASTRAY};
use crate::addresses::Prefix;
use crate::behaviour::{NONCE_LEN, NodeEvent};
use crate::clock_sync::{self, ClockReply};
use crate::config::Tuning;
use crate::dial::readable;
use crate::error::NetError;
use crate::frame::RequestFrame;
use crate::group_gate::{GateEvent, is_well_formed};
use crate::peers::Arrived;
use crate::request::RequestId;

impl DriverNetwork {
    pub(super) fn on_event(&mut self, event: SwarmEvent<NodeEvent>) -> Result<(), NetError> {
        match event {
            SwarmEvent::Behaviour(event) => self.on_node_event(event),
            SwarmEvent::ConnectionEstablished {
                peer_id, connection_id, num_established, endpoint, ..
            } => {
                let place = readable(endpoint.get_remote_address());
                self.on_opened(peer_id, connection_id, num_established.get(), &place);
                if let ConnectedPoint::Listener { send_back_addr, .. } = endpoint
                    && let Some(source) = Prefix::of(&send_back_addr)
                {
                    self.peers.came_from(&peer_id, source);
                }
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, num_established, cause, .. } => {
                self.on_closed(peer_id, connection_id, num_established, cause);
            }
            SwarmEvent::OutgoingConnectionError { connection_id, error, .. } => {
                let ours = self.dialler.lost(connection_id, Instant::now(), &ErrorChain(&error));
                self.metrics.dial_failures.inc_by(ours.into());
            }
            SwarmEvent::IncomingConnectionError { send_back_addr, error, .. } => {
                tracing::debug!(from = %send_back_addr, "a connection was not set up: {}", ErrorChain(&error));
            }
            SwarmEvent::NewListenAddr { address, .. } => {
                self.incoming.push_back(Incoming::Listening { address });
            }
            SwarmEvent::ListenerError { error, .. } => tracing::warn!("a listener cannot accept: {error}"),
            SwarmEvent::ListenerClosed { addresses, reason: Err(source), .. } => {
                return Err(NetError::ListenerClosed { addresses: list(&addresses), source });
            }
            _ => {}
        }
        Ok(())
    }

    fn on_opened(&mut self, id: PeerId, connection: ConnectionId, established: u32, place: &str) {
        self.metrics.connections_opened.inc();
        let dialled = self.dialler.established(connection, Instant::now());
        // The transport has authenticated the identity; members are known by it, whoever dialled.
        let route = match self.members.get(&id) {
            Some(kgc) => {
                // libp2p keeps this limit for everybody else.
                if established > self.limits.per_peer {
                    self.swarm.close_connection(connection);
                }
                Route::Member(*kgc)
            }
            // The peer's identity decides the route, not the address at which it was found.
            None if self.relays.contains(&id) => Route::Relay,
            None => dialled.filter(|route| !matches!(route, Route::Member(_))).unwrap_or(Route::Inbound),
        };
        self.poll.connected(id, route, Instant::now());
        self.duplicates.poll.connected(route, Instant::now());
        let arrived = self.peers.arrived(id, route);
        // Also one that was a stranger until this node dialled it.
        if self.swarm.behaviour_mut().places.is_proven(&id) {
            self.outbox.unsent.remove(&id);
        }
        let peer = match arrived {
            Arrived::New(peer) => peer,
            Arrived::Better { old, new } => {
                self.incoming.push_back(Incoming::Disconnected { peer: old });
                // The machine knows nothing of the new handle yet.
                self.set_relayed(new, false, None);
                new
            }
            // One handle for all connections of a peer.
            Arrived::Again => return,
        };
        self.peers.set_place(&id, place);
        let behaviour = self.swarm.behaviour_mut();
        if !behaviour.places.is_proven(&id) {
            self.outbox.unsent.add(id);
        } else if let Some(group) = behaviour.group.as_mut() {
            group.know(&id);
        }
        self.incoming.push_back(Incoming::Connected { peer, route, place: place.into() });
    }

    fn on_closed(
        &mut self,
        id: PeerId,
        connection: ConnectionId,
        remaining: u32,
        cause: Option<ConnectionError>,
    ) {
        self.metrics.connections_closed.inc();
        // The node closed it itself: the cause that libp2p gives says less.
        let objection = self.objections.remove(&connection);
        let told = cause.map_or_else(|| "closed".to_owned(), |cause| ErrorChain(&cause).to_string());
        let reason = objection.unwrap_or(told);
        self.dialler.lost(connection, Instant::now(), &reason);
        if remaining == 0
            && let Some(partner) = self.peers.left(&id)
        {
            if self.poll.disconnected(&id) {
                self.compare_clocks();
            }
            self.forget_duplicates(&id);
            self.outbox.unsent.remove(&id);
            let unsent = partner.queue.len() as u64;
            self.metrics.dropped.inc_by(unsent);
            self.incoming.push_back(Incoming::Disconnected { peer: partner.handle });
        }
    }

    fn on_node_event(&mut self, event: NodeEvent) {
        match event {
            NodeEvent::Messages(event) => self.on_message_event(event),
            NodeEvent::Clocks(event) => self.on_clock_event(event),
            NodeEvent::Duplicates(event) => self.on_duplicate_event(event),
            NodeEvent::Group(GateEvent::Group(event)) => self.on_group_event(event),
            NodeEvent::Group(GateEvent::Garbage(id)) => {
                if let Some(peer) = self.peers.handle(&id) {
                    self.penalize(peer, Misdeed::Garbage);
                }
            }
            NodeEvent::Group(GateEvent::Behind { peer, bytes }) => {
                let place = self.peers.place(&peer);
                if bytes > 0 {
                    tracing::warn!(
                        bytes,
                        "{place} is disconnected: it has not proven who it is, and too much of the group's messages \
                         waits for it and others"
                    );
                } else {
                    tracing::warn!(
                        "{place} is disconnected: there is no room to send the next message to so many that have not \
                         proven who they are"
                    );
                }
            }
            NodeEvent::Ping(ping::Event { peer, connection, result: Err(failure) }) => {
                // §23.5: a node that refuses pings takes part as well.
                if !matches!(failure, ping::Failure::Unsupported) {
                    tracing::debug!(%peer, "no answer to pings: {failure}");
                    self.swarm.close_connection(connection);
                }
            }
            NodeEvent::Identify(identify::Event::Received { connection_id, peer_id, info }) => {
                self.on_introduction(peer_id, connection_id, &info.agent_version);
            }
            NodeEvent::Ping(_) | NodeEvent::Identify(_) => {}
        }
    }

    /// A node that was dialled and is not what was looked for is of no use: the address is one that cannot be
    /// reached. One that has dialled by mistake learns that itself, and operators here are told.
    fn on_introduction(&mut self, id: PeerId, connection: ConnectionId, agent: &str) {
        // §16.3: who does not introduce itself compares nothing.
        let Some(own) = self.introduction else { return };
        if let Some(route) = self.dialler.route(connection) {
            let objection = own.objection(route, agent);
            self.dialler.introduced(connection, objection.is_none());
            if let Some(objection) = objection {
                // §16.3: closed, as if nobody answered, and the reason told with it.
                self.objections.insert(connection, objection);
                self.swarm.close_connection(connection);
            }
        } else if let Some(mistake) = own.astray(agent)
            // §16.3: once for each peer, and bounded, because anybody can connect.
            && self.astray.len() < MAX_ASTRAY
            && self.astray.insert(id)
        {
            tracing::warn!("{}: {mistake}", self.peers.place(&id));
        }
    }

    fn on_message_event(&mut self, event: request_response::Event<RequestFrame, RequestFrame>) {
        use request_response::Event;
        match event {
            Event::Message { peer, message: Message::Request { request_id, request, channel }, .. } => {
                let answer = AnswerChannel { inbound: request_id, channel };
                // §13.8: whether a stranger keeps its place depends on the machine's answer.
                self.swarm.behaviour_mut().places.hear(&peer);
                self.deliver(&peer, Via::Peer, request.message, Some(request.request), Some(answer));
            }
            Event::Message { peer, message: Message::Response { request_id, response }, .. } => {
                self.finished(peer, request_id);
                // §23.3: a length of 0 answers nothing.
                if !response.message.is_empty() {
                    self.deliver(&peer, Via::Peer, response.message, Some(response.request), None);
                }
            }
            Event::OutboundFailure { peer, request_id, error, .. } => {
                tracing::debug!(%peer, "a message was not taken: {error}");
                self.finished(peer, request_id);
            }
            Event::InboundFailure { peer, request_id, error, .. } => {
                self.answered(request_id);
                tracing::debug!(%peer, "a message did not come through: {error}");
            }
            Event::ResponseSent { request_id, .. } => {
                self.answered(request_id);
            }
        }
    }

    fn on_clock_event(&mut self, event: request_response::Event<[u8; clock_sync::NONCE_LEN], ClockReply>) {
        use request_response::Event;
        match event {
            Event::Message { peer, message: Message::Request { request, channel, .. }, .. } => {
                let dialled = self.peers.route(&peer).is_some_and(|route| !route.is_inbound());
                let question = ClockQuestion { asker: peer, nonce: request, channel, dialled };
                self.incoming.push_back(Incoming::ClockAsked(question));
            }
            Event::Message { peer, message: Message::Response { request_id, response }, .. } => {
                // A sign of life is asked for by the same stream: its time counts for nothing.
                if self.confirmation_ended((peer, request_id), true) {
                    return;
                }
                let (Some(nonce), Some(route)) = (self.poll.answered(request_id), self.peers.route(&peer))
                else {
                    return;
                };
                // §16.1: the signature is over the number asked with, both ends' names, and the time.
                let statement =
                    clock_sync::statement(&nonce, self.swarm.local_peer_id(), &peer, response.unix);
                let dialled = !route.is_inbound();
                let answer = ClockAnswer { teller: peer, reply: response, statement, dialled };
                self.incoming.push_back(Incoming::ClockAnswered(answer));
            }
            Event::OutboundFailure { peer, request_id, error, .. } => {
                tracing::debug!(%peer, "did not say what time it is: {error}");
                if !self.confirmation_ended((peer, request_id), false) {
                    self.poll.answered(request_id);
                }
            }
            Event::InboundFailure { .. } | Event::ResponseSent { .. } => {}
        }
    }

    fn confirmation_ended(&mut self, question: (PeerId, OutboundRequestId), answered: bool) -> bool {
        let clocks = self.swarm.behaviour_mut().clocks.as_mut();
        clocks.is_some_and(|clocks| self.confirmations.ended(question, answered, clocks))
    }

    fn on_group_event(&mut self, event: gossipsub::Event) {
        match event {
            gossipsub::Event::Message { propagation_source, message_id, message } => {
                self.on_group_message(propagation_source, &message_id, message.data);
            }
            gossipsub::Event::Subscribed { peer_id, .. } => self.peers.set_subscribed(&peer_id, true),
            gossipsub::Event::Unsubscribed { peer_id, .. } => self.peers.set_subscribed(&peer_id, false),
            gossipsub::Event::SlowPeer { peer_id, failed_messages } => {
                tracing::debug!(peer = %peer_id, ?failed_messages, "too slow for group messages");
            }
            gossipsub::Event::GossipsubNotSupported { .. } => {}
        }
    }

    fn on_group_message(&mut self, from: PeerId, id: &gossipsub::MessageId, mut data: Vec<u8>) {
        use gossipsub::MessageAcceptance;
        let well_formed = is_well_formed(data.len());
        // §13.7: no other peers' group messages are relayed. It may have changed since the message was let in.
        let known = well_formed && self.is_relayed(&from);
        let acceptance = match self.tuning {
            _ if !well_formed => MessageAcceptance::Reject,
            Tuning::Hub { .. } if known => MessageAcceptance::Accept,
            Tuning::Hub { .. } | Tuning::Spoke => MessageAcceptance::Ignore,
        };
        let relayed = matches!(acceptance, MessageAcceptance::Accept);
        if let Some(group) = self.swarm.behaviour_mut().group.as_mut() {
            group.judge(id, &from, data.len(), acceptance);
        }
        if relayed {
            self.metrics.group_relayed.inc();
            self.metrics.sent(data.len() - NONCE_LEN, self.peers.subscribers().saturating_sub(1));
        }
        if !well_formed {
            self.metrics.refused.inc();
        } else if known {
            data.drain(..NONCE_LEN);
            self.deliver(&from, Via::Group, data, None, None);
        } else {
            self.metrics.group_ignored.inc();
        }
    }

    /// A hub takes and passes on group messages of those whom its machine knows.
    fn is_relayed(&mut self, from: &PeerId) -> bool {
        match self.tuning {
            Tuning::Spoke => true,
            Tuning::Hub { .. } => {
                self.peers.partner(from).is_some_and(|partner| partner.relayed && !partner.blocked)
            }
        }
    }

    fn deliver(
        &mut self,
        from: &PeerId,
        via: Via,
        bytes: Vec<u8>,
        request: Option<RequestId>,
        answer: Option<AnswerChannel>,
    ) {
        // Without a handle the peer has just left or is blocked: its message is dropped.
        if let Some(from) = self.peers.handle(from) {
            self.metrics.received(bytes.len());
            self.incoming.push_back(Incoming::Message { from, via, bytes, request, answer });
        }
    }

    fn finished(&mut self, peer: PeerId, request: OutboundRequestId) {
        let streams = &mut self.swarm.behaviour_mut().messages;
        self.outbox.finished(&mut self.peers, streams, peer, request);
    }
}

fn list(addresses: &[Multiaddr]) -> String {
    addresses.iter().map(Multiaddr::to_string).collect::<Vec<_>>().join(", ")
}

/// Displays an error with its causes, most of which libp2p's errors do not mention themselves.
struct ErrorChain<'a>(&'a (dyn Error + 'static));

impl std::fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = self.0.to_string();
        f.write_str(&shown)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !shown.contains(&text) {
                write!(f, ": {text}")?;
                shown = text;
            }
            cause = error.source();
        }
        Ok(())
    }
}
