//! Checks group messages: what is received was sent, and is received once.

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::Suite;
use quiver_group::{EdgeEvent, LeaderEvent};

use super::{Invariant, Invariants};
use crate::{NodeEvent, NodeId, Step, World, message_number};

/// Messages sent, and their receivers.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupMessages {
    said: BTreeSet<u32>,
    heard: BTreeMap<NodeId, BTreeSet<u32>>,
}

impl GroupMessages {
    pub(super) fn said(&mut self, number: u32) {
        self.said.insert(number);
    }
}

impl<S: Suite> Invariants<S> {
    pub(super) fn observe_group_messages(&mut self, world: &World<S>, step: &Step) {
        for event in step.events() {
            let (NodeEvent::Edge(EdgeEvent::Message { data, channel, .. })
            | NodeEvent::Leader(LeaderEvent::Message { data, channel, .. })) = event
            else {
                continue;
            };
            if channel.as_str() == crate::ibe_orders::CHANNEL {
                self.observe_order(world, step, data);
                continue;
            }
            let said = message_number(data).filter(|number| self.group_messages.said.contains(number));
            self.require(Invariant::Delivery, step, said.is_some(), || {
                "received a message that nobody sent".into()
            });
            let Some(number) = said else { continue };
            let first = self.group_messages.heard.entry(step.node).or_default().insert(number);
            self.require(Invariant::Delivery, step, first, || format!("received message {number} twice"));
            if let NodeId::Edge(edge) = step.node {
                let authorised = world.fleet().authorises(edge);
                self.require(Invariant::NoUnauthorisedMember, step, authorised, || {
                    format!("received message {number}")
                });
            }
        }
    }

    /// Receivers of a message.
    pub fn heard(&self, number: u32) -> impl Iterator<Item = NodeId> + '_ {
        self.group_messages
            .heard
            .iter()
            .filter(move |(_, heard)| heard.contains(&number))
            .map(|(node, _)| *node)
    }
}
