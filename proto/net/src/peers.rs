//! The connected peers, and the handles that machines know them by.

use std::collections::{HashMap, VecDeque};

use libp2p::PeerId;
use libp2p::request_response::OutboundRequestId;
use quiver_machine::{Peer, Route};
use tokio::time::Instant;

use crate::addresses::Prefix;
use crate::frame::RequestFrame;

/// Maximum number of disconnected peers remembered: their messages may still be judged.
const MAX_DEPARTED: usize = 1024;
/// Maximum number of addresses remembered per peer.
const MAX_SOURCES: usize = 4;

/// A connected peer.
pub(crate) struct Partner {
    pub(crate) handle: Peer,
    pub(crate) route: Route,
    /// Messages waiting for their turn.
    pub(crate) queue: VecDeque<RequestFrame>,
    /// Messages sent and not yet taken, and their lengths.
    pub(crate) in_flight: Vec<(OutboundRequestId, usize)>,
    /// Blocked: the connection is about to close and nothing is exchanged any more.
    pub(crate) blocked: bool,
    /// True if the machine has the peer's group messages passed on.
    pub(crate) relayed: bool,
    /// Addresses that it came from.
    sources: Vec<Prefix>,
    /// Address of the peer, for people.
    place: Box<str>,
    subscribed: bool,
    /// Time since which the peer's subscription is awaited.
    awaited_since: Instant,
}

/// A peer that had dialled us and has left.
struct Departed {
    handle: Peer,
    id: PeerId,
    sources: Vec<Prefix>,
}

/// Meaning of a new connection for the machine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// The peer is new.
    New(Peer),
    /// The peer was known as inbound, but it is one that we were configured to dial. It gets a new handle
    /// with the better route.
    Better { old: Peer, new: Peer },
    /// One more connection to a known peer.
    Again,
}

/// The connected peers, by both of their names.
#[derive(Default)]
pub(crate) struct Peers {
    by_id: HashMap<PeerId, Partner>,
    by_handle: HashMap<Peer, PeerId>,
    /// Oldest first.
    departed: VecDeque<Departed>,
    next_handle: u64,
    subscribers: usize,
}

impl Peers {
    pub(crate) fn arrived(&mut self, id: PeerId, route: Route) -> Arrived {
        let fresh = Peer(self.next_handle);
        let arrived = match self.by_id.get_mut(&id) {
            // A peer that this node dialled has a route, and a right, that a peer which dialled it has not: a
            // new peer to the machine.
            Some(partner) if partner.route == Route::Inbound && route != Route::Inbound => {
                let old = std::mem::replace(&mut partner.handle, fresh);
                partner.route = route;
                // The machine knows nothing of the new handle yet.
                partner.relayed = false;
                self.by_handle.remove(&old);
                Arrived::Better { old, new: fresh }
            }
            Some(_) => return Arrived::Again,
            None => {
                self.by_id.insert(id, Partner::new(fresh, route));
                Arrived::New(fresh)
            }
        };
        self.by_handle.insert(fresh, id);
        // 2^64 connections do not happen.
        self.next_handle = self.next_handle.wrapping_add(1);
        arrived
    }

    /// Forgets a peer whose last connection is gone.
    pub(crate) fn left(&mut self, id: &PeerId) -> Option<Partner> {
        let partner = self.by_id.remove(id)?;
        self.by_handle.remove(&partner.handle);
        if partner.subscribed {
            self.subscribers = self.subscribers.saturating_sub(1);
        }
        // §13.8: a peer that disconnects before it is judged is judged all the same.
        if partner.route == Route::Inbound && !partner.blocked {
            if self.departed.len() >= MAX_DEPARTED {
                // Bounded: the judgement on a peer comes soon after its message, or not at all.
                self.departed.pop_front();
            }
            let (handle, sources) = (partner.handle, partner.sources.clone());
            self.departed.push_back(Departed { handle, id: *id, sources });
        }
        Some(partner)
    }

    /// Notes where a peer dialled us from.
    pub(crate) fn came_from(&mut self, id: &PeerId, source: Prefix) {
        if let Some(Partner { sources, .. }) = self.by_id.get_mut(id)
            && !sources.contains(&source)
        {
            if sources.len() >= MAX_SOURCES {
                sources.remove(0);
            }
            sources.push(source);
        }
    }

    /// Ends the exchange with an inbound peer, and returns its identity and addresses. It may have left
    /// meanwhile, and may be back. `None` for peers that we dialled, and those that are blocked already.
    pub(crate) fn condemn(&mut self, handle: Peer) -> Option<(PeerId, Vec<Prefix>)> {
        let (id, mut sources) = match self.id(handle) {
            Some(id) => (id, Vec::new()),
            None => {
                let place = self.departed.iter().position(|departed| departed.handle == handle)?;
                let departed = self.departed.remove(place)?;
                (departed.id, departed.sources)
            }
        };
        if let Some(partner) = self.by_id.get_mut(&id) {
            // §13.8: peers that this node dialled are never refused.
            if partner.route != Route::Inbound || partner.blocked {
                return None;
            }
            partner.blocked = true;
            partner.queue.clear();
            if sources.is_empty() {
                sources = partner.sources.clone();
            }
        }
        Some((id, sources))
    }

    pub(crate) fn id(&self, handle: Peer) -> Option<PeerId> {
        self.by_handle.get(&handle).copied()
    }

    pub(crate) fn partner(&mut self, id: &PeerId) -> Option<&mut Partner> {
        self.by_id.get_mut(id)
    }

    /// Peers that we dialled, or that are KGCs of our quorum.
    pub(crate) fn dialled(&self) -> Vec<PeerId> {
        let dialled = self.by_id.iter().filter(|(_, partner)| !partner.route.is_inbound());
        dialled.filter(|(_, partner)| !partner.blocked).map(|(id, _)| *id).collect()
    }

    /// Returns at most `most` of the peers that dialled this node, going round behind `last`.
    pub(crate) fn inbound_after(&self, last: Option<&PeerId>, most: usize) -> Vec<PeerId> {
        let inbound = self.by_id.iter().filter(|(_, partner)| partner.route.is_inbound());
        let mut ids: Vec<PeerId> =
            inbound.filter(|(_, partner)| !partner.blocked).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        // Going round, so that each is asked in turn although only a few are at a time.
        let start = ids.partition_point(|id| last.is_some_and(|last| id <= last));
        ids.rotate_left(start);
        ids.truncate(most);
        ids
    }

    /// Route of the connection to this peer.
    pub(crate) fn route(&self, id: &PeerId) -> Option<Route> {
        self.by_id.get(id).map(|partner| partner.route)
    }

    /// The handle of a peer that may be listened to.
    pub(crate) fn handle(&self, id: &PeerId) -> Option<Peer> {
        self.by_id.get(id).filter(|partner| !partner.blocked).map(|partner| partner.handle)
    }

    /// Notes the address of a peer, for people.
    pub(crate) fn set_place(&mut self, id: &PeerId, place: &str) {
        if let Some(partner) = self.by_id.get_mut(id) {
            partner.place = place.into();
        }
    }

    /// The address of a peer, for people; its name on the transport if it has left.
    pub(crate) fn place(&self, id: &PeerId) -> String {
        self.by_id.get(id).map_or_else(|| id.to_string(), |partner| partner.place.to_string())
    }

    pub(crate) fn set_subscribed(&mut self, id: &PeerId, subscribed: bool) {
        let Some(partner) = self.by_id.get_mut(id) else {
            return;
        };
        if partner.subscribed != subscribed {
            partner.subscribed = subscribed;
            let count = self.subscribers;
            self.subscribers = if subscribed { count.saturating_add(1) } else { count.saturating_sub(1) };
        }
    }

    /// The peers that take the group's messages.
    pub(crate) fn subscribed(&self) -> impl Iterator<Item = Peer> + '_ {
        let taking = self.by_id.values().filter(|partner| partner.subscribed && !partner.blocked);
        taking.map(|partner| partner.handle)
    }

    /// Leaders that we dialled and that are not subscribed, and since when that is awaited.
    pub(crate) fn unsubscribed(&self) -> impl Iterator<Item = (PeerId, Instant)> + '_ {
        let leaders = self.by_id.iter().filter(|(_, partner)| partner.route == Route::Leader);
        let waiting = leaders.filter(|(_, partner)| !partner.subscribed && !partner.blocked);
        waiting.map(|(id, partner)| (*id, partner.awaited_since))
    }

    /// Awaits from now on that this peer subscribes.
    pub(crate) fn restart_subscription(&mut self, id: &PeerId, now: Instant) {
        if let Some(partner) = self.by_id.get_mut(id) {
            partner.awaited_since = now;
        }
    }

    /// Number of peers subscribed to the group's topic.
    pub(crate) fn subscribers(&self) -> usize {
        self.subscribers
    }

    /// Returns true if all messages were taken.
    pub(crate) fn are_idle(&self) -> bool {
        self.by_id.values().all(|partner| partner.queue.is_empty() && partner.in_flight.is_empty())
    }
}

impl Partner {
    fn new(handle: Peer, route: Route) -> Self {
        Self {
            handle,
            route,
            queue: VecDeque::new(),
            in_flight: Vec::new(),
            blocked: false,
            relayed: false,
            sources: Vec::new(),
            place: Box::default(),
            subscribed: false,
            awaited_since: Instant::now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_never_reused() {
        let mut peers = Peers::default();
        let id = PeerId::random();
        assert_eq!(peers.arrived(id, Route::Inbound), Arrived::New(Peer(0)));
        assert_eq!(peers.arrived(id, Route::Inbound), Arrived::Again);
        assert!(peers.left(&id).is_some());
        assert_eq!(peers.id(Peer(0)), None);
        assert_eq!(peers.arrived(id, Route::Inbound), Arrived::New(Peer(1)));
    }

    #[test]
    fn dialled_route_outranks_an_inbound_one() {
        let mut peers = Peers::default();
        let id = PeerId::random();
        peers.arrived(id, Route::Inbound);
        assert_eq!(peers.arrived(id, Route::Leader), Arrived::Better { old: Peer(0), new: Peer(1) });
        assert_eq!(peers.arrived(id, Route::Inbound), Arrived::Again);
        assert_eq!(peers.id(Peer(0)), None);
        assert_eq!(peers.handle(&id), Some(Peer(1)));
    }

    #[test]
    fn subscribers_are_counted_once_and_leave_with_their_connection() {
        let mut peers = Peers::default();
        let id = PeerId::random();
        peers.arrived(id, Route::Inbound);
        peers.set_subscribed(&id, true);
        peers.set_subscribed(&id, true);
        assert_eq!(peers.subscribers(), 1);
        peers.left(&id);
        assert_eq!(peers.subscribers(), 0);
    }

    #[test]
    fn leaders_that_do_not_subscribe_are_told_with_the_time_since_which_that_is_awaited() {
        let mut peers = Peers::default();
        let [leader, kgc, guest] = [(); 3].map(|()| PeerId::random());
        for (id, route) in [(leader, Route::Leader), (kgc, Route::Kgc), (guest, Route::Inbound)] {
            peers.arrived(id, route);
        }
        let waiting = |peers: &Peers| peers.unsubscribed().map(|(id, _)| id).collect::<Vec<_>>();
        assert_eq!(waiting(&peers), [leader]);
        let later = Instant::now() + std::time::Duration::from_secs(9);
        peers.restart_subscription(&leader, later);
        assert_eq!(peers.unsubscribed().next(), Some((leader, later)));
        peers.set_subscribed(&leader, true);
        assert_eq!(waiting(&peers), []);
        assert_eq!(peers.subscribed().collect::<Vec<_>>(), [Peer(0)]);
    }

    fn source(number: u8) -> Prefix {
        Prefix::of(&format!("/ip4/192.0.2.{number}/tcp/1").parse().unwrap()).unwrap()
    }

    #[test]
    fn a_peer_is_condemned_once_with_all_the_addresses_that_it_came_from() {
        let mut peers = Peers::default();
        let id = PeerId::random();
        peers.arrived(id, Route::Inbound);
        for number in [1, 2, 1] {
            peers.came_from(&id, source(number));
        }
        assert_eq!(peers.condemn(Peer(0)), Some((id, vec![source(1), source(2)])));
        assert_eq!(peers.condemn(Peer(0)), None);
        peers.left(&id);
        assert_eq!(peers.condemn(Peer(0)), None);
        for number in 0..100 {
            peers.arrived(id, Route::Inbound);
            peers.came_from(&id, source(number));
        }
        assert_eq!(peers.condemn(Peer(1)).unwrap().1, [96, 97, 98, 99].map(source));
    }

    #[test]
    fn who_leaves_before_it_is_judged_is_condemned_all_the_same() {
        let mut peers = Peers::default();
        let id = PeerId::random();
        for round in 0..3 {
            peers.arrived(id, Route::Inbound);
            peers.came_from(&id, source(round));
            peers.left(&id);
        }
        assert_eq!(peers.condemn(Peer(0)), Some((id, vec![source(0)])));
        assert_eq!(peers.condemn(Peer(0)), None, "once");
        // It is back: the connection it has now ends too.
        peers.arrived(id, Route::Inbound);
        assert_eq!(peers.condemn(Peer(1)), Some((id, vec![source(1)])));
        assert_eq!(peers.handle(&id), None);
        peers.left(&id);
        // We dialled it meanwhile.
        peers.arrived(id, Route::Leader);
        assert_eq!(peers.condemn(Peer(2)), None);
        peers.left(&id);
        (0..2 * MAX_DEPARTED).for_each(|_| {
            peers.arrived(id, Route::Inbound);
            peers.left(&id);
        });
        assert_eq!(peers.departed.len(), MAX_DEPARTED);
    }
}
