//! Places: which connections a node keeps, so that strangers keep no drone out.
//!
//! Anybody may connect, and a transport identity costs nothing. So a stranger, a peer that has not proven to the machine
//! who it is, has a place for a while only, there are few places for strangers of one address, and a stranger's place
//! goes to whoever has proven itself, or is relayed right now, when there is none left. Of strangers the one goes first
//! that was silent for longest. Peers that are known by their identity from the start, the quorum's other
//! KGCs and the relays, take none of these places.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::swarm::behaviour::{ConnectionClosed, DialFailure, ListenFailure};
use libp2p::swarm::{
    CloseConnection, ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm, dummy,
};
use libp2p::{Multiaddr, PeerId};
use prometheus_client::metrics::counter::Counter;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::addresses::{Addresses, PlaceOwner, Prefix};
use crate::config::{CLOSING, NodeConfig, NodeLimits};
use crate::handshakes::Handshakes;
use crate::metrics::NetMetrics;
use crate::unread::UnreadBudget;

/// Age of a stranger's connection at which another stranger may have its place: time to prove itself.
const GRACE: Duration = Duration::from_secs(5);
/// Connections that are being closed to make room for strangers, or because a stranger's time was over, at a
/// time: the rest of [`CLOSING`] makes room for those who have proven themselves, however slowly strangers
/// let theirs be closed.
const CLOSING_FOR_STRANGERS: u32 = CLOSING - CLOSING / 4;

/// Right of a peer to its places, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PeerRank {
    /// Has not proven who it is.
    Stranger,
    /// Has proven who it is, on this connection or an earlier one.
    Proven,
    /// Is relayed.
    Relayed,
    /// Is known by its identity from the configuration.
    Known,
}

/// A connection.
struct LimitedConnection {
    peer: PeerId,
    /// Address of a peer that dialled us.
    from: Option<Prefix>,
    inbound: bool,
    standing: PeerRank,
    /// Order among all, by the time at which the peer was heard last.
    number: u64,
    heard: Instant,
    /// The peer has sent a message that was not answered yet.
    asks: bool,
    closing: bool,
}

/// Keeps connections within the node's limits.
pub(crate) struct ConnectionLimiter {
    limits: NodeLimits,
    addresses: Addresses,
    budget: UnreadBudget,
    known: HashSet<PeerId>,
    relayed: HashSet<PeerId>,
    /// Connections in their handshake, and the addresses of those that peers opened.
    pending: HashMap<ConnectionId, Option<Prefix>>,
    pending_from: HashMap<Prefix, u32>,
    handshakes: Handshakes,
    dialling: HashSet<ConnectionId>,
    places: HashMap<ConnectionId, LimitedConnection>,
    by_peer: HashMap<PeerId, Vec<ConnectionId>>,
    /// Inbound connections that are open: of strangers, and of peers that are proven, but not relayed.
    strangers: BTreeMap<u64, ConnectionId>,
    proven: BTreeMap<u64, ConnectionId>,
    strangers_from: HashMap<Prefix, u32>,
    inbound: u32,
    outbound: u32,
    closing: u32,
    next: u64,
    outputs: VecDeque<ToSwarm<Infallible, Infallible>>,
    timer: Pin<Box<Sleep>>,
    displaced: Counter,
}

/// Reason why a connection is refused.
#[derive(Debug, derive_more::Display)]
enum Full {
    #[display("too many connections are in their handshake")]
    Pending,
    #[display("too many connections are in their handshake with peers at {_0}")]
    PendingFrom(Prefix),
    #[display("there are too many connections")]
    Inbound,
    #[display("this node has opened too many connections")]
    Outbound,
    #[display("there are too many connections with this peer")]
    Peer,
    #[display("there are too many connections with peers at {_0} that have not proven who they are")]
    Strangers(Prefix),
}

impl std::error::Error for Full {}

impl ConnectionLimiter {
    pub(crate) fn new(config: &NodeConfig, budget: UnreadBudget, metrics: &NetMetrics) -> Self {
        // §13.8: the quorum's other KGCs and the relays are known before they connect.
        let known = config.members.iter().map(|(_, peer)| *peer).chain(config.relays.iter().copied());
        let known: HashSet<PeerId> = known.collect();
        known.iter().for_each(|peer| budget.trust(*peer, true));
        Self {
            limits: config.limits,
            addresses: Addresses::new(config, metrics),
            budget,
            known,
            relayed: HashSet::new(),
            pending: HashMap::new(),
            pending_from: HashMap::new(),
            handshakes: Handshakes::default(),
            dialling: HashSet::new(),
            places: HashMap::new(),
            by_peer: HashMap::new(),
            strangers: BTreeMap::new(),
            proven: BTreeMap::new(),
            strangers_from: HashMap::new(),
            inbound: 0,
            outbound: 0,
            closing: 0,
            next: 0,
            outputs: VecDeque::new(),
            timer: Box::pin(sleep_until(Instant::now())),
            displaced: metrics.connections_displaced.clone(),
        }
    }

    /// The handshakes that this may end.
    pub(crate) fn handshakes(&self) -> Handshakes {
        self.handshakes.clone()
    }

    /// The machine has verified this peer's identity. `member`: its name, as far as the machine knows one.
    pub(crate) fn prove(&mut self, peer: PeerId, member: Option<String>) {
        // §13.8: a known peer, and the address that it came from.
        let connections = self.by_peer.get(&peer).into_iter().flatten();
        let from: Vec<_> = connections.filter_map(|id| self.places.get(id)?.from).collect();
        let owner = match (member, from.last()) {
            (Some(member), _) => PlaceOwner::Member(member),
            (None, Some(from)) => PlaceOwner::Address(*from),
            (None, None) => PlaceOwner::Unknown,
        };
        for from in from {
            self.addresses.familiarize(from, owner.clone());
        }
        self.addresses.prove(peer, owner);
        self.judge_anew(peer);
    }

    /// Returns true if the peer is no stranger.
    pub(crate) fn is_proven(&self, peer: &PeerId) -> bool {
        self.standing(peer) > PeerRank::Stranger
    }

    /// Sets if the machine has this peer's messages passed on.
    pub(crate) fn relay(&mut self, peer: PeerId, allowed: bool) {
        let changed = if allowed { self.relayed.insert(peer) } else { self.relayed.remove(&peer) };
        if changed {
            self.judge_anew(peer);
        }
    }

    /// The machine wants nothing to do with this peer any more.
    pub(crate) fn disown(&mut self, peer: &PeerId) {
        self.addresses.disown(peer);
        self.make_stranger(*peer);
    }

    /// A peer that came from there is penalised, and is a stranger from now on.
    pub(crate) fn charge(&mut self, peer: &PeerId, from: &[Prefix], now: Instant) {
        self.addresses.charge(peer, from, now);
        self.make_stranger(*peer);
    }

    fn make_stranger(&mut self, peer: PeerId) {
        self.relayed.remove(&peer);
        self.judge_anew(peer);
    }

    /// A message came from this peer.
    pub(crate) fn hear(&mut self, peer: &PeerId) {
        for connection in self.by_peer.get(peer).into_iter().flatten() {
            if let Some(place) = self.places.get_mut(connection) {
                // §13.8: a stranger's time begins anew with a message that the machine answered, not with one
                // that it sent.
                place.asks = place.standing == PeerRank::Stranger;
            }
        }
    }

    /// The machine has a message for this peer: it does not send what it was sent for nothing.
    pub(crate) fn answer(&mut self, peer: &PeerId, now: Instant) {
        for connection in self.by_peer.get(peer).cloned().unwrap_or_default() {
            let Some(place) = self.places.get_mut(&connection).filter(|place| place.asks) else { continue };
            (place.asks, place.heard) = (false, now);
            self.remove(connection);
            self.enter(connection);
        }
    }

    fn standing(&self, peer: &PeerId) -> PeerRank {
        if self.known.contains(peer) {
            PeerRank::Known
        } else if self.relayed.contains(peer) {
            PeerRank::Relayed
        } else if self.addresses.is_proven(peer) || self.is_dialled(peer) {
            PeerRank::Proven
        } else {
            PeerRank::Stranger
        }
    }

    /// Returns true if this node has opened a connection with the peer: then it knows whom it looked for.
    fn is_dialled(&self, peer: &PeerId) -> bool {
        let mut own = self.by_peer.get(peer).into_iter().flatten();
        own.any(|id| self.places.get(id).is_some_and(|place| !place.inbound))
    }

    /// Counts the places of a peer by what it is now.
    fn judge_anew(&mut self, peer: PeerId) {
        let standing = self.standing(&peer);
        for connection in self.by_peer.get(&peer).cloned().unwrap_or_default() {
            let Some(before) = self.places.get(&connection).map(|place| place.standing) else { continue };
            // Strangers are in the order in which they were heard.
            if before == PeerRank::Stranger && standing == PeerRank::Stranger {
                continue;
            }
            self.remove(connection);
            if let Some(place) = self.places.get_mut(&connection) {
                place.standing = standing;
                // A stranger's time begins now, however long it was connected before: it is for last words.
                if standing == PeerRank::Stranger {
                    place.heard = Instant::now();
                }
            }
            self.enter(connection);
        }
        // Only peers that are connected: the budget forgets others.
        if self.by_peer.contains_key(&peer) {
            self.budget.trust(peer, standing > PeerRank::Stranger);
        }
    }

    /// Counts an inbound connection.
    fn enter(&mut self, connection: ConnectionId) {
        let Some(place) = self.places.get_mut(&connection).filter(|place| place.inbound && !place.closing)
        else {
            return;
        };
        place.number = self.next;
        // 2^64 messages do not come.
        self.next = self.next.wrapping_add(1);
        match place.standing {
            PeerRank::Stranger => {
                self.strangers.insert(place.number, connection);
                if let Some(from) = place.from {
                    *self.strangers_from.entry(from).or_default() += 1;
                }
            }
            PeerRank::Proven => {
                self.proven.insert(place.number, connection);
            }
            PeerRank::Relayed => {}
            PeerRank::Known => return,
        }
        self.inbound = self.inbound.saturating_add(1);
    }

    /// Counts an inbound connection no more.
    fn remove(&mut self, connection: ConnectionId) {
        let Some(place) = self.places.get(&connection).filter(|place| place.inbound && !place.closing) else {
            return;
        };
        match place.standing {
            PeerRank::Stranger => {
                self.strangers.remove(&place.number);
                if let Some(from) = place.from {
                    uncount(&mut self.strangers_from, from);
                }
            }
            PeerRank::Proven => {
                self.proven.remove(&place.number);
            }
            PeerRank::Relayed => {}
            PeerRank::Known => return,
        }
        self.inbound = self.inbound.saturating_sub(1);
    }

    /// Closes a connection to make room. It takes no place from now on.
    fn close(&mut self, connection: ConnectionId) {
        self.remove(connection);
        let Some(place) = self.places.get_mut(&connection).filter(|place| !place.closing) else { return };
        place.closing = true;
        self.closing = self.closing.saturating_add(1);
        self.displaced.inc();
        let (peer_id, connection) = (place.peer, CloseConnection::One(connection));
        self.outputs.push_back(ToSwarm::CloseConnection { peer_id, connection });
    }

    /// Finds room for another inbound connection, and makes some if it has to.
    fn find_room(&mut self, peer: &PeerId, from: Option<Prefix>, now: Instant) -> Result<(), Full> {
        let standing = self.standing(peer);
        if standing == PeerRank::Known {
            return Ok(());
        }
        let own = self.by_peer.get(peer).into_iter().flatten();
        let own: Vec<_> =
            own.filter(|id| self.places.get(id).is_some_and(|place| !place.closing)).copied().collect();
        // Of one identity a few connections are enough; more would take the places of others.
        if own.len() >= self.limits.per_peer as usize {
            // A drone whose connections are dead comes back before they end.
            let oldest = own.into_iter().find(|id| self.places.get(id).is_some_and(|place| place.inbound));
            return self.replace(oldest.filter(|_| standing > PeerRank::Stranger), standing, Full::Peer);
        }
        // §13.8: one sixteenth of the places for strangers of one address, 16 at least.
        if standing == PeerRank::Stranger
            && let Some(from) = from
            && self.strangers_from.get(&from).is_some_and(|count| *count >= self.limits.strangers_per_address)
        {
            let loser = self.stranger(now, |place| place.from == Some(from));
            return self.replace(loser, standing, Full::Strangers(from));
        }
        // §13.8: while there are places, nobody loses one.
        if self.inbound < self.limits.inbound {
            return Ok(());
        }
        // §13.8: a known peer takes a stranger's place; a stranger that of another which had 5 s.
        let loser = if standing == PeerRank::Stranger {
            self.stranger(now, |_| true)
        } else {
            // Any stranger, then whoever was proven once and is not relayed now.
            self.strangers.values().next().or_else(|| self.proven.values().next()).copied()
        };
        self.replace(loser, standing, Full::Inbound)
    }

    /// Closes a connection for a peer of this standing.
    fn replace(&mut self, loser: Option<ConnectionId>, to: PeerRank, full: Full) -> Result<(), Full> {
        // Sockets of connections that end are not free yet.
        let most = if to == PeerRank::Stranger { CLOSING_FOR_STRANGERS } else { CLOSING };
        let loser = loser.filter(|_| self.closing < most).ok_or(full)?;
        self.close(loser);
        Ok(())
    }

    /// The stranger that was silent for longest, if it has had time to prove itself.
    fn stranger(&self, now: Instant, wanted: impl Fn(&LimitedConnection) -> bool) -> Option<ConnectionId> {
        let places = self.strangers.values().filter_map(|id| Some((*id, self.places.get(id)?)));
        // Ascending by the time of the last message, so that the first that is too young ends the search.
        let mut old = places.take_while(|(_, place)| now >= place.heard + GRACE);
        old.find(|(_, place)| wanted(place)).map(|(id, _)| id)
    }

    fn add(&mut self, connection: ConnectionId, peer: PeerId, from: Option<Prefix>, inbound: bool) {
        let (standing, heard) = (self.standing(&peer), Instant::now());
        let place = LimitedConnection {
            peer,
            from,
            inbound,
            standing,
            number: 0,
            heard,
            asks: false,
            closing: false,
        };
        self.places.insert(connection, place);
        self.by_peer.entry(peer).or_default().push(connection);
        self.enter(connection);
        if !inbound {
            self.outbound = self.outbound.saturating_add(1);
        }
        self.judge_anew(peer);
    }

    fn forget(&mut self, connection: ConnectionId) {
        self.remove(connection);
        let Some(place) = self.places.remove(&connection) else { return };
        if place.closing {
            self.closing = self.closing.saturating_sub(1);
        }
        if !place.inbound {
            self.outbound = self.outbound.saturating_sub(1);
        }
        if let Some(own) = self.by_peer.get_mut(&place.peer) {
            own.retain(|other| *other != connection);
            if own.is_empty() {
                self.by_peer.remove(&place.peer);
                // §13.7: relaying ends with the connection.
                self.relayed.remove(&place.peer);
                if !self.known.contains(&place.peer) {
                    self.budget.trust(place.peer, false);
                }
            } else if !place.inbound {
                self.judge_anew(place.peer);
            }
        }
    }

    fn end_handshake(&mut self, connection: ConnectionId) {
        self.dialling.remove(&connection);
        if let Some(Some(from)) = self.pending.remove(&connection) {
            uncount(&mut self.pending_from, from);
        }
    }

    fn begin_handshake(&mut self, connection: ConnectionId, from: Option<Prefix>) -> Result<(), Full> {
        let now = Instant::now();
        // Those that were ended are about to go.
        let pending = self.pending.len().saturating_sub(self.handshakes.ending());
        let (most, pending) = (self.limits.pending, u32::try_from(pending).unwrap_or(u32::MAX));
        // The peer's identity is known behind the handshake: until then the address has to do.
        let is_familiar = from.is_some_and(|from| self.addresses.is_familiar(from));
        let share = |from: &Prefix| self.pending_from.get(from).copied().unwrap_or_default();
        if let Some(from) = from.filter(|from| share(from) >= most.div_ceil(4)) {
            // §13.8: one address has a quarter of the handshakes. For one more one of its own ends.
            if !self.handshakes.end_one(Some(from), now) {
                return Err(Full::PendingFrom(from));
            }
        } else if pending >= most {
            // Handshakes cost curve operations before anybody is known.
            if !is_familiar || !self.handshakes.end_one(None, now) {
                return Err(Full::Pending);
            }
        } else if let Some(from) = from.filter(|_| !is_familiar && pending >= most - most / 4) {
            // §13.8: the last quarter is for addresses of known peers.
            return Err(Full::PendingFrom(from));
        }
        if let Some(from) = from {
            *self.pending_from.entry(from).or_default() += 1;
        }
        self.pending.insert(connection, from);
        Ok(())
    }

    /// Closes connections of strangers whose time is over.
    fn expire(&mut self, cx: &mut Context<'_>) {
        let Some(lifetime) = self.limits.stranger_lifetime else { return };
        let now = Instant::now();
        // §13.8: 60 s after the connection began, or after the last message that was answered.
        while let Some((connection, heard)) = self.strangers.values().next().and_then(|id| {
            let place = self.places.get(id)?;
            Some((*id, place.heard))
        }) {
            let end = heard + lifetime;
            if now < end {
                if self.timer.deadline() != end {
                    self.timer.as_mut().reset(end);
                }
                if self.timer.as_mut().poll(cx).is_ready() {
                    cx.waker().wake_by_ref();
                }
                return;
            }
            if self.closing >= CLOSING_FOR_STRANGERS {
                // The swarm looks here again once one of them is closed.
                return;
            }
            self.close(connection);
        }
    }
}

/// One fewer of this kind.
fn uncount(counts: &mut HashMap<Prefix, u32>, of: Prefix) {
    if let Some(count) = counts.get_mut(&of) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(&of);
        }
    }
}

impl NetworkBehaviour for ConnectionLimiter {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        connection: ConnectionId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.begin_handshake(connection, Prefix::of(remote)).map_err(ConnectionDenied::new)
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.end_handshake(connection);
        let (from, now) = (Prefix::of(remote), Instant::now());
        // §13.8: an address whose allowance is spent is refused after the handshake, because drones may share
        // it.
        self.addresses.admit(&peer, from, now).map_err(ConnectionDenied::new)?;
        self.find_room(&peer, from, now).map_err(ConnectionDenied::new)?;
        self.add(connection, peer, from, true);
        Ok(dummy::ConnectionHandler)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        _: &[Multiaddr],
        _: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        // Known peers are few, and the node needs them: the limit is for all others.
        if peer.is_none_or(|peer| !self.known.contains(&peer))
            && self.dialling.len() >= self.limits.pending as usize
        {
            return Err(ConnectionDenied::new(Full::Outbound));
        }
        self.dialling.insert(connection);
        Ok(Vec::new())
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.end_handshake(connection);
        // §13.8: whom the node dials is never refused, but for the number of its connections.
        if !self.known.contains(&peer) {
            let own = self.by_peer.get(&peer).map_or(0, Vec::len);
            if self.outbound >= self.limits.outbound || own >= self.limits.per_peer as usize {
                return Err(ConnectionDenied::new(Full::Outbound));
            }
        }
        self.add(connection, peer, None, false);
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionClosed(ConnectionClosed { connection_id, .. }) => self.forget(connection_id),
            // Also one that another behaviour refuses.
            FromSwarm::ListenFailure(ListenFailure { connection_id, .. })
            | FromSwarm::DialFailure(DialFailure { connection_id, .. }) => {
                self.end_handshake(connection_id);
                self.forget(connection_id);
            }
            _ => {}
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<Infallible, THandlerInEvent<Self>>> {
        self.expire(cx);
        self.outputs.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Transport;
    use crate::key::NodeKey;

    const STRANGERS: usize = 4;

    fn places(change: impl FnOnce(&mut NodeConfig)) -> ConnectionLimiter {
        let mut config = NodeConfig::registry(NodeKey::from_seed([1; 32]).unwrap(), Transport::Tcp, 10);
        config.limits.inbound = 8;
        config.limits.strangers_per_address = u32::try_from(STRANGERS).unwrap();
        config.limits.pending = 8;
        change(&mut config);
        ConnectionLimiter::new(&config, UnreadBudget::new(config.limits.unread), &NetMetrics::default())
    }

    fn address(host: u8) -> Multiaddr {
        format!("/ip4/192.0.2.{host}/tcp/1").parse().unwrap()
    }

    /// Connects a peer from an address; whether it is let in.
    fn connect(places: &mut ConnectionLimiter, number: usize, peer: PeerId, host: u8) -> bool {
        let (id, remote) = (ConnectionId::new_unchecked(number), address(host));
        places.handle_pending_inbound_connection(id, &remote, &remote).is_ok()
            && places.handle_established_inbound_connection(id, peer, &remote, &remote).is_ok()
    }

    /// Connections that are closed now.
    fn closed(places: &mut ConnectionLimiter) -> Vec<ConnectionId> {
        let outputs = std::mem::take(&mut places.outputs).into_iter();
        outputs
            .filter_map(|output| match output {
                ToSwarm::CloseConnection { connection: CloseConnection::One(id), .. } => Some(id),
                _ => None,
            })
            .collect()
    }

    fn ids(numbers: impl IntoIterator<Item = usize>) -> Vec<ConnectionId> {
        numbers.into_iter().map(ConnectionId::new_unchecked).collect()
    }

    /// Lets time go by for all that are there.
    fn age(places: &mut ConnectionLimiter, by: Duration) {
        for place in places.places.values_mut() {
            place.heard -= by;
        }
    }

    fn check(places: &ConnectionLimiter) {
        let open = |standing| {
            let open = places.places.values().filter(|place| place.inbound && !place.closing);
            open.filter(|place| place.standing == standing).count()
        };
        assert_eq!(places.strangers.len(), open(PeerRank::Stranger));
        assert_eq!(places.proven.len(), open(PeerRank::Proven));
        let all = open(PeerRank::Stranger) + open(PeerRank::Proven) + open(PeerRank::Relayed);
        assert_eq!(places.inbound as usize, all);
        assert_eq!(
            places.strangers_from.values().map(|count| *count as usize).sum::<usize>(),
            places.strangers.len()
        );
    }

    #[tokio::test]
    async fn strangers_of_one_address_have_few_places_and_an_old_one_makes_room_for_a_new_one() {
        let mut places = places(|_| {});
        let let_in = (0..6).filter(|number| connect(&mut places, *number, PeerId::random(), 1)).count();
        assert_eq!(let_in, STRANGERS);
        assert!(connect(&mut places, 10, PeerId::random(), 2), "another address");
        age(&mut places, GRACE);
        assert!(connect(&mut places, 11, PeerId::random(), 1));
        assert_eq!(closed(&mut places), ids([0]));
        check(&places);
    }

    #[tokio::test]
    async fn strangers_keep_nobody_out_who_has_proven_itself() {
        let mut places = places(|_| {});
        let drone = PeerId::random();
        assert!(connect(&mut places, 0, drone, 1));
        places.relay(drone, true);
        places.prove(drone, None);
        places.forget(ConnectionId::new_unchecked(0));
        for number in 1..=8 {
            assert!(connect(&mut places, number, PeerId::random(), u8::try_from(number).unwrap()));
        }
        assert!(!connect(&mut places, 9, PeerId::random(), 100), "it is full");
        assert!(connect(&mut places, 10, drone, 1), "however young the strangers are");
        assert_eq!(closed(&mut places), ids([1]));
        check(&places);
    }

    #[tokio::test]
    async fn a_member_under_ever_new_keys_pushes_no_other_out_of_the_proven() {
        let mut places = places(|config| config.limits.proven = 8);
        let mut numbers = 0_usize..;
        let mut visit = |places: &mut ConnectionLimiter, peer: PeerId, host: u8, member: Option<&str>| {
            let number = numbers.next().unwrap();
            assert!(connect(places, number, peer, host));
            places.prove(peer, member.map(Into::into));
            places.forget(ConnectionId::new_unchecked(number));
        };
        // A relay knows no names of some: they are told apart by their addresses.
        let drones: Vec<_> = (0..4).map(|_| PeerId::random()).collect();
        visit(&mut places, drones[0], 1, Some("edge-1"));
        visit(&mut places, drones[1], 2, Some("edge-2"));
        visit(&mut places, drones[2], 3, None);
        visit(&mut places, drones[3], 4, None);
        for host in (1..=250).chain(1..=250).filter(|host| *host != 9) {
            visit(&mut places, PeerId::random(), host, Some("hostile"));
            visit(&mut places, PeerId::random(), 9, None);
        }
        assert!(drones.iter().all(|drone| places.is_proven(drone)));
        let hosts = [1, 2, 3, 4].map(|host| Prefix::of(&address(host)).unwrap());
        assert!(hosts.iter().all(|from| places.addresses.is_familiar(*from)), "nor its addresses");
    }

    #[tokio::test]
    async fn who_was_proven_once_makes_room_for_the_next_and_who_is_relayed_does_not() {
        let mut places = places(|_| {});
        let peers: Vec<_> = (0..10).map(|_| PeerId::random()).collect();
        for (number, peer) in peers.iter().enumerate().take(8) {
            places.prove(*peer, None);
            assert!(connect(&mut places, number, *peer, 1));
            places.relay(*peer, number != 3);
        }
        places.prove(peers[8], None);
        assert!(connect(&mut places, 8, peers[8], 1));
        assert_eq!(closed(&mut places), ids([3]));
        places.relay(peers[8], true);
        places.prove(peers[9], None);
        assert!(!connect(&mut places, 9, peers[9], 1), "all are relayed");
        places.disown(&peers[5]);
        assert!(connect(&mut places, 9, peers[9], 1));
        assert_eq!(closed(&mut places), ids([5]));
        check(&places);
    }

    #[tokio::test]
    async fn a_drone_whose_connections_are_dead_comes_back() {
        let mut places = places(|_| {});
        let drone = PeerId::random();
        places.prove(drone, None);
        for number in 0..6 {
            assert!(connect(&mut places, number, drone, 1));
        }
        assert_eq!(closed(&mut places), ids([0, 1]));
        let stranger = PeerId::random();
        let let_in = (10..16).filter(|number| connect(&mut places, *number, stranger, 2)).count();
        assert_eq!(let_in, 4);
        check(&places);
    }

    #[tokio::test]
    async fn strangers_have_their_places_for_a_while_unless_the_machine_answers_them() {
        let mut places = places(|_| {});
        let [silent, talks, drone] = [(); 3].map(|()| PeerId::random());
        for (number, peer) in [silent, talks, drone].into_iter().enumerate() {
            assert!(connect(&mut places, number, peer, 1));
        }
        places.prove(drone, None);
        let lifetime = places.limits.stranger_lifetime.unwrap();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        places.expire(&mut cx);
        assert_eq!(closed(&mut places), []);
        age(&mut places, lifetime);
        // A message that was not asked for is no answer.
        places.answer(&silent, Instant::now());
        places.hear(&talks);
        places.answer(&talks, Instant::now());
        places.expire(&mut cx);
        assert_eq!(closed(&mut places), ids([0]));
        age(&mut places, lifetime);
        places.expire(&mut cx);
        assert_eq!(closed(&mut places), ids([1]));
        check(&places);
    }

    #[tokio::test]
    async fn who_is_disowned_has_a_strangers_time_for_last_words() {
        let mut places = places(|_| {});
        let [drone, stranger] = [(); 2].map(|()| PeerId::random());
        assert!(connect(&mut places, 0, drone, 1) && connect(&mut places, 1, stranger, 2));
        places.prove(drone, None);
        let lifetime = places.limits.stranger_lifetime.unwrap();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        age(&mut places, lifetime);
        places.disown(&drone);
        places.disown(&stranger);
        places.expire(&mut cx);
        assert_eq!(closed(&mut places), ids([1]), "who was a stranger before gets no more time");
        age(&mut places, lifetime);
        places.expire(&mut cx);
        assert_eq!(closed(&mut places), ids([0]));
        check(&places);
    }

    #[tokio::test]
    async fn strangers_that_let_themselves_be_closed_slowly_keep_no_drone_out() {
        let mut places = places(|config| {
            config.limits.inbound = 200;
            config.limits.strangers_per_address = 200;
            config.limits.pending = 1000;
        });
        let drone = PeerId::random();
        places.prove(drone, None);
        let mut numbers = 0_usize..;
        let mut strangers = |places: &mut ConnectionLimiter, count: usize| {
            let come = numbers.by_ref().take(count);
            come.filter(|number| connect(places, *number, PeerId::random(), 1)).count()
        };
        assert_eq!(strangers(&mut places, 200), 200);
        age(&mut places, GRACE);
        // None of those that make room for these is closed yet.
        let few = CLOSING_FOR_STRANGERS as usize;
        assert_eq!(strangers(&mut places, 200), few);
        assert!(connect(&mut places, 1000, drone, 1), "there is room for it");
        let lifetime = places.limits.stranger_lifetime.unwrap();
        age(&mut places, lifetime);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        places.expire(&mut cx);
        let closing = closed(&mut places);
        assert_eq!(closing.len(), few + 1, "the others wait until those are closed");
        closing.into_iter().for_each(|connection| places.forget(connection));
        places.expire(&mut cx);
        assert_eq!(closed(&mut places).len(), few);
        check(&places);
    }

    #[tokio::test]
    async fn handshakes_of_one_address_leave_room_and_the_last_of_it_is_for_addresses_of_drones() {
        let mut places = places(|_| {});
        let drone = PeerId::random();
        assert!(connect(&mut places, 0, drone, 1));
        places.prove(drone, None);
        let mut begin = |number: usize, host: u8| {
            let (id, remote) = (ConnectionId::new_unchecked(number), address(host));
            places.handle_pending_inbound_connection(id, &remote, &remote).is_ok()
        };
        assert_eq!((100..110).filter(|number| begin(*number, 50)).count(), 2, "a quarter of them");
        assert_eq!((110..130).filter(|number| begin(*number, u8::try_from(*number).unwrap())).count(), 4);
        assert!(begin(200, 1), "a drone was there");
    }

    #[tokio::test]
    async fn nothing_is_remembered_of_strangers_that_have_left() {
        let mut places = places(|_| {});
        for number in 0..100 {
            let peer = PeerId::random();
            assert!(connect(&mut places, number, peer, 1));
            places.forget(ConnectionId::new_unchecked(number));
        }
        assert!(places.places.is_empty() && places.by_peer.is_empty() && places.pending.is_empty());
        assert!(places.strangers_from.is_empty() && places.pending_from.is_empty());
        check(&places);
    }
}
