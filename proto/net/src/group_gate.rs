//! Stands in front of gossipsub: nothing of a peer reaches it that this node does not pass on.
//!
//! Gossipsub remembers every message that it is given, of whatever topic, for as long as its caches last, and
//! it keeps what waits for a subscriber. Anybody may connect to a hub. So the messages of a peer reach
//! gossipsub only while the machine has them relayed, within the peer's rate and within the room of the
//! caches; and a stranger's subscription only once the peer has proven who it is, unless the group has
//! members that cannot prove it everywhere: then what waits for strangers is bounded in bytes
//! ([`listeners`]), and who does not take it is disconnected. Control messages reach it never: in a star
//! everybody is in the mesh from its subscription on.

mod listeners;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use libp2p::core::transport::PortUse;
use libp2p::core::{ConnectedPoint, Endpoint};
use libp2p::gossipsub::{self, MessageAcceptance, MessageId, PublishError, TopicHash};
use libp2p::swarm::behaviour::{ConnectionClosed, ConnectionEstablished};
use libp2p::swarm::handler::ConnectionEvent;
use libp2p::swarm::{
    CloseConnection, ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
    NetworkBehaviour, SubstreamProtocol, THandler, THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};
use quiver_machine::MAX_MESSAGE_LEN;
use tokio::time::Instant;

use self::listeners::Listeners;
use crate::behaviour::{GroupGossipsub, NONCE_LEN};
use crate::config::{NodeConfig, NodeLimits, Tuning};
use crate::metrics::NetMetrics;
use crate::rate::{Bucket, Rate};
use crate::unread::{KEEPER, Keeper};

/// Event of a connection's handler, messages among them.
type GroupEvent = THandlerOutEvent<GroupGossipsub>;

/// Messages of a peer that no node of the group sends, before it is penalised for one more.
const TOLERATED: u32 = 16;
/// Streams either way after which gossipsub's handler takes no more, and its queue is emptied no more.
const STREAMS: u32 = 5;
/// Time for which gossipsub remembers a message, in seconds: two heartbeats of a hub, which is longer than its id is known.
const MEMORY: u64 = 10;
/// Bytes that gossipsub's caches take for a message beside its content.
const MESSAGE_COST: usize = 512;

/// Event of the group's topic.
#[derive(Debug)]
pub(crate) enum GateEvent {
    /// An event of gossipsub.
    Group(gossipsub::Event),
    /// A peer has sent many messages that no node of the group sends.
    Garbage(PeerId),
    /// A stranger is disconnected to make room for the next of the group's messages.
    Behind {
        /// The stranger.
        peer: PeerId,
        /// Bytes that wait for it.
        bytes: usize,
    },
}

/// Gossipsub, and what may reach it.
#[derive(derive_more::Deref, derive_more::DerefMut)]
pub(crate) struct GroupGate {
    #[deref]
    #[deref_mut]
    within: GroupGossipsub,
    topic: TopicHash,
    tuning: Tuning,
    /// True if strangers' subscriptions reach gossipsub.
    strangers_listen: bool,
    listeners: Listeners,
    rate: Rate,
    memory: Memory,
    peers: HashMap<PeerId, PeerGate>,
    outputs: VecDeque<ToSwarm<GateEvent, THandlerInEvent<GroupGossipsub>>>,
    metrics: NetMetrics,
}

/// State of one peer, which decides which of its events reach gossipsub.
#[derive(Default)]
struct PeerGate {
    /// Its connections, and what their handlers read and write.
    connections: HashMap<ConnectionId, Arc<Keeper>>,
    /// True if its subscription does.
    known: bool,
    /// True if that is because of who it is, and not because strangers may listen.
    proven: bool,
    /// It is being disconnected, and gossipsub knows nothing of it any more.
    ending: bool,
    /// True if its messages do.
    relayed: bool,
    /// True if the peer passes on the messages of many publishers.
    of_many: bool,
    /// Last subscription of the peer, until the peer is known.
    subscription: Option<(ConnectionId, GroupEvent)>,
    bucket: Option<Bucket>,
    misplaced: u32,
}

impl GroupGate {
    pub(crate) fn new(
        config: &NodeConfig,
        within: GroupGossipsub,
        topic: TopicHash,
        metrics: &NetMetrics,
    ) -> Self {
        let NodeLimits { listening, group_queued, .. } = config.limits;
        let listeners = Listeners::new(listening, group_queued, topic.as_str().len());
        Self {
            within,
            topic,
            tuning: config.tuning,
            strangers_listen: config.strangers_listen,
            listeners,
            rate: config.limits.group_rate,
            memory: Memory::new(config.limits.group_memory),
            peers: HashMap::new(),
            outputs: VecDeque::new(),
            metrics: metrics.clone(),
        }
    }

    /// The peer has proven who it is: it may receive the group's messages.
    pub(crate) fn know(&mut self, peer: &PeerId) {
        let Some(gate) = self.peers.get_mut(peer).filter(|gate| !gate.ending) else { return };
        (gate.known, gate.proven) = (true, true);
        self.listeners.remove(peer);
        if let Some((connection, subscription)) = gate.subscription.take() {
            self.within.on_connection_handler_event(*peer, connection, subscription);
        }
    }

    /// Sets if the peer's messages are passed on; `of_many`: it passes on the messages of many publishers.
    pub(crate) fn relay(&mut self, peer: &PeerId, allowed: bool, of_many: bool) {
        if let Some(gate) = self.peers.get_mut(peer) {
            (gate.relayed, gate.of_many) = (allowed, of_many);
        }
    }

    fn connected(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        dialled: bool,
        handler: THandler<GroupGossipsub>,
    ) -> GateHandler<THandler<GroupGossipsub>> {
        let spoke = self.tuning == Tuning::Spoke;
        let handler = GateHandler::new(handler);
        let gate = self.peers.entry(peer).or_default();
        gate.connections.insert(connection, handler.keeper.clone());
        // A spoke passes nothing on, and hears those alone that it dialled.
        gate.proven |= dialled || spoke;
        gate.known |= gate.proven || self.strangers_listen;
        gate.relayed |= spoke;
        if gate.ending {
            self.end(peer);
        }
        handler
    }

    /// Publishes a message to those who listen, once strangers have room for it.
    pub(crate) fn publish(&mut self, topic: &TopicHash, data: Vec<u8>) -> Result<MessageId, PublishError> {
        let length = data.len();
        self.make_room(length);
        let published = self.within.publish(topic.clone(), data);
        if published.is_ok() {
            self.listeners.give(length, |_| true);
        }
        published
    }

    /// Passes a message of so many bytes on, or drops it.
    pub(crate) fn judge(&mut self, id: &MessageId, from: &PeerId, length: usize, how: MessageAcceptance) {
        let passes = matches!(how, MessageAcceptance::Accept);
        if passes {
            self.make_room(length);
        }
        if self.within.report_message_validation_result(id, from, how) && passes && !self.listeners.is_empty()
        {
            let mesh: HashSet<_> = self.within.mesh_peers(&self.topic).copied().collect();
            self.listeners.give(length, |peer| mesh.contains(peer));
        }
    }

    /// Disconnects strangers until there is room for another message: first those that did not take what they were
    /// given.
    fn make_room(&mut self, length: usize) {
        if self.listeners.is_empty() {
            return;
        }
        for peer in self.listeners.peers() {
            self.settle(&peer);
        }
        for (peer, bytes) in self.listeners.make_room(length) {
            self.metrics.group_listeners_dropped.inc();
            self.outputs.push_back(ToSwarm::GenerateEvent(GateEvent::Behind { peer, bytes }));
            self.end(peer);
        }
    }

    /// Counts what the streams of a stranger have taken meanwhile.
    fn settle(&mut self, peer: &PeerId) {
        let connections = self.peers.get(peer).into_iter().flat_map(|gate| gate.connections.values());
        let written: u64 = connections.map(|keeper| keeper.take_written()).sum();
        self.listeners.take(peer, written);
    }

    /// Has gossipsub forget a peer with what waits for it, and ends its connections.
    fn end(&mut self, peer_id: PeerId) {
        let Some(gate) = self.peers.get_mut(&peer_id) else { return };
        gate.ending = true;
        let Some(connection_id) = gate.connections.keys().next().copied() else { return };
        // It goes at once, with what waits; the swarm sees to connections that have read nothing of the
        // group's.
        gate.connections.values().for_each(|keeper| keeper.fail("it takes nothing of the group's messages"));
        let connection = CloseConnection::All;
        self.outputs.push_back(ToSwarm::CloseConnection { peer_id, connection });
        let empty = Multiaddr::empty();
        let endpoint = ConnectedPoint::Listener { local_addr: empty.clone(), send_back_addr: empty };
        let (cause, remaining_established) = (None, 0);
        let closed =
            ConnectionClosed { peer_id, connection_id, endpoint: &endpoint, cause, remaining_established };
        self.within.on_swarm_event(FromSwarm::ConnectionClosed(closed));
    }

    /// Sends this node's subscription over the connections that a peer still has: the one that is gone may
    /// have had it, and lost it, while the peer came back over another.
    fn subscribe_anew(&mut self, peer_id: PeerId) {
        let Some(gate) = self.peers.get(&peer_id) else { return };
        let Some(connection_id) = gate.connections.keys().next().copied() else { return };
        let empty = Multiaddr::empty();
        let endpoint = ConnectedPoint::Listener { local_addr: empty.clone(), send_back_addr: empty };
        // As if it were the first one: gossipsub greets its peers once.
        let opened = ConnectionEstablished {
            peer_id,
            connection_id,
            endpoint: &endpoint,
            failed_addresses: &[],
            other_established: 0,
        };
        self.within.on_swarm_event(FromSwarm::ConnectionEstablished(opened));
    }

    /// A connection is gone. Returns whether gossipsub has to know.
    fn disconnected(&mut self, peer: PeerId, connection: ConnectionId) -> bool {
        self.settle(&peer);
        let Some(gate) = self.peers.get_mut(&peer) else { return true };
        let ending = gate.ending;
        gate.connections.remove(&connection);
        if gate.connections.is_empty() {
            self.peers.remove(&peer);
            self.listeners.remove(&peer);
        }
        !ending
    }

    /// Takes everything out of an event that is not to reach gossipsub. Returns whether something is left of it.
    fn sift(&mut self, peer: PeerId, connection: ConnectionId, event: GroupEvent) -> Option<GroupEvent> {
        if self.peers.get(&peer).is_none_or(|gate| gate.ending) {
            return None;
        }
        let (mut rpc, mut invalid_messages) = match event {
            GroupEvent::Message { rpc, invalid_messages } => (rpc, invalid_messages),
            GroupEvent::MessageDropped(_) => {
                self.settle(&peer);
                self.listeners.lose(&peer);
                return Some(event);
            }
            GroupEvent::PeerKind(_) => return Some(event),
        };
        let gate = self.peers.get_mut(&peer)?;
        // §23.4: control messages are ignored at hubs.
        rpc.control_msgs.clear();
        rpc.subscriptions.retain(|subscription| subscription.topic_hash == self.topic);
        // Only the last of them counts, so that the list cannot grow.
        let superseded = rpc.subscriptions.len().saturating_sub(1);
        rpc.subscriptions.drain(..superseded);
        // §13.8: messages of another topic, or that are none, count against their sender.
        let mut misplaced = invalid_messages.len();
        invalid_messages.clear();
        let now = Instant::now();
        rpc.messages.retain(|message| {
            let length = message.data.len();
            if message.topic != self.topic || !is_well_formed(length) {
                misplaced += 1;
                return false;
            }
            // §13.7: no other peers' group messages are relayed.
            if !gate.relayed {
                self.metrics.group_ignored.inc();
                return false;
            }
            // The rate first: what one peer may send must not take the room of others.
            let within = gate.is_within_rate(self.tuning, self.rate, length, now)
                && self.memory.has_room(length.saturating_add(MESSAGE_COST), now);
            if !within {
                self.metrics.group_throttled.inc();
            }
            within
        });
        if misplaced > 0 {
            self.metrics.refused.inc_by(misplaced as u64);
            gate.misplaced = gate.misplaced.saturating_add(u32::try_from(misplaced).unwrap_or(u32::MAX));
            // §13.8: more than 16.
            if gate.misplaced > TOLERATED {
                gate.misplaced = 0;
                self.outputs.push_back(ToSwarm::GenerateEvent(GateEvent::Garbage(peer)));
            }
        }
        if gate.known && !gate.proven && !rpc.subscriptions.is_empty() {
            if self.listeners.contains(&peer) {
                // Nodes subscribe once.
                rpc.subscriptions.clear();
            } else {
                for keeper in gate.connections.values() {
                    keeper.take_written();
                }
                self.listeners.add(peer);
            }
        }
        if rpc.subscriptions.is_empty() && rpc.messages.is_empty() {
            return None;
        }
        if gate.known {
            return Some(GroupEvent::Message { rpc, invalid_messages });
        }
        // §13.7: these strangers receive nothing. There are no messages: whoever is relayed is known.
        rpc.messages.clear();
        gate.subscription = Some((connection, GroupEvent::Message { rpc, invalid_messages }));
        None
    }
}

/// Returns true if a message of so many bytes is one of a machine.
pub(crate) fn is_well_formed(length: usize) -> bool {
    (NONCE_LEN..=NONCE_LEN + MAX_MESSAGE_LEN).contains(&length)
}

impl PeerGate {
    /// Only a hub keeps its peers to a rate: what a hub relays comes from many.
    fn is_within_rate(&mut self, tuning: Tuning, rate: Rate, length: usize, now: Instant) -> bool {
        let rate = match tuning {
            // A spoke hears the leaders that it dialled, which bound what they pass on.
            Tuning::Spoke => return true,
            Tuning::Hub { .. } if self.of_many => rate.of_many(),
            Tuning::Hub { .. } => rate,
        };
        self.bucket.get_or_insert_with(|| Bucket::full(now)).allows(rate, length, now)
    }
}

/// Room in gossipsub's caches: bytes that it was given, second by second, for as long as it remembers them.
struct Memory {
    start: Instant,
    seconds: VecDeque<(u64, usize)>,
    used: usize,
    most: usize,
}

impl Memory {
    fn new(most: usize) -> Self {
        Self { start: Instant::now(), seconds: VecDeque::new(), used: 0, most }
    }

    /// Takes room for this number of bytes; returns false if there is none.
    fn has_room(&mut self, bytes: usize, now: Instant) -> bool {
        let second = now.saturating_duration_since(self.start).as_secs();
        // As long as gossipsub's caches keep a message.
        while let Some((at, given)) = self.seconds.front().copied()
            && at + MEMORY < second
        {
            self.used = self.used.saturating_sub(given);
            self.seconds.pop_front();
        }
        let used = self.used.saturating_add(bytes);
        if used > self.most {
            return false;
        }
        self.used = used;
        match self.seconds.back_mut().filter(|(at, _)| *at == second) {
            Some((_, given)) => *given += bytes,
            None => self.seconds.push_back((second, bytes)),
        }
        true
    }
}

impl NetworkBehaviour for GroupGate {
    type ConnectionHandler = GateHandler<THandler<GroupGossipsub>>;
    type ToSwarm = GateEvent;

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<Self::ConnectionHandler, ConnectionDenied> {
        let handler = self.within.handle_established_inbound_connection(connection, peer, local, remote)?;
        Ok(self.connected(peer, connection, false, handler))
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port: PortUse,
    ) -> Result<Self::ConnectionHandler, ConnectionDenied> {
        let handler =
            self.within.handle_established_outbound_connection(connection, peer, address, role, port)?;
        Ok(self.connected(peer, connection, true, handler))
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        let lost = match &event {
            FromSwarm::ConnectionClosed(ConnectionClosed { peer_id, .. }) => Some(*peer_id),
            _ => None,
        };
        let concerns = match &event {
            FromSwarm::ConnectionClosed(ConnectionClosed { peer_id, connection_id, .. }) => {
                self.disconnected(*peer_id, *connection_id)
            }
            FromSwarm::ConnectionEstablished(ConnectionEstablished { peer_id, .. }) => {
                self.peers.get(peer_id).is_none_or(|gate| !gate.ending)
            }
            _ => true,
        };
        if concerns {
            self.within.on_swarm_event(event);
            lost.into_iter().for_each(|peer| self.subscribe_anew(peer));
        }
    }

    fn on_connection_handler_event(&mut self, peer: PeerId, connection: ConnectionId, event: GroupEvent) {
        if let Some(event) = self.sift(peer, connection, event) {
            self.within.on_connection_handler_event(peer, connection, event);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<GateEvent, THandlerInEvent<Self>>> {
        if let Some(output) = self.outputs.pop_front() {
            return Poll::Ready(output);
        }
        self.within.poll(cx).map(|event| event.map_out(GateEvent::Group))
    }
}

/// Gossipsub's handler of a connection, and what it has read of a message that is not complete.
pub(crate) struct GateHandler<H> {
    within: H,
    keeper: Arc<Keeper>,
    inbound: u32,
    outbound: u32,
}

impl<H> GateHandler<H> {
    fn new(within: H) -> Self {
        Self { within, keeper: Arc::default(), inbound: 0, outbound: 0 }
    }
}

impl<H: ConnectionHandler> ConnectionHandler for GateHandler<H> {
    type FromBehaviour = H::FromBehaviour;
    type ToBehaviour = H::ToBehaviour;
    type InboundProtocol = H::InboundProtocol;
    type OutboundProtocol = H::OutboundProtocol;
    type InboundOpenInfo = H::InboundOpenInfo;
    type OutboundOpenInfo = H::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<H::InboundProtocol, H::InboundOpenInfo> {
        self.within.listen_protocol()
    }

    fn connection_keep_alive(&self) -> bool {
        self.within.connection_keep_alive()
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<H::OutboundProtocol, H::OutboundOpenInfo, H::ToBehaviour>> {
        let within = &mut self.within;
        let event = KEEPER.sync_scope(self.keeper.clone(), || within.poll(cx));
        if let Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(_)) = event {
            // A message is complete, and no more than a read of 8 KiB behind it.
            self.keeper.clear();
        }
        event
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Option<H::ToBehaviour>> {
        self.within.poll_close(cx)
    }

    fn on_behaviour_event(&mut self, event: H::FromBehaviour) {
        self.within.on_behaviour_event(event);
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<
            '_,
            H::InboundProtocol,
            H::OutboundProtocol,
            H::InboundOpenInfo,
            H::OutboundOpenInfo,
        >,
    ) {
        if event.is_inbound() {
            // It takes the place of the one before.
            self.keeper.clear();
            self.inbound = self.inbound.saturating_add(1);
        }
        if event.is_outbound() {
            self.outbound = self.outbound.saturating_add(1);
        }
        self.within.on_connection_event(event);
        // §16: five streams for group messages are the most that an honest peer opens.
        if self.inbound >= STREAMS || self.outbound >= STREAMS {
            // Gossipsub takes no more streams on this connection and sends nothing over it, but goes on to queue.
            self.keeper.fail("too many streams of group messages");
        }
    }
}
