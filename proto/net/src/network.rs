//! The network as the driver sees it: what came in, what to send. Everything here is independent of the
//! machine.

mod duplicate_identity;
mod events;

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use libp2p::core::transport::ListenerId;
use libp2p::core::upgrade::Version;
use libp2p::gossipsub::{IdentTopic, PublishError, TopicHash};
use libp2p::multiaddr::Protocol;
use libp2p::request_response::{InboundRequestId, ResponseChannel};
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{self, ConnectionId, Swarm};
use libp2p::{Multiaddr, PeerId, Transport as _};
use quiver_machine::{KgcId, MAX_MESSAGE_LEN, Misdeed, Peer, Route, Via};
use rand::Rng;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::behaviour::{NONCE_LEN, Node};
use crate::boxed_behaviour::BoxedBehaviour;
use crate::clock_sync::{self, ClockPoll, ClockReply, OtherClocks};
use crate::config::{NodeConfig, NodeLimits, Tuning};
use crate::confirmation::{ConfirmationWaiter, Confirmations};
use crate::dial::{DialAttempt, Dialler, Unreached, partner};
use crate::error::NetError;
use crate::frame::RequestFrame;
use crate::handshakes::Interruptible;
use crate::introduction::Introduction;
use crate::metrics::{Misconduct, NetMetrics};
use crate::outbox::Outbox;
use crate::peers::{Partner, Peers};
use crate::penalties::Penalties;
use crate::request::RequestId;
use crate::unread::UnreadBudget;
use crate::{listen, transport};
use duplicate_identity::DuplicateIdentity;

/// Time for which a published group message may still be on its way to the sockets when the node stops.
const PUBLISH_LINGER: Duration = Duration::from_millis(200);

/// Maximum time that a blocked peer has to take what was sent to it before: why it is blocked.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Maximum number of peers that dialled this node by mistake and are remembered.
const MAX_ASTRAY: usize = 256;

/// Maximum number of libp2p events handled at a time without one of them being an input.
const EVENTS_AT_ONCE: usize = 256;

/// Channel for the answer to a received message.
pub(crate) struct AnswerChannel {
    inbound: InboundRequestId,
    channel: ResponseChannel<RequestFrame>,
}

/// A peer's question for the time.
pub(crate) struct ClockQuestion {
    asker: PeerId,
    nonce: [u8; clock_sync::NONCE_LEN],
    channel: ResponseChannel<ClockReply>,
    /// True if this node dialled the asker.
    pub(crate) dialled: bool,
}

/// A peer's answer about its clock.
pub(crate) struct ClockAnswer {
    teller: PeerId,
    pub(crate) reply: ClockReply,
    /// The signed bytes.
    pub(crate) statement: Vec<u8>,
    /// True if this node dialled the peer that answers.
    pub(crate) dialled: bool,
}

/// Event of the network.
pub(crate) enum Incoming {
    Connected {
        peer: Peer,
        route: Route,
        /// Address of the peer, for people.
        place: String,
    },
    Disconnected {
        peer: Peer,
    },
    /// One to the group belongs to no request.
    Message {
        from: Peer,
        via: Via,
        bytes: Vec<u8>,
        request: Option<RequestId>,
        answer: Option<AnswerChannel>,
    },
    Listening {
        address: Multiaddr,
    },
    ClockAsked(ClockQuestion),
    ClockAnswered(ClockAnswer),
    /// Two processes run with this peer's identity; its name is not known yet.
    Duplicate {
        peer: Peer,
    },
}

/// A swarm and what the driver remembers about it.
pub(crate) struct DriverNetwork {
    swarm: Swarm<BoxedBehaviour<Node>>,
    peers: Peers,
    outbox: Outbox,
    dialler: Dialler,
    metrics: Arc<NetMetrics>,
    limits: NodeLimits,
    tuning: Tuning,
    topic: Option<TopicHash>,
    /// Time after which a dialled leader that takes no messages of the group is dialled anew.
    subscription_timeout: Option<Duration>,
    nonce: u64,
    /// The quorum's other KGCs.
    members: HashMap<PeerId, KgcId>,
    /// Relays of this node.
    relays: HashSet<PeerId>,
    /// Blocked peers, oldest first.
    blocked: VecDeque<PeerId>,
    /// Peers to be blocked once they have what was sent to them, or at this time.
    closing: Vec<(Instant, PeerId)>,
    introduction: Option<Introduction>,
    /// Reasons of connections closed that this node opened: another node answers there than was looked for.
    objections: HashMap<ConnectionId, String>,
    /// Peers that dialled this node by mistake, so that it is told once.
    astray: HashSet<PeerId>,
    penalties: Penalties,
    listeners: Vec<ListenerId>,
    incoming: VecDeque<Incoming>,
    /// Answers not yet on the wire.
    answering: HashMap<InboundRequestId, (PeerId, usize)>,
    published_at: Option<Instant>,
    poll: ClockPoll,
    other_clocks: watch::Sender<OtherClocks>,
    confirmations: Confirmations,
    duplicates: DuplicateIdentity,
}

impl DriverNetwork {
    pub(crate) fn new(config: &NodeConfig, metrics: Arc<NetMetrics>) -> Result<Self, NetError> {
        for (_, address) in &config.dial {
            listen::check_address(config.transport, address)?;
        }
        let settings = swarm::Config::with_tokio_executor()
            .with_idle_connection_timeout(config.idle_timeout)
            .with_max_negotiating_inbound_streams(config.limits.streams)
            // A node that offers one protocol does not wait until it is accepted: a round trip less for each
            // message.
            .with_substream_upgrade_protocol_override(Version::V1Lazy);
        let peer_id = config.key.peer_id();
        let budget = UnreadBudget::new(config.limits.unread);
        let node = Node::new(config, &budget, &metrics)?;
        let transport = Interruptible::new(transport::build(config, &budget)?, node.places.handshakes());
        let node = BoxedBehaviour::new(node, config.negotiation());
        let mut swarm = Swarm::new(transport.boxed(), node, peer_id, settings);
        let listeners = listen::listen(&mut swarm, config.transport, &config.listen)?;
        Ok(Self {
            swarm,
            peers: Peers::default(),
            outbox: Outbox::new(config, metrics.clone()),
            dialler: Dialler::new(config, Instant::now()),
            metrics,
            limits: config.limits,
            tuning: config.tuning,
            topic: config.topic.as_deref().map(|topic| IdentTopic::new(topic).hash()),
            subscription_timeout: config.subscription_timeout.filter(|_| config.topic.is_some()),
            nonce: rand::rngs::OsRng.r#gen(),
            members: config.members.iter().map(|(kgc, peer)| (*peer, *kgc)).collect(),
            relays: config.relays.iter().copied().collect(),
            blocked: VecDeque::new(),
            closing: Vec::new(),
            introduction: config.introduction,
            objections: HashMap::new(),
            astray: HashSet::new(),
            penalties: Penalties::new(config.limits.blocked),
            listeners,
            incoming: VecDeque::new(),
            answering: HashMap::new(),
            published_at: None,
            poll: ClockPoll::new(config.clocks),
            other_clocks: watch::Sender::new(OtherClocks::default()),
            confirmations: Confirmations::default(),
            duplicates: DuplicateIdentity::new(rand::rngs::OsRng.r#gen()),
        })
    }

    /// The configured addresses that cannot be reached, as they are from now on.
    pub(crate) fn unreached(&self) -> watch::Receiver<Vec<Unreached>> {
        self.dialler.unreached()
    }

    /// Dials what waits to be dialled again in a second or two.
    pub(crate) fn dial_soon(&mut self, now: Instant) {
        self.dialler.hurry(now);
    }

    /// Watches the summary of other nodes' clocks.
    pub(crate) fn other_clocks(&self) -> watch::Receiver<OtherClocks> {
        self.other_clocks.subscribe()
    }

    /// The bytes to sign for this answer.
    pub(crate) fn statement_to(&self, question: &ClockQuestion, unix: u64) -> Vec<u8> {
        clock_sync::statement(&question.nonce, &question.asker, self.swarm.local_peer_id(), unix)
    }

    /// Answers with the time.
    pub(crate) fn send_time(&mut self, question: ClockQuestion, reply: ClockReply) {
        if let Some(clocks) = self.swarm.behaviour_mut().clocks.as_mut() {
            // A peer that stopped waiting asks again.
            let _ = clocks.send_response(question.channel, reply);
        }
    }

    /// Records the time of a peer's clock, which counts. `drone`: its signer.
    pub(crate) fn record_clock(&mut self, answer: &ClockAnswer, drone: Option<String>, ours: u64) {
        // §13.8: a signed clock makes a peer known: a KGC learns in no other way that it is a drone of the
        // deployment.
        if drone.is_some() && self.peers.handle(&answer.teller).is_some() {
            self.prove(answer.teller, drone.clone());
        }
        // §16.1: operators are told of a clock that is off, but not each time that its peer is asked.
        if let Some(ahead) = self.poll.note(answer.teller, drone.clone(), answer.reply.unix, ours) {
            self.tell_clock(&answer.teller, drone, ahead);
        }
        self.compare_clocks();
    }

    /// The machine has verified the identity of a connected peer. `member`: its name, as far as the machine
    /// knows one.
    fn prove(&mut self, id: PeerId, member: Option<String>) {
        let behaviour = self.swarm.behaviour_mut();
        behaviour.places.prove(id, member);
        self.outbox.unsent.remove(&id);
        // §13.7: whoever is known receives the group's messages.
        if let Some(group) = behaviour.group.as_mut() {
            group.know(&id);
        }
    }

    fn tell_clock(&self, teller: &PeerId, drone: Option<String>, ahead: i64) {
        let (span, place) = (clock_sync::span(ahead.unsigned_abs()), self.peers.place(teller));
        match drone {
            Some(drone) => {
                let way = if ahead > 0 { "ahead of" } else { "behind" };
                tracing::warn!(
                    "the clock of {drone} at {place} is {span} {way} this one: set the clocks right"
                );
            }
            None => {
                let way = if ahead > 0 { "behind" } else { "ahead of" };
                let whose = self.peers.route(teller).map_or_else(|| "peer".into(), partner);
                tracing::warn!(
                    "this clock is {span} {way} that of the {whose} at {place}: set the clocks right"
                );
            }
        }
    }

    fn compare_clocks(&self) {
        let others = self.poll.others();
        self.other_clocks.send_if_modified(|known| std::mem::replace(known, others) != others);
    }

    /// The next thing to report.
    pub(crate) fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<Result<Incoming, NetError>> {
        // Most events are no inputs. After many of them, others get the thread.
        for _ in 0..EVENTS_AT_ONCE {
            if let Some(incoming) = self.incoming.pop_front() {
                return Poll::Ready(Ok(incoming));
            }
            // Before the swarm, so that a flood of events does not keep the node from dialling its leader.
            if let Poll::Ready(attempt) = self.dialler.poll(cx, Instant::now()) {
                self.dial(attempt);
                continue;
            }
            match Pin::new(&mut self.swarm).poll_next(cx) {
                Poll::Ready(Some(event)) => self.on_event(event)?,
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.outbox.expire(&mut self.peers, &mut self.swarm.behaviour_mut().messages, now);
        let Node { clocks, places, .. } = &mut **self.swarm.behaviour_mut();
        self.poll.tick(&self.peers, clocks.as_mut(), |id| places.is_proven(id), now);
        self.poll_duplicates(now);
        self.close_blocked(now);
        self.close_unsubscribed(now);
        for id in self.penalties.ended(now) {
            self.admit_again(id);
        }
    }

    /// Time at which something is due next.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let wanted = [
            self.outbox.wake_at(),
            self.dialler.wake_at(),
            self.poll.wake_at(),
            self.duplicates.wake_at(),
            self.penalties.wake_at(),
            self.closing.iter().map(|(at, _)| *at).min(),
            self.subscription_timeout
                .and_then(|limit| Some(self.peers.unsubscribed().map(|(_, since)| since).min()? + limit)),
        ];
        wanted.into_iter().flatten().min()
    }

    /// The transport's name of a connected peer.
    pub(crate) fn peer_id(&self, peer: Peer) -> Option<PeerId> {
        self.peers.id(peer)
    }

    /// Sends a message to one peer.
    pub(crate) fn send(&mut self, to: Peer, frame: RequestFrame) {
        // §22.1: no receiver takes more than 2^20 bytes.
        if self.is_sendable(&frame.message)
            && self.outbox.send(&mut self.peers, &mut self.swarm.behaviour_mut().messages, to, frame)
        {
            self.note_answer(to);
        }
    }

    /// The machine's message to a peer is sent: a stranger that asked for it keeps its place.
    fn note_answer(&mut self, to: Peer) {
        if let Some(id) = self.peers.id(to) {
            self.swarm.behaviour_mut().places.answer(&id, Instant::now());
        }
    }

    /// Sends a message as the answer to one received, or an empty answer.
    pub(crate) fn answer(
        &mut self,
        to: Peer,
        answer: AnswerChannel,
        request: RequestId,
        message: Option<Vec<u8>>,
    ) {
        let id = self.peers.id(to);
        let mut message = message.filter(|message| self.is_sendable(message)).unwrap_or_default();
        if !message.is_empty() {
            if id.is_some_and(|id| !self.outbox.unsent.take(&id, message.len())) {
                message.clear();
                self.metrics.dropped.inc();
            } else {
                self.note_answer(to);
            }
        }
        let length = message.len();
        if self
            .swarm
            .behaviour_mut()
            .messages
            .send_response(answer.channel, RequestFrame { request, message })
            .is_err()
        {
            tracing::debug!("the peer did not wait for the answer");
            if length > 0 {
                self.metrics.dropped.inc();
                id.iter().for_each(|id| self.outbox.unsent.give_back(id, length));
            }
            return;
        }
        if let Some(id) = id {
            self.answering.insert(answer.inbound, (id, length));
        }
        if length > 0 {
            self.metrics.sent(length, 1);
        }
    }

    /// An answer is on the wire, or will never be.
    fn answered(&mut self, request: InboundRequestId) {
        if let Some((id, length)) = self.answering.remove(&request)
            && length > 0
        {
            self.outbox.unsent.give_back(&id, length);
        }
    }

    /// Returns true if an answer to a peer would overtake messages that wait for their turn.
    pub(crate) fn has_queue(&mut self, to: Peer) -> bool {
        let id = self.peers.id(to);
        id.and_then(|id| self.peers.partner(&id)).is_some_and(|partner| !partner.queue.is_empty())
    }

    /// Publishes a message to the group. Returns whether it was handed to its subscribers.
    pub(crate) fn publish(&mut self, message: &[u8]) -> bool {
        let group = self.swarm.behaviour_mut().group.as_mut();
        let (Some(group), Some(topic)) = (group, self.topic.clone()) else {
            tracing::error!("a message to the group was dropped: the node is configured without a topic");
            return false;
        };
        if message.len() > MAX_MESSAGE_LEN {
            tracing::error!(length = message.len(), "a message to the group was dropped: it is too long");
            return false;
        }
        let mut data = Vec::with_capacity(NONCE_LEN.saturating_add(message.len()));
        // §23.4: 8 bytes before the message, so that two equal messages have two ids.
        data.extend_from_slice(&self.nonce.to_be_bytes());
        data.extend_from_slice(message);
        self.nonce = self.nonce.wrapping_add(1);
        match group.publish(&topic, data) {
            Ok(_) => {
                self.published_at = Some(Instant::now());
                self.metrics.group_published.inc();
                let subscribers = self.peers.subscribers();
                self.metrics.sent(message.len(), subscribers);
                // Handed to nobody is not sent: the caller keeps what must not be lost.
                return subscribers > 0;
            }
            Err(PublishError::NoPeersSubscribedToTopic) => tracing::debug!("nobody listens to the group yet"),
            Err(error) => {
                self.metrics.dropped.inc();
                tracing::debug!("a message to the group was dropped: {error}");
            }
        }
        false
    }

    /// The peers that take the group's messages.
    pub(crate) fn subscribers(&self) -> Vec<Peer> {
        self.peers.subscribed().collect()
    }

    /// Asks a peer for a sign of life, unless it is gone: then `waiting` is dropped.
    pub(crate) fn confirm(&mut self, peer: Peer, waiting: ConfirmationWaiter) {
        if let Some(id) = self.peers.id(peer)
            && let Some(clocks) = self.swarm.behaviour_mut().clocks.as_mut()
        {
            self.confirmations.ask(id, waiting, clocks);
        }
    }

    /// Disconnects a peer, once it has what was sent to it, and refuses it from now on. Its messages are
    /// ignored at once.
    pub(crate) fn block(&mut self, peer: Peer) {
        let Some(id) = self.peers.id(peer) else { return };
        let place = self.peers.place(&id);
        if let Some(partner) = self.peers.partner(&id) {
            // Nothing more is taken from it, but the reason of its removal still goes out.
            (partner.blocked, partner.relayed) = (true, false);
        }
        let behaviour = self.swarm.behaviour_mut();
        behaviour.places.disown(&id);
        if let Some(group) = behaviour.group.as_mut() {
            group.relay(&id, false, false);
        }
        self.closing.push((Instant::now() + LAST_WORDS, id));
        tracing::info!("{place} is disconnected and refused from now on");
    }

    /// Disconnects a peer at once.
    pub(crate) fn disconnect(&mut self, peer: Peer) {
        if let Some(id) = self.peers.id(peer) {
            // It may have left.
            let _ = self.swarm.disconnect_peer_id(id);
        }
    }

    /// Closes connections to leaders that did not ask for the group's messages: over the next one they are asked anew.
    fn close_unsubscribed(&mut self, now: Instant) {
        let Some(limit) = self.subscription_timeout else { return };
        let late = self.peers.unsubscribed().filter(|(_, since)| *since + limit <= now);
        for id in late.map(|(id, _)| id).collect::<Vec<_>>() {
            let place = self.peers.place(&id);
            tracing::warn!(
                "the leader at {place} takes no messages of the group over this connection: connecting anew"
            );
            // Until it is closed it is not looked at again.
            self.peers.restart_subscription(&id, now);
            // It may have left.
            let _ = self.swarm.disconnect_peer_id(id);
        }
    }

    fn close_blocked(&mut self, now: Instant) {
        let peers = &mut self.peers;
        let (done, closing) = std::mem::take(&mut self.closing).into_iter().partition(|(at, id)| {
            // The last message tells a member that it is evicted; it must not be lost with the connection.
            let has_all = |partner: &mut Partner| partner.queue.is_empty() && partner.in_flight.is_empty();
            *at <= now || peers.partner(id).is_none_or(has_all)
        });
        let done: Vec<_> = done;
        self.closing = closing;
        for (_, id) in done {
            self.refuse_for_good(id);
        }
    }

    fn refuse_for_good(&mut self, id: PeerId) {
        let list = &mut self.swarm.behaviour_mut().blocked;
        // §13.8: it may serve a penalty.
        if !list.block_peer(id) && self.blocked.contains(&id) {
            return;
        }
        self.metrics.blocked.inc();
        self.blocked.push_back(id);
        // Bounded: identities cost nothing, and machines refuse the oldest again when it comes.
        if self.blocked.len() > self.limits.blocked
            && let Some(oldest) = self.blocked.pop_front()
        {
            list.unblock_peer(oldest);
        }
    }

    /// Sets if a peer's group messages are relayed. A relayed peer has proven its identity, and may connect
    /// from every address: also when it is no longer in the group. `member`: its name, as far as the machine
    /// knows one.
    pub(crate) fn set_relayed(&mut self, peer: Peer, relayed: bool, member: Option<String>) {
        let Some(id) = self.peers.id(peer) else { return };
        let Some(partner) = self.peers.partner(&id) else { return };
        // An output of before the block must not undo it.
        let relayed = relayed && !partner.blocked;
        partner.relayed = relayed;
        // §13.7: leaders and relays pass on the messages of many, so that their rate is higher.
        let of_many = partner.route != Route::Inbound;
        let behaviour = self.swarm.behaviour_mut();
        behaviour.places.relay(id, relayed);
        if let Some(group) = behaviour.group.as_mut() {
            group.relay(&id, relayed, of_many);
        }
        // §13.8: a member, deputy or leader was proven over it (§13.7).
        if relayed {
            self.prove(id, member);
        }
    }

    /// Disconnects a peer that dialled us and refuses it for a while, also if it has just left. Those that we
    /// dialled are needed.
    pub(crate) fn penalize(&mut self, peer: Peer, misdeed: Misdeed) {
        // §13.8: also if it has disconnected since.
        let Some((id, sources)) = self.peers.condemn(peer) else { return };
        let now = Instant::now();
        let (pause, released) = self.penalties.add(id, now);
        let behaviour = self.swarm.behaviour_mut();
        behaviour.blocked.block_peer(id);
        // §13.8: each penalty counts against the address, too.
        behaviour.places.charge(&id, &sources, now);
        if let Some(group) = behaviour.group.as_mut() {
            group.relay(&id, false, false);
        }
        // The list of penalties is bounded: the one that ends soonest makes room.
        if let Some(released) = released {
            self.admit_again(released);
        }
        // The label has two values, because a peer must not be able to add time series.
        let kind = misdeed.as_str();
        self.metrics.penalties.get_or_create(&Misconduct { kind }).inc();
        let (place, seconds) = (self.peers.place(&id), pause.as_secs());
        let why = match misdeed {
            Misdeed::Forgery => "an invalid signature came from there",
            Misdeed::Garbage => "many messages came from there that cannot be read",
        };
        tracing::warn!("{place} is disconnected and refused for {seconds} s: {why}");
    }

    /// A penalty is over. A peer that is blocked for good stays blocked.
    fn admit_again(&mut self, id: PeerId) {
        if !self.blocked.contains(&id) {
            self.swarm.behaviour_mut().blocked.unblock_peer(id);
        }
    }

    /// Returns true if all messages have left, as far as can be known.
    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        let lingering = self.published_at.is_some_and(|at| now < at + PUBLISH_LINGER);
        self.peers.are_idle() && self.answering.is_empty() && !lingering
    }

    fn is_sendable(&self, message: &[u8]) -> bool {
        let sendable = message.len() <= MAX_MESSAGE_LEN;
        if !sendable {
            self.metrics.dropped.inc();
            tracing::error!(length = message.len(), "a message was dropped: it is too long");
        }
        sendable
    }

    fn dial(&mut self, attempt: DialAttempt) {
        let address = attempt.address.clone();
        let options = dial_options(address);
        let connection = options.connection_id();
        self.metrics.dials.inc();
        match self.swarm.dial(options) {
            Ok(()) => self.dialler.dialling(attempt, connection),
            Err(error) => {
                self.metrics.dial_failures.inc();
                // The dial did not begin: it is tried again as one that failed.
                self.dialler.refused(&attempt, Instant::now(), &error);
            }
        }
    }
}

/// Options of a dial: on TCP a fresh port for every connection, because one that reuses the listener's could
/// collide with its predecessor. On QUIC a fresh port would be a whole endpoint with megabytes of buffers,
/// and one endpoint carries any number of connections.
fn dial_options(address: Multiaddr) -> DialOpts {
    let fresh_port = !address.iter().any(|part| part == Protocol::QuicV1);
    match pinned(&address) {
        Some(peer) => {
            let options = DialOpts::peer_id(peer).addresses(vec![address]).condition(PeerCondition::Always);
            if fresh_port { options.allocate_new_port().build() } else { options.build() }
        }
        None => {
            let options = DialOpts::unknown_peer_id().address(address);
            if fresh_port { options.allocate_new_port().build() } else { options.build() }
        }
    }
}

impl Drop for DriverNetwork {
    fn drop(&mut self) {
        // The memory transport keeps the addresses of dropped listeners taken.
        for listener in self.listeners.drain(..) {
            self.swarm.remove_listener(listener);
        }
    }
}

/// The peer named at the end of an address.
fn pinned(address: &Multiaddr) -> Option<PeerId> {
    address.iter().find_map(|part| match part {
        Protocol::P2p(peer) => Some(peer),
        _ => None,
    })
}
