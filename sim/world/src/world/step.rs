//! Takes one step of one node and applies its effects: traces it, plans the next wake-up, routes what was
//! sent.

use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;
use quiver_ainq::{CacheScope, KgcId, Suite};
use quiver_machine::{Destination, Machine, Via};
use quiver_testbed::{NEVER, SimNode, Stimulus, nanos};
use sha2::{Digest, Sha256};

use super::{DroneNodeCommand, LeaderNodeCommand, RECORDED, ScheduledAction, World};
use crate::air::Air;
use crate::event_queue::WorldEvent;
use crate::kgc_node::KgcNodeCommand;
use crate::node_id::NodeIndex;
use crate::record::Record;
use crate::step::{Sabotage, StepEffects};
use crate::{Cause, Effect, Hop, NodeEvent, NodeId, Setup, Step, StepObserver};

/// Options of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepOptions {
    pub(crate) nodes: NodeIndex,
    pub(crate) sabotage: Sabotage,
    /// True to measure the leaders' CPU time: reading the clock takes as long as many a drone's step.
    metered: bool,
    share_verifications: bool,
    traced: bool,
}

/// Takes a step of one node.
pub(crate) fn take_step<M: Machine<Record: Record>>(
    sim_node: &mut SimNode<M>,
    node: NodeId,
    at: u64,
    (mut stimulus, cause): (Stimulus<M::Command>, Cause),
    options: StepOptions,
) -> Step
where
    NodeEvent: From<M::Event>,
{
    if let (Stimulus::Received(_, via, _), Sabotage::HideGroup) = (&mut stimulus, options.sabotage) {
        *via = Via::Peer;
    }
    let mut sink = StepEffects::new(options.sabotage, options.traced);
    // Of this step alone: the thread may take steps of another world between two of this one.
    let _cache = CacheScope::new(options.share_verifications);
    let start = (options.metered && matches!(node, NodeId::Leader(_))).then(ThreadTime::now);
    sim_node.step(at, stimulus, &mut sink);
    let cpu = start.map(|start| start.elapsed()).unwrap_or_default();
    let StepEffects { effects, records, .. } = sink;
    let mut step =
        Step { at: Duration::from_nanos(at), node, cause, effects, cpu, digest: None, account: None };
    step.digest = records.map(|records| digest(&step, options.nodes, records));
    step
}

/// SHA-256 over all that a step was made of.
fn digest(step: &Step, nodes: NodeIndex, records: Sha256) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(step.at.as_nanos().to_be_bytes());
    hash.update(nodes.index(step.node).to_be_bytes());
    match &step.cause {
        Cause::Message { via, payload, .. } => {
            hash.update(nodes.index(*via).to_be_bytes());
            hash.update(payload);
        }
        // A trace of a world with one KGC is the same as before there were several.
        Cause::Connected(NodeId::Kgc(1)) => hash.update("Connected(Kgc)"),
        Cause::Disconnected(NodeId::Kgc(1)) => hash.update("Disconnected(Kgc)"),
        cause => hash.update(format!("{cause:?}")),
    }
    for effect in &step.effects {
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

/// The stimulus and cause of a due event.
pub(crate) fn stimulus<C>(nodes: NodeIndex, due: WorldEvent) -> Option<(Stimulus<C>, Cause)> {
    let node = |number: u32| nodes.node(number as usize);
    let peer = |number: u32, connection| nodes.peer(node(number), connection);
    Some(match due {
        WorldEvent::Wake => (Stimulus::Deadline, Cause::Deadline),
        WorldEvent::Message { via, connection, by_group, payload } => (
            Stimulus::Received(
                peer(via, connection),
                if by_group { Via::Group } else { Via::Peer },
                Arc::clone(&payload),
            ),
            Cause::Message { via: node(via), by_group, payload },
        ),
        WorldEvent::Connected { other, connection, route } => {
            (Stimulus::Connected(peer(other, connection), route), Cause::Connected(node(other)))
        }
        WorldEvent::Disconnected { other, connection } => {
            (Stimulus::Disconnected(peer(other, connection)), Cause::Disconnected(node(other)))
        }
        WorldEvent::Datagram { .. }
        | WorldEvent::Station
        | WorldEvent::Repeat { .. }
        | WorldEvent::ScheduledAction => {
            return None;
        }
    })
}

impl<S: Suite> World<S> {
    pub(crate) fn step_options(&self) -> StepOptions {
        let Setup { sabotage, metered, share_verifications, traced, .. } = self.setup;
        StepOptions { nodes: self.nodes, sabotage, metered, share_verifications, traced }
    }

    pub(crate) fn step_kgc(
        &mut self,
        id: KgcId,
        stimulus: Stimulus<KgcNodeCommand>,
        label: &'static str,
    ) -> Option<Step> {
        let (options, now) = (self.step_options(), self.now);
        let sim_node = self.kgc_node_mut(id).filter(|kgc| kgc.alive())?;
        Some(take_step(sim_node, NodeId::Kgc(id), now, (stimulus, Cause::Command(label)), options))
    }

    pub(crate) fn step_leader(
        &mut self,
        ordinal: u16,
        stimulus: Stimulus<LeaderNodeCommand>,
        label: &'static str,
    ) -> Option<Step> {
        let (options, now) = (self.step_options(), self.now);
        let sim_node = self.leaders.get_mut(usize::from(ordinal)).filter(|leader| leader.alive())?;
        Some(take_step(sim_node, NodeId::Leader(ordinal), now, (stimulus, Cause::Command(label)), options))
    }

    pub(crate) fn step_edge(
        &mut self,
        number: u32,
        stimulus: Stimulus<DroneNodeCommand>,
        label: &'static str,
    ) -> Option<Step> {
        let (options, now) = (self.step_options(), self.now);
        if !self.is_on(number) {
            return None;
        }
        self.at_home(number, |world| {
            let sim_node = world.edges.get_mut(number as usize)?.as_deref_mut()?;
            Some(take_step(sim_node, NodeId::Edge(number), now, (stimulus, Cause::Command(label)), options))
        })
    }

    /// Lets a node take something that is due.
    pub(crate) fn step_due(&mut self, node: NodeId, due: WorldEvent) -> Option<Step> {
        let (options, now, nodes) = (self.step_options(), self.now, self.nodes);
        match node {
            NodeId::Kgc(id) => {
                let sim_node = self.kgc_node_mut(id)?;
                Some(take_step(sim_node, node, now, stimulus(nodes, due)?, options))
            }
            NodeId::Leader(ordinal) => {
                let sim_node = self.leaders.get_mut(usize::from(ordinal))?;
                Some(take_step(sim_node, node, now, stimulus(nodes, due)?, options))
            }
            NodeId::Relay(number) => {
                let sim_node = self.relays.get_mut(usize::from(number))?;
                Some(take_step(sim_node, node, now, stimulus(nodes, due)?, options))
            }
            NodeId::Edge(number) => self.at_home(number, |world| {
                let sim_node = world.edges.get_mut(number as usize)?.as_deref_mut()?;
                Some(take_step(sim_node, node, now, stimulus(nodes, due)?, options))
            }),
        }
    }

    /// Applies the effects of a step: the trace, the next wake-up, and what was sent.
    pub(crate) fn apply_effects(&mut self, step: &Step) {
        self.steps += 1;
        if let (Some(trace), Some(digest)) = (&mut self.trace, &step.digest) {
            trace.update(digest);
        }
        if let NodeId::Leader(_) = step.node {
            self.leader_cpu += step.cpu;
        }
        if let Some(air) = &mut self.air {
            air.note(step);
        }
        for effect in &step.effects {
            match effect {
                Effect::Sent { to, payload } => self.route(step, *to, payload),
                Effect::Blocked(peer) => {
                    let (other, connection) = self.nodes.behind(*peer);
                    self.block(step.node, other, connection);
                }
                Effect::Penalized(peer) => {
                    let (other, connection) = self.nodes.behind(*peer);
                    self.penalize(step.node, other, connection);
                }
                Effect::Disconnected(peer) => {
                    let (other, connection) = self.nodes.behind(*peer);
                    self.end_connection(step.node, other, connection);
                }
                Effect::Relayed { peer, allowed } => {
                    let (other, connection) = self.nodes.behind(*peer);
                    self.links.set_relays(step.node, other, connection, *allowed);
                }
                Effect::Died => self.handle_crash(step.node),
                Effect::Persisted { .. } | Effect::Reported(_) | Effect::Stalled | Effect::Broken => {}
            }
        }
        if let (true, Cause::Message { via, by_group: true, payload }) = (self.nodes.relays > 0, &step.cause)
        {
            self.pass_on(step, *via, payload);
        }
        self.plan_wake(step.node);
        self.note_anonymous(step);
        self.follow_step(step);
    }

    /// Handles a node's crash: ends its connections, and schedules its return if that was planned.
    fn handle_crash(&mut self, node: NodeId) {
        self.disconnect_all(node);
        if let Some(down_for) = self.returns.remove(&node) {
            self.plan(down_for, ScheduledAction::Return(node));
        }
    }

    pub(crate) fn plan_wake(&mut self, node: NodeId) {
        let deaf = self.setup.sabotage == Sabotage::MissDeadlines && self.now > 60_000_000_000;
        let Some((deadline, wake)) = self.deadline_and_wake(node) else { return };
        if deadline < *wake && !deaf {
            *wake = deadline;
            let number = self.number(node);
            self.queue.push(deadline, number, WorldEvent::Wake);
        }
    }

    /// Time at which a node must be woken, and the time at which it will be.
    pub(crate) fn deadline_and_wake(&mut self, node: NodeId) -> Option<(u64, &mut u64)> {
        match node {
            NodeId::Kgc(id) => {
                let sim_node = self.kgc_node_mut(id)?;
                Some((sim_node.deadline, &mut sim_node.wake))
            }
            NodeId::Leader(ordinal) => {
                let sim_node = self.leaders.get_mut(usize::from(ordinal))?;
                Some((sim_node.deadline, &mut sim_node.wake))
            }
            NodeId::Relay(number) => {
                let sim_node = self.relays.get_mut(usize::from(number))?;
                Some((sim_node.deadline, &mut sim_node.wake))
            }
            NodeId::Edge(number) => {
                let sim_node = self.edges.get_mut(number as usize)?.as_deref_mut()?;
                Some((sim_node.deadline, &mut sim_node.wake))
            }
        }
    }

    /// A planned wake-up is here. Returns whether the node wants it; if it wants a later one, that is
    /// planned.
    pub(crate) fn take_wake_up(&mut self, node: NodeId) -> bool {
        let now = self.now;
        let Some((deadline, wake)) = self.deadline_and_wake(node) else { return false };
        if *wake <= now {
            *wake = NEVER;
        }
        if deadline <= now {
            return true;
        }
        self.plan_wake(node);
        false
    }

    fn route(&mut self, step: &Step, to: Destination, payload: &Arc<[u8]>) {
        let from = step.node;
        if self.setup.recording {
            if self.recorded.len() == RECORDED {
                self.recorded.pop_front();
            }
            self.recorded.push_back((from, to == Destination::Group, Arc::clone(payload)));
        }
        if self.setup.sabotage == Sabotage::KeepProofs && self.is_proof(payload) {
            return;
        }
        let at = u64::try_from(step.at.as_nanos()).unwrap_or(NEVER);
        match to {
            Destination::Peer(peer) => {
                let (node, connection) = self.nodes.behind(peer);
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

    /// Gossip: a leader reaches every node connected to it; an edge reaches its leader, which relays it if it
    /// knows the edge.
    pub(crate) fn spread(&mut self, at: u64, from: NodeId, payload: &Arc<[u8]>) {
        if self.nodes.relays > 0 {
            return self.publish_over_relays(at, from, payload);
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
            let Some(heard) = self.transmit(at, from, hub, payload, true) else { return };
            at = heard;
            if !self.network.reaches(from, hub) {
                return;
            }
        }
        let flight = self.air.as_mut().map(|air| air.broadcast(Duration::from_nanos(at), hub, payload));
        let message = flight.as_ref().and_then(|flight| self.begin_repeats(hub, payload, flight));
        let leaders = (0..self.nodes.leaders).map(NodeId::Leader);
        for to in leaders.chain((0..self.edge_count()).map(NodeId::Edge)) {
            if to == from || to == hub || self.links.connection(hub, to).is_none() {
                continue;
            }
            let in_range = self.hears_leaders(to);
            let arrives = match (&flight, &mut self.air) {
                (Some(flight), Some(air)) if Air::joins(hub, to) => {
                    if in_range && air.reaches(flight, to) {
                        let at = at.saturating_add(nanos(flight.after));
                        let arrives = self.carry(at, (from, hub), to, payload, true);
                        self.note_from_leader(message, to, arrives);
                        arrives
                    } else {
                        self.network.lose(payload);
                        None
                    }
                }
                _ => self.carry(at, (from, hub), to, payload, true),
            };
            self.note_hop((hub, to), (at, arrives), payload);
        }
    }

    /// Sends a message to one node, over the radio if there is one between them. Gives when the radio is done
    /// with it, unless it was lost there.
    pub(crate) fn transmit(
        &mut self,
        at: u64,
        from: NodeId,
        to: NodeId,
        payload: &Arc<[u8]>,
        by_group: bool,
    ) -> Option<u64> {
        let sent = at;
        let mut at = at;
        let legs = self.radio_legs(from, to);
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
        let arrives = self.carry(at, (from, from), to, payload, by_group);
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
        if self.setup.hops {
            let (sent, arrives) = (Duration::from_nanos(times.0), times.1.map(Duration::from_nanos));
            self.hops.push(Hop { from, to, sent, arrives, payload: Arc::clone(payload) });
        }
    }

    /// Tells an observer of the hops, and of the stations' datagrams, since it was last told of some.
    pub(crate) fn report_hops(&mut self, observer: &mut dyn StepObserver<S>) {
        self.hops.drain(..).for_each(|hop| observer.on_hop(&hop));
        self.report_datagrams(observer);
    }

    /// Hands a message to the network; `via` is whom the receiver has it from. Gives when it arrives first,
    /// unless it is lost.
    pub(crate) fn carry(
        &mut self,
        at: u64,
        (from, via): (NodeId, NodeId),
        to: NodeId,
        payload: &Arc<[u8]>,
        by_group: bool,
    ) -> Option<u64> {
        let connection = self.links.connection(via, to)?;
        let mut first = None;
        let mut last = self.last_between(via, to).map(|last| *last);
        let (hub, number) = (self.number(via), self.number(to));
        let queue = &mut self.queue;
        self.network.carry(from, to, payload, &mut |arrival| {
            let due = WorldEvent::Message { via: hub, connection, by_group, payload: arrival.payload };
            let mut arrives = at.saturating_add(arrival.after);
            if let Some(last) = &mut last {
                arrives = arrives.max(*last);
                *last = arrives;
            }
            first = Some(first.map_or(arrives, |first: u64| first.min(arrives)));
            queue.push(arrives, number, due);
        });
        if let (Some(kept), Some(last)) = (self.last_between(via, to), last) {
            *kept = last;
        }
        first
    }

    /// Returns true if something that is due can still happen: a message dies with its connection.
    pub(crate) fn is_deliverable(&self, node: NodeId, due: &WorldEvent) -> bool {
        match due {
            WorldEvent::Message { via, connection, .. } => {
                self.links.connection(node, self.nodes.node(*via as usize)) == Some(*connection)
            }
            WorldEvent::Connected { other, connection, .. } => {
                self.links.connection(node, self.nodes.node(*other as usize)) == Some(*connection)
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
