//! What is heard was said, and is heard once.

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::Suite;
use quiver_role::{EdgeEvent, LeaderEvent};

use super::{Invariant, Invariants};
use crate::{Node, NodeEvent, Turn, World, spoken};

/// What was said, and who heard it.
#[derive(Clone, Debug, Default)]
pub(super) struct Speech {
    said: BTreeSet<u32>,
    heard: BTreeMap<Node, BTreeSet<u32>>,
}

impl Speech {
    pub(super) fn said(&mut self, number: u32) {
        self.said.insert(number);
    }
}

impl<S: Suite> Invariants<S> {
    pub(super) fn saw_speech(&mut self, world: &World<S>, turn: &Turn) {
        for event in turn.events() {
            let (NodeEvent::Edge(EdgeEvent::Message { data, channel, .. })
            | NodeEvent::Leader(LeaderEvent::Message { data, channel, .. })) = event
            else {
                continue;
            };
            if channel.as_str() == crate::conditional::CHANNEL {
                self.heard_order(world, turn, data);
                continue;
            }
            let said = spoken(data).filter(|number| self.speech.said.contains(number));
            self.require(Invariant::Delivery, turn, said.is_some(), || "heard what nobody said".into());
            let Some(number) = said else { continue };
            let first = self.speech.heard.entry(turn.node).or_default().insert(number);
            self.require(Invariant::Delivery, turn, first, || format!("heard {number} twice"));
            if let Node::Edge(edge) = turn.node {
                let authorised = world.fleet().authorises(edge);
                self.require(Invariant::NoUnauthorisedMember, turn, authorised, || format!("heard {number}"));
            }
        }
    }

    /// Who heard a message.
    pub fn heard(&self, number: u32) -> impl Iterator<Item = Node> + '_ {
        self.speech.heard.iter().filter(move |(_, heard)| heard.contains(&number)).map(|(node, _)| *node)
    }
}
