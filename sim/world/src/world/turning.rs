//! One step of one node, and what the world does about it.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{KgcId, Suite};
use quiver_role::{Destination, EdgeCommand, LeaderCommand, Machine};
use sha2::{Digest, Sha256};

use super::{Errand, RECORDED, World};
use crate::air::Air;
use crate::centre::CentreCommand;
use crate::disk::Stored;
use crate::drive::{Outcome, Sabotage};
use crate::network::nanos;
use crate::node::Row;
use crate::queue::Due;
use crate::station::{Manner, NEVER, Station, Stimulus};
use crate::{Cause, Effect, Node, NodeEvent, Turn};

/// How a step is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) row: Row,
    pub(super) manner: Manner,
    pub(super) traced: bool,
}

/// Takes a step of one node.
pub(super) fn take<M: Machine>(
    station: &mut Station<M>,
    node: Node,
    at: u64,
    (stimulus, cause): (Stimulus<M::Command>, Cause),
    style: Style,
) -> Turn
where
    M::Record: Stored,
    NodeEvent: From<M::Event>,
{
    let mut outcome = Outcome { effects: Vec::new(), records: style.traced.then(Sha256::new) };
    // Reading the clock takes as long as many a drone's step.
    let metered = style.manner.metered && matches!(node, Node::Leader(_));
    let cpu = station.turn(at, stimulus, Manner { metered, ..style.manner }, &mut outcome);
    let mut turn =
        Turn { at: Duration::from_nanos(at), node, cause, effects: outcome.effects, cpu, digest: None };
    turn.digest = outcome.records.map(|records| print(&turn, style.row, records));
    turn
}

/// SHA-256 over all that a step was made of.
fn print(turn: &Turn, row: Row, records: Sha256) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(turn.at.as_nanos().to_be_bytes());
    hash.update(row.index(turn.node).to_be_bytes());
    match &turn.cause {
        Cause::Message { via, payload, .. } => {
            hash.update(row.index(*via).to_be_bytes());
            hash.update(payload);
        }
        // A trace of a world with one KGC is what it was before there were several.
        Cause::Connected(Node::Kgc(1)) => hash.update("Connected(Kgc)"),
        Cause::Disconnected(Node::Kgc(1)) => hash.update("Disconnected(Kgc)"),
        cause => hash.update(format!("{cause:?}")),
    }
    for effect in &turn.effects {
        match effect {
            Effect::Sent { to, payload } => {
                let to = match to {
                    Destination::Group => u64::MAX,
                    Destination::Peer(peer) => peer.0,
                };
                hash.update(to.to_be_bytes());
                hash.update((payload.len() as u64).to_be_bytes());
                hash.update(payload);
            }
            effect => hash.update(format!("{effect:?}")),
        }
    }
    hash.update(records.finalize());
    hash.finalize().into()
}

/// What something that is due means to a machine.
pub(super) fn stimulus<C>(row: Row, due: Due) -> Option<(Stimulus<C>, Cause)> {
    let node = |number: u32| row.node(number as usize);
    let peer = |number: u32, connection| row.peer(node(number), connection);
    Some(match due {
        Due::Wake => (Stimulus::Deadline, Cause::Deadline),
        Due::Message { via, connection, by_group, payload } => (
            Stimulus::Received(peer(via, connection), by_group, Arc::clone(&payload)),
            Cause::Message { via: node(via), by_group, payload },
        ),
        Due::Connected { other, connection, route } => {
            (Stimulus::Connected(peer(other, connection), route), Cause::Connected(node(other)))
        }
        Due::Disconnected { other, connection } => {
            (Stimulus::Disconnected(peer(other, connection)), Cause::Disconnected(node(other)))
        }
        Due::Errand => return None,
    })
}

impl<S: Suite> World<S> {
    pub(super) fn style(&self) -> Style {
        let manner = Manner { sabotage: self.setup.sabotage, metered: self.setup.metered };
        Style { row: self.row, manner, traced: self.setup.traced }
    }

    pub(super) fn kgc_turn(
        &mut self,
        id: KgcId,
        stimulus: Stimulus<CentreCommand>,
        word: &'static str,
    ) -> Option<Turn> {
        let (style, now) = (self.style(), self.now);
        let station = self.kgc_station_mut(id).filter(|kgc| kgc.alive())?;
        Some(take(station, Node::Kgc(id), now, (stimulus, Cause::Command(word)), style))
    }

    pub(super) fn leader_turn(
        &mut self,
        ordinal: u16,
        stimulus: Stimulus<LeaderCommand>,
        word: &'static str,
    ) -> Option<Turn> {
        let (style, now) = (self.style(), self.now);
        let station = self.leaders.get_mut(usize::from(ordinal)).filter(|leader| leader.alive())?;
        Some(take(station, Node::Leader(ordinal), now, (stimulus, Cause::Command(word)), style))
    }

    pub(super) fn edge_turn(
        &mut self,
        number: u32,
        stimulus: Stimulus<EdgeCommand>,
        word: &'static str,
    ) -> Option<Turn> {
        let (style, now) = (self.style(), self.now);
        let station = self.edges.get_mut(number as usize)?.as_deref_mut().filter(|edge| edge.alive())?;
        Some(take(station, Node::Edge(number), now, (stimulus, Cause::Command(word)), style))
    }

    /// Lets a node take something that is due.
    pub(super) fn due_turn(&mut self, node: Node, due: Due) -> Option<Turn> {
        let (style, now, row) = (self.style(), self.now, self.row);
        match node {
            Node::Kgc(id) => {
                let station = self.kgc_station_mut(id)?;
                Some(take(station, node, now, stimulus(row, due)?, style))
            }
            Node::Leader(ordinal) => {
                let station = self.leaders.get_mut(usize::from(ordinal))?;
                Some(take(station, node, now, stimulus(row, due)?, style))
            }
            Node::Edge(number) => {
                let station = self.edges.get_mut(number as usize)?.as_deref_mut()?;
                Some(take(station, node, now, stimulus(row, due)?, style))
            }
        }
    }

    /// After a step: the trace, the next wake-up, and what was sent.
    pub(super) fn conclude(&mut self, turn: &Turn) {
        self.turns += 1;
        if let (Some(trace), Some(digest)) = (&mut self.trace, &turn.digest) {
            trace.update(digest);
        }
        if let Node::Leader(_) = turn.node {
            self.leader_cpu += turn.cpu;
        }
        if let Some(air) = &mut self.air {
            air.note(turn);
        }
        for effect in &turn.effects {
            match effect {
                Effect::Sent { to, payload } => self.route(turn, *to, payload),
                Effect::Blocked(peer) => {
                    let (other, connection) = self.row.behind(*peer);
                    self.block(turn.node, other, connection);
                }
                Effect::Penalized(peer) => {
                    let (other, connection) = self.row.behind(*peer);
                    self.penalize(turn.node, other, connection);
                }
                Effect::Relayed { peer, allowed } => {
                    let (other, connection) = self.row.behind(*peer);
                    self.links.set_relays(turn.node, other, connection, *allowed);
                }
                Effect::Died => self.bury(turn.node),
                Effect::Persisted { .. } | Effect::Reported(_) | Effect::Stalled | Effect::Broken => {}
            }
        }
        self.plan_wake(turn.node);
        self.note_unnamed(turn);
    }

    /// A node died: its connections end, and it comes back if that was planned.
    fn bury(&mut self, node: Node) {
        self.disconnect_all(node);
        if let Some(down_for) = self.returns.remove(&node) {
            self.plan(down_for, Errand::Return(node));
        }
    }

    pub(super) fn plan_wake(&mut self, node: Node) {
        let deaf = self.setup.sabotage == Sabotage::MissDeadlines && self.now > 60_000_000_000;
        let Some((deadline, wake)) = self.vitals(node) else { return };
        if deadline < *wake && !deaf {
            *wake = deadline;
            let number = self.number(node);
            self.queue.push(deadline, number, Due::Wake);
        }
    }

    /// When a node wants to be woken, and when it will be.
    pub(super) fn vitals(&mut self, node: Node) -> Option<(u64, &mut u64)> {
        match node {
            Node::Kgc(id) => {
                let station = self.kgc_station_mut(id)?;
                Some((station.deadline, &mut station.wake))
            }
            Node::Leader(ordinal) => {
                let station = self.leaders.get_mut(usize::from(ordinal))?;
                Some((station.deadline, &mut station.wake))
            }
            Node::Edge(number) => {
                let station = self.edges.get_mut(number as usize)?.as_deref_mut()?;
                Some((station.deadline, &mut station.wake))
            }
        }
    }

    /// A planned wake-up is here. Returns whether the node wants it; if it wants a later one, that is planned.
    pub(super) fn wanted(&mut self, node: Node) -> bool {
        let now = self.now;
        let Some((deadline, wake)) = self.vitals(node) else { return false };
        if *wake <= now {
            *wake = NEVER;
        }
        if deadline <= now {
            return true;
        }
        self.plan_wake(node);
        false
    }

    fn route(&mut self, turn: &Turn, to: Destination, payload: &Arc<[u8]>) {
        let from = turn.node;
        if self.setup.recording {
            if self.recorded.len() == RECORDED {
                self.recorded.pop_front();
            }
            self.recorded.push_back((from, to == Destination::Group, Arc::clone(payload)));
        }
        if self.setup.sabotage == Sabotage::KeepProofs && self.is_proof(payload) {
            return;
        }
        let at = u64::try_from(turn.at.as_nanos()).unwrap_or(NEVER);
        match to {
            Destination::Peer(peer) => {
                let (node, connection) = self.row.behind(peer);
                if self.links.connection(from, node) == Some(connection) {
                    if self.is_for_forger(node, payload) {
                        return;
                    }
                    self.transmit(at, from, node, payload, false);
                }
            }
            Destination::Group => self.spread(at, from, payload),
        }
    }

    /// Gossip: a leader reaches everybody connected to it; an edge reaches its leader, which passes it on if it knows it.
    pub(super) fn spread(&mut self, at: u64, from: Node, payload: &Arc<[u8]>) {
        let hub = match from {
            Node::Leader(_) => from,
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
            let Some(heard) = self.transmit(at, from, hub, payload, true) else { return };
            at = heard;
            if !self.network.reaches(from, hub) {
                return;
            }
        }
        let flight = self.air.as_mut().map(|air| air.broadcast(Duration::from_nanos(at), hub, payload));
        let leaders = (0..self.row.leaders).map(Node::Leader);
        for to in leaders.chain((0..self.edge_count()).map(Node::Edge)) {
            if to == from || to == hub || self.links.connection(hub, to).is_none() {
                continue;
            }
            match (&flight, &mut self.air) {
                (Some(flight), Some(air)) if Air::joins(hub, to) => {
                    if air.hears(flight, to) {
                        self.carry(at.saturating_add(nanos(flight.after)), (from, hub), to, payload, true);
                    } else {
                        self.network.lose(payload);
                    }
                }
                _ => self.carry(at, (from, hub), to, payload, true),
            }
        }
    }

    /// Sends a message to one node, over the radio if there is one between them. Gives when the radio is done with it,
    /// unless it was lost there.
    pub(super) fn transmit(
        &mut self,
        at: u64,
        from: Node,
        to: Node,
        payload: &Arc<[u8]>,
        by_group: bool,
    ) -> Option<u64> {
        let mut at = at;
        if let Some(air) = self.air.as_mut().filter(|_| Air::joins(from, to)) {
            match air.unicast(Duration::from_nanos(at), from, to, payload) {
                Some(after) => at = at.saturating_add(nanos(after)),
                None => {
                    self.network.lose(payload);
                    return None;
                }
            }
        }
        self.carry(at, (from, from), to, payload, by_group);
        Some(at)
    }

    /// Hands a message to the network; `via` is whom the receiver has it from.
    fn carry(&mut self, at: u64, (from, via): (Node, Node), to: Node, payload: &Arc<[u8]>, by_group: bool) {
        let Some(connection) = self.links.connection(via, to) else { return };
        let mut last = self.last_between(via, to).map(|last| *last);
        let (hub, number) = (self.number(via), self.number(to));
        let queue = &mut self.queue;
        self.network.carry(from, to, payload, &mut |arrival| {
            let due = Due::Message { via: hub, connection, by_group, payload: arrival.payload };
            let mut arrives = at.saturating_add(arrival.after);
            if let Some(last) = &mut last {
                arrives = arrives.max(*last);
                *last = arrives;
            }
            queue.push(arrives, number, due);
        });
        if let (Some(kept), Some(last)) = (self.last_between(via, to), last) {
            *kept = last;
        }
    }

    /// Whether something that is due can still happen: a message dies with its connection.
    pub(super) fn holds(&self, node: Node, due: &Due) -> bool {
        match due {
            Due::Message { via, connection, .. } => {
                self.links.connection(node, self.row.node(*via as usize)) == Some(*connection)
            }
            Due::Connected { other, connection, .. } => {
                self.links.connection(node, self.row.node(*other as usize)) == Some(*connection)
            }
            Due::Wake | Due::Disconnected { .. } | Due::Errand => true,
        }
    }
}
