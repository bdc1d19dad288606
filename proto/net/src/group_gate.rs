//! Stands in front of gossipsub: nothing of a peer reaches it that this node does not pass on.
//!
//! Gossipsub remembers every message that it is given, of whatever topic, for as long as its caches last, and it keeps
//! what waits for a subscriber. Anybody may connect to a hub. So the messages of a peer reach gossipsub only while the
//! machine has them relayed, within the peer's rate and within the room of the caches; and a stranger's subscription
//! only once the peer has proven who it is, unless the group has members that cannot prove it everywhere. Control messages reach it never: in a star everybody is in the mesh from
//! its subscription on.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::gossipsub::{self, TopicHash};
use libp2p::swarm::handler::ConnectionEvent;
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm, NetworkBehaviour,
    SubstreamProtocol, THandler, THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};
use quiver_machine::MAX_MESSAGE_LEN;
use tokio::time::Instant;

use crate::behaviour::{Group, NONCE_LEN};
use crate::config::{NodeConfig, Tuning};
use crate::metrics::NetMetrics;
use crate::rate::{Bucket, Rate};
use crate::unread::{KEEPER, Keeper};

/// What a connection's handler has to say, messages among it.
type GroupEvent = THandlerOutEvent<Group>;

/// Messages of a peer that no node of the group sends, before it is penalised for one more.
const TOLERATED: u32 = 16;
/// Streams either way after which gossipsub's handler takes no more, and its queue is emptied no more.
const STREAMS: u32 = 5;
/// Time for which gossipsub remembers a message, in seconds: two heartbeats of a hub, which is longer than its id is known.
const MEMORY: u64 = 10;
/// Bytes that gossipsub's caches take for a message beside its content.
const MESSAGE_COST: usize = 512;

/// What happens in the group.
#[derive(Debug)]
pub(crate) enum GateEvent {
    /// Something of gossipsub's.
    Group(gossipsub::Event),
    /// A peer has sent many messages that no node of the group sends.
    Garbage(PeerId),
}

/// Gossipsub, and what may reach it.
#[derive(derive_more::Deref, derive_more::DerefMut)]
pub(crate) struct GroupGate {
    #[deref]
    #[deref_mut]
    within: Group,
    topic: TopicHash,
    tuning: Tuning,
    /// Whether strangers' subscriptions reach gossipsub.
    strangers_listen: bool,
    rate: Rate,
    memory: Memory,
    peers: HashMap<PeerId, Gate>,
    garbage: VecDeque<PeerId>,
    metrics: NetMetrics,
}

/// What of one peer reaches gossipsub.
#[derive(Default)]
struct Gate {
    connections: HashSet<ConnectionId>,
    /// Whether its subscription does.
    known: bool,
    /// Whether its messages do.
    relayed: bool,
    /// Whether it passes on what many publish.
    of_many: bool,
    /// Its last subscription, until it is known.
    subscription: Option<(ConnectionId, GroupEvent)>,
    bucket: Option<Bucket>,
    misplaced: u32,
}

impl GroupGate {
    pub(crate) fn new(config: &NodeConfig, within: Group, topic: TopicHash, metrics: &NetMetrics) -> Self {
        Self {
            within,
            topic,
            tuning: config.tuning,
            strangers_listen: config.strangers_listen,
            rate: config.limits.group_rate,
            memory: Memory::new(config.limits.group_memory),
            peers: HashMap::new(),
            garbage: VecDeque::new(),
            metrics: metrics.clone(),
        }
    }

    /// The peer has proven who it is: it may receive the group's messages.
    pub(crate) fn know(&mut self, peer: &PeerId) {
        let Some(gate) = self.peers.get_mut(peer) else { return };
        gate.known = true;
        if let Some((connection, subscription)) = gate.subscription.take() {
            self.within.on_connection_handler_event(*peer, connection, subscription);
        }
    }

    /// Whether the peer's messages are passed on; `of_many`: it passes on what many publish.
    pub(crate) fn relay(&mut self, peer: &PeerId, allowed: bool, of_many: bool) {
        if let Some(gate) = self.peers.get_mut(peer) {
            (gate.relayed, gate.of_many) = (allowed, of_many);
        }
    }

    fn connected(&mut self, peer: PeerId, connection: ConnectionId, dialled: bool) {
        let spoke = self.tuning == Tuning::Spoke;
        let gate = self.peers.entry(peer).or_default();
        gate.connections.insert(connection);
        // A spoke passes nothing on, and hears those alone that it dialled.
        gate.known |= dialled || spoke || self.strangers_listen;
        gate.relayed |= spoke;
    }

    /// Takes everything out of an event that is not to reach gossipsub. Returns whether something is left of it.
    fn sift(&mut self, peer: PeerId, connection: ConnectionId, event: GroupEvent) -> Option<GroupEvent> {
        let GroupEvent::Message { mut rpc, mut invalid_messages } = event else { return Some(event) };
        let gate = self.peers.get_mut(&peer)?;
        rpc.control_msgs.clear();
        rpc.subscriptions.retain(|subscription| subscription.topic_hash == self.topic);
        let superseded = rpc.subscriptions.len().saturating_sub(1);
        rpc.subscriptions.drain(..superseded);
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
                self.garbage.push_back(peer);
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

/// Whether a message of so many bytes is one of a machine.
pub(crate) fn is_well_formed(length: usize) -> bool {
    (NONCE_LEN..=NONCE_LEN + MAX_MESSAGE_LEN).contains(&length)
}

impl Gate {
    /// Only a hub keeps its peers to a rate: what a hub relays comes from many.
    fn is_within_rate(&mut self, tuning: Tuning, rate: Rate, length: usize, now: Instant) -> bool {
        let rate = match tuning {
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

    /// Whether there is room for so many bytes; if so, they are there from now on.
    fn has_room(&mut self, bytes: usize, now: Instant) -> bool {
        let second = now.saturating_duration_since(self.start).as_secs();
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
    type ConnectionHandler = GateHandler<THandler<Group>>;
    type ToSwarm = GateEvent;

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<Self::ConnectionHandler, ConnectionDenied> {
        let handler = self.within.handle_established_inbound_connection(connection, peer, local, remote)?;
        self.connected(peer, connection, false);
        Ok(GateHandler::new(handler))
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
        self.connected(peer, connection, true);
        Ok(GateHandler::new(handler))
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if let FromSwarm::ConnectionClosed(closed) = &event
            && let Some(gate) = self.peers.get_mut(&closed.peer_id)
        {
            gate.connections.remove(&closed.connection_id);
            if gate.connections.is_empty() {
                self.peers.remove(&closed.peer_id);
            }
        }
        self.within.on_swarm_event(event);
    }

    fn on_connection_handler_event(&mut self, peer: PeerId, connection: ConnectionId, event: GroupEvent) {
        if let Some(event) = self.sift(peer, connection, event) {
            self.within.on_connection_handler_event(peer, connection, event);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<GateEvent, THandlerInEvent<Self>>> {
        if let Some(peer) = self.garbage.pop_front() {
            return Poll::Ready(ToSwarm::GenerateEvent(GateEvent::Garbage(peer)));
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
        if self.inbound >= STREAMS || self.outbound >= STREAMS {
            // Gossipsub takes no more streams on this connection and sends nothing over it, but goes on to queue.
            self.keeper.fail("too many streams of group messages");
        }
    }
}
