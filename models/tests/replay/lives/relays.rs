//! Relays between a leader and drones: the messages that they carry, and those that they hand to drones.

use std::sync::Arc;

use quiver_ainq::EpochPart;
use quiver_message::Message;
use quiver_relay::carried;
use quiver_world::NodeId;

use super::{Recorder, S, name};
use crate::recording::Step;

/// The messages that come to a node in these bytes.
pub(super) fn received(at: NodeId, via: NodeId, payload: &[u8]) -> Vec<Vec<u8>> {
    match (at, via) {
        (NodeId::Leader(_), NodeId::Relay(_)) => carried(payload),
        _ => vec![payload.to_vec()],
    }
}

impl Recorder {
    /// The leader that a node knows behind one that it dials.
    pub(super) fn behind(&self, hub: NodeId) -> NodeId {
        match hub {
            NodeId::Relay(relay) => NodeId::Leader(relay / self.relays),
            hub => hub,
        }
    }

    /// The messages that a node sends in these bytes to drones behind its relays.
    pub(super) fn carried(&self, from: NodeId, payload: &[u8]) -> Vec<Arc<[u8]>> {
        match from {
            NodeId::Leader(_) if self.relays > 0 => carried(payload).into_iter().map(Arc::from).collect(),
            _ => Vec::new(),
        }
    }

    /// Takes the messages that a leader sends to drones behind a relay.
    pub(super) fn sent_to_a_relay(&mut self, leader: NodeId, relay: NodeId, payload: &[u8]) {
        for bytes in carried(payload) {
            self.sent(leader, relay, &bytes);
        }
    }

    /// The node whose message a relay hands to a drone: its sender, or the leader of whose wraps it is a part.
    fn sender(&self, payload: &[u8], drone: NodeId) -> Option<NodeId> {
        if let Some(senders) = self.senders.get(payload) {
            return senders.iter().find(|sender| **sender != drone).copied();
        }
        match &*self.decode(payload)? {
            Message::Rekey(rekey) => match rekey.part {
                Some(EpochPart::Delta(_)) => Some(NodeId::Leader(rekey.header.core.epoch.ordinal())),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns true if another drone sent this, and not to the group.
    fn is_of_a_drone(&self, payload: &[u8], to: NodeId) -> bool {
        let published = |message: Arc<Message<S>>| {
            matches!(*message, Message::GroupMessage(_) | Message::EquivocationProof(_))
        };
        matches!(self.sender(payload, to), Some(NodeId::Edge(_)))
            && !self.decode(payload).is_some_and(published)
    }

    /// Takes a message that a relay hands to a drone.
    pub(super) fn handed_by_a_relay(&mut self, relay: u16, to: NodeId, payload: &Arc<[u8]>) {
        if self.hostile.contains(&relay) {
            if let Some(from) = self.sender(payload, to) {
                self.handed.insert((to, Arc::clone(payload)));
                let (from, to) = (name(from), name(to));
                self.steps.push(Step::Handed { from, to, bytes: payload.to_vec() });
            }
            return;
        }
        if self.is_of_a_drone(payload, to) {
            // The adversary says over a relay what another drone shows its leader: headers.
            let (to, over) = (name(to), name(NodeId::Relay(relay)));
            self.steps.push(Step::Injected { to, over, of: None, bytes: payload.to_vec() });
            return;
        }
        // Two relays may hand it the same message to the group.
        if let Some(sender) = self.sender(payload, to)
            && (!self.handed.contains(&(to, Arc::clone(payload)))
                || !matches!(self.decode(payload).as_deref(), Some(Message::GroupMessage(_))))
        {
            self.handed.insert((to, Arc::clone(payload)));
            self.sent(sender, to, payload);
        }
    }
}
