//! Carries messages between nodes: over their connections, over the radio if there is one, to the group.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quiver_testbed::{Traffic, nanos};

use super::links::Links;
use super::timeline::Timeline;
use crate::air::Air;
use crate::event_queue::WorldEvent;
use crate::node_id::NodeIndex;
use crate::relays::RelayGossip;
use crate::two_hops::TwoHopsState;
use crate::{Hop, NodeId, SimNetwork};

/// Parts of the world that carrying a message needs.
pub(crate) struct WireContext<'a> {
    pub(crate) timeline: &'a mut Timeline,
    /// Returns true if a node is switched on.
    pub(crate) alive: &'a dyn Fn(NodeId) -> bool,
}

/// Connections and radio between the nodes.
pub(crate) struct Wire {
    pub(crate) index: NodeIndex,
    pub(crate) links: Links,
    pub(crate) network: SimNetwork,
    pub(crate) air: Option<Air>,
    /// Places of the members, if some do not hear the leader.
    pub(super) field: Option<Box<TwoHopsState>>,
    pub(crate) gossip: RelayGossip,
    /// Edges that have put their names away, and the times of arrival of the last message from each and of the last one
    /// to it.
    pub(super) nameless: BTreeMap<u32, [u64; 2]>,
    /// True to connect nodes at once: a million scheduled actions would be a million stretches.
    pub(super) connects_at_once: bool,
    /// Hops that no observer was told of yet; `None` if none wants to know.
    pub(super) hops: Option<Vec<Hop>>,
    /// Copies of the group's datagrams among the network's messages.
    pub(super) datagrams: Traffic,
}

impl Wire {
    /// Traffic of the network.
    pub(super) fn traffic(&self) -> Traffic {
        // Datagrams of the group are no messages.
        let (all, datagrams) = (self.network.traffic(), self.datagrams);
        Traffic {
            sent: all.sent - datagrams.sent,
            bytes: all.bytes - datagrams.bytes,
            lost: all.lost - datagrams.lost,
            duplicated: all.duplicated - datagrams.duplicated,
            corrupted: all.corrupted - datagrams.corrupted,
        }
    }

    /// An edge puts its name away: it dials no KGC from now on, and no message between it and others overtakes another.
    /// The exchange of an anonymous drone is one message after the other, and the services' connections keep them in
    /// order.
    pub(crate) fn hide_name(&mut self, edge: u32) {
        self.nameless.entry(edge).or_default();
    }

    /// Time of arrival of the last message between these nodes, if none may overtake it.
    fn last_between(&mut self, from: NodeId, to: NodeId) -> Option<&mut u64> {
        let (edge, place) = match (from, to) {
            (NodeId::Edge(edge), _) => (edge, 0),
            (_, NodeId::Edge(edge)) => (edge, 1),
            _ => return None,
        };
        self.nameless.get_mut(&edge)?.get_mut(place)
    }

    /// Gossip: a leader reaches every node connected to it; an edge reaches its leader, which relays it if it
    /// knows the edge.
    pub(crate) fn spread(
        &mut self,
        context: &mut WireContext<'_>,
        at: u64,
        from: NodeId,
        payload: &Arc<[u8]>,
    ) {
        if self.index.relays > 0 {
            return self.publish_over_relays(context, at, from, payload);
        }
        let hub = match from {
            NodeId::Leader(_) => from,
            _ => match self.links.hub_of(from) {
                Some(hub) => hub,
                None => return,
            },
        };
        let mut at = at;
        if hub != from {
            if !self.links.relays(hub, from) {
                return;
            }
            let Some(heard) = self.transmit(context, at, (from, hub), payload, true) else { return };
            at = heard;
            if !self.network.reaches(from, hub) {
                return;
            }
        }
        let flight = self.air.as_mut().map(|air| air.broadcast(Duration::from_nanos(at), hub, payload));
        let message = flight.as_ref().and_then(|flight| self.begin_repeats(hub, payload, flight));
        for to in self.index.leaders().chain((0..self.links.edges()).map(NodeId::Edge)) {
            if to == from || to == hub || self.links.connection(hub, to).is_none() {
                continue;
            }
            let in_range = self.hears_leaders(to);
            let arrives = match (&flight, &mut self.air) {
                (Some(flight), Some(air)) if Air::joins(hub, to) => {
                    if in_range && air.reaches(flight, to) {
                        let at = at.saturating_add(nanos(flight.after));
                        let arrives = self.carry(context, at, (from, hub), to, payload, true);
                        self.note_from_leader(context, message, to, arrives);
                        arrives
                    } else {
                        self.network.lose(payload);
                        None
                    }
                }
                _ => self.carry(context, at, (from, hub), to, payload, true),
            };
            self.note_hop((hub, to), (at, arrives), payload);
        }
    }

    /// Sends a message to one node, over the radio if there is one between them. Gives when the radio is done
    /// with it, unless it was lost there.
    pub(crate) fn transmit(
        &mut self,
        context: &mut WireContext<'_>,
        at: u64,
        (from, to): (NodeId, NodeId),
        payload: &Arc<[u8]>,
        by_group: bool,
    ) -> Option<u64> {
        let sent = at;
        let mut at = at;
        let legs = self.radio_legs(context, from, to);
        if let Some(air) = self.air.as_mut().filter(|_| Air::joins(from, to)) {
            let over = legs.into_iter().flatten().try_fold(at, |at, (from, to)| {
                let after = air.unicast(Duration::from_nanos(at), from, to, payload)?;
                Some(at.saturating_add(nanos(after)))
            });
            match over {
                Some(over) => at = over,
                None => {
                    self.network.lose(payload);
                    self.note_hop((from, to), (sent, None), payload);
                    return None;
                }
            }
        }
        let arrives = self.carry(context, at, (from, from), to, payload, by_group);
        self.note_hop((from, to), (sent, arrives), payload);
        Some(at)
    }

    /// Keeps a hop for the observers.
    pub(crate) fn note_hop(
        &mut self,
        (from, to): (NodeId, NodeId),
        times: (u64, Option<u64>),
        payload: &Arc<[u8]>,
    ) {
        if let Some(hops) = &mut self.hops {
            let (sent, arrives) = (Duration::from_nanos(times.0), times.1.map(Duration::from_nanos));
            hops.push(Hop { from, to, sent, arrives, payload: Arc::clone(payload) });
        }
    }

    /// Hands a message to the network; `via` is whom the receiver has it from. Gives when it arrives first,
    /// unless it is lost.
    pub(crate) fn carry(
        &mut self,
        context: &mut WireContext<'_>,
        at: u64,
        (from, via): (NodeId, NodeId),
        to: NodeId,
        payload: &Arc<[u8]>,
        by_group: bool,
    ) -> Option<u64> {
        let connection = self.links.connection(via, to)?;
        let mut first = None;
        let mut last = self.last_between(via, to).map(|last| *last);
        let (hub, timeline) = (self.index.number(via), &mut *context.timeline);
        self.network.carry(from, to, payload, &mut |arrival| {
            let due = WorldEvent::Message { via: hub, connection, by_group, payload: arrival.payload };
            let mut arrives = at.saturating_add(arrival.after);
            if let Some(last) = &mut last {
                arrives = arrives.max(*last);
                *last = arrives;
            }
            first = Some(first.map_or(arrives, |first: u64| first.min(arrives)));
            timeline.push(arrives, to, due);
        });
        if let (Some(kept), Some(last)) = (self.last_between(via, to), last) {
            *kept = last;
        }
        first
    }

    /// Hands a datagram of the group to the network. Says whether it arrives as it was sent; `due` is the event of an
    /// arrival that did or did not.
    pub(crate) fn carry_datagram(
        &mut self,
        timeline: &mut Timeline,
        at: u64,
        (from, to): (NodeId, NodeId),
        bytes: &Arc<[u8]>,
        due: &dyn Fn(bool, Arc<[u8]>) -> WorldEvent,
    ) -> bool {
        let before = self.network.traffic();
        let mut arrives = false;
        self.network.carry(from, to, bytes, &mut |arrival| {
            let intact = arrival.payload == *bytes;
            arrives |= intact;
            timeline.push(at.saturating_add(arrival.after), to, due(intact, arrival.payload));
        });
        add(&mut self.datagrams, &self.network.traffic(), &before);
        arrives
    }

    /// Returns true if something that is due can still happen: a message dies with its connection.
    pub(super) fn is_deliverable(&self, node: NodeId, due: &WorldEvent) -> bool {
        match due {
            WorldEvent::Message { via, connection, .. } => {
                self.links.connection(node, self.index.node(*via as usize)) == Some(*connection)
            }
            WorldEvent::Connected { other, connection, .. } => {
                self.links.connection(node, self.index.node(*other as usize)) == Some(*connection)
            }
            WorldEvent::Wake
            | WorldEvent::Disconnected { .. }
            | WorldEvent::Datagram { .. }
            | WorldEvent::Station
            | WorldEvent::Repeat { .. }
            | WorldEvent::ScheduledAction => true,
        }
    }
}

/// Adds what came to a network's traffic since it was `before`.
fn add(sum: &mut Traffic, after: &Traffic, before: &Traffic) {
    sum.sent += after.sent - before.sent;
    sum.bytes += after.bytes - before.bytes;
    sum.lost += after.lost - before.lost;
    sum.duplicated += after.duplicated - before.duplicated;
    sum.corrupted += after.corrupted - before.corrupted;
}
