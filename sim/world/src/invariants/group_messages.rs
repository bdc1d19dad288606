//! Checks group messages: what is received was sent, and is received once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quiver_ainq::Suite;
use quiver_group::{EdgeEvent, LeaderEvent};

use super::{Evidence, Invariant, InvariantCheck};
use crate::{Action, NodeEvent, NodeId, Step, World, message_number};

/// Messages sent, and their receivers.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupMessages {
    said: BTreeSet<u32>,
    heard: BTreeMap<NodeId, BTreeSet<u32>>,
}

impl<S: Suite> InvariantCheck<S> for GroupMessages {
    fn on_step(&mut self, world: &World<S>, step: &Step, evidence: &mut Evidence) {
        let findings = &mut evidence.findings;
        for event in step.events() {
            let (NodeEvent::Edge(EdgeEvent::Message { data, channel, .. })
            | NodeEvent::Leader(LeaderEvent::Message { data, channel, .. })) = event
            else {
                continue;
            };
            if channel.as_str() == crate::conditions::CHANNEL {
                continue;
            }
            let said = message_number(data).filter(|number| self.said.contains(number));
            findings.require(Invariant::Delivery, step, said.is_some(), || {
                "received a message that nobody sent".into()
            });
            let Some(number) = said else { continue };
            let first = self.heard.entry(step.node).or_default().insert(number);
            findings.require(Invariant::Delivery, step, first, || format!("received message {number} twice"));
            if let NodeId::Edge(edge) = step.node {
                let authorised = world.fleet().authorises(edge);
                findings.require(Invariant::NoUnauthorisedMember, step, authorised, || {
                    format!("received message {number}")
                });
            }
        }
    }

    fn on_action(&mut self, _: &World<S>, _: Duration, action: &Action, _: &mut Evidence) {
        if let Action::Talk { number, .. } = action {
            self.said.insert(*number);
        }
    }
}

impl GroupMessages {
    /// Receivers of a message.
    pub(super) fn heard(&self, number: u32) -> impl Iterator<Item = NodeId> + '_ {
        self.heard.iter().filter(move |(_, heard)| heard.contains(&number)).map(|(node, _)| *node)
    }
}
