//! Group messages behind relays: a relay is a hub of the topic, as a leader is (docs/protocol.md, 21.3).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use quiver_testbed::NEVER;

use crate::world::{Wire, WireContext};
use crate::{NodeId, Step};

/// Published messages that are remembered, so that each node receives one once.
const GOSSIP: usize = 256;

/// Messages that were published to the group, the newest last, and the nodes that have each.
#[derive(Debug, Default)]
pub(crate) struct RelayGossip(VecDeque<(Arc<[u8]>, BTreeSet<NodeId>)>);

impl RelayGossip {
    /// The nodes that have a published message, or will.
    fn reached(&mut self, payload: &Arc<[u8]>) -> &mut BTreeSet<NodeId> {
        let gossip = &mut self.0;
        match gossip.iter().position(|(known, _)| Arc::ptr_eq(known, payload)) {
            Some(place) => gossip.swap(place, gossip.len() - 1),
            None => {
                if gossip.len() == GOSSIP {
                    gossip.pop_front();
                }
                gossip.push_back((Arc::clone(payload), BTreeSet::new()));
            }
        }
        &mut gossip.back_mut().expect("one was moved or added there").1
    }
}

impl Wire {
    /// A node publishes a message: a leader to its relays and the other leaders, an edge to those of its relays that
    /// pass on what it publishes.
    pub(crate) fn publish_over_relays(
        &mut self,
        context: &mut WireContext<'_>,
        at: u64,
        from: NodeId,
        payload: &Arc<[u8]>,
    ) {
        self.gossip.reached(payload).insert(from);
        match from {
            NodeId::Leader(_) => self.pass_to_neighbours(context, at, from, payload),
            NodeId::Edge(edge) => {
                for relay in self.index.relays_of(edge) {
                    if self.links.relays(relay, from) {
                        self.publish_to(context, at, (from, relay), payload);
                    }
                }
            }
            NodeId::Kgc(_) | NodeId::Relay(_) => {}
        }
    }

    /// A hub that has a published message passes it on if it relays for whom it has it from: a relay that of a drone
    /// to the leader and its other drones, and that of the leader to its drones.
    pub(crate) fn pass_on(
        &mut self,
        context: &mut WireContext<'_>,
        step: &Step,
        via: NodeId,
        payload: &Arc<[u8]>,
    ) {
        let node = step.node;
        let is_hub = match node {
            NodeId::Relay(_) => true,
            // Leaders pass on what comes over relays; what other leaders publish reaches their own relays.
            NodeId::Leader(_) => !matches!(via, NodeId::Leader(_)),
            NodeId::Kgc(_) | NodeId::Edge(_) => false,
        };
        if is_hub && (context.alive)(node) && self.links.relays(node, via) {
            let at = u64::try_from(step.at.as_nanos()).unwrap_or(NEVER);
            self.gossip.reached(payload).insert(via);
            self.pass_to_neighbours(context, at, node, payload);
        }
    }

    fn pass_to_neighbours(
        &mut self,
        context: &mut WireContext<'_>,
        at: u64,
        hub: NodeId,
        payload: &Arc<[u8]>,
    ) {
        for to in self.links.neighbours(hub) {
            if !matches!(to, NodeId::Kgc(_)) {
                self.publish_to(context, at, (hub, to), payload);
            }
        }
    }

    /// Hands a published message to a node that has it from nobody else.
    fn publish_to(
        &mut self,
        context: &mut WireContext<'_>,
        at: u64,
        (from, to): (NodeId, NodeId),
        payload: &Arc<[u8]>,
    ) {
        if self.links.connection(from, to).is_none() || self.gossip.reached(payload).contains(&to) {
            return;
        }
        let arrives = self.carry(context, at, (from, from), to, payload, true);
        self.note_hop((from, to), (at, arrives), payload);
        if arrives.is_some() {
            self.gossip.reached(payload).insert(to);
        }
    }
}
