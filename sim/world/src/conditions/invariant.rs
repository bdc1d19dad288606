//! Checks IBE orders: none opens before enough KGCs have released its key, all open afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quiver_ainq::{KgcId, Suite};
use quiver_group::{EdgeEvent, LeaderEvent};

use super::ConditionNodeEvent;
use crate::invariants::convergence::LeadingEpoch;
use crate::invariants::{Evidence, Findings, Invariant, InvariantCheck};
use crate::{Action, Cause, NodeEvent, NodeId, Step, World, message_number};

/// Received and opened orders by edge.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orders {
    /// Numbers of orders by their bytes.
    sealed: BTreeMap<Vec<u8>, u32>,
    /// Orders received by each edge.
    heard: BTreeMap<u32, BTreeSet<u32>>,
    opened: BTreeSet<(u32, u32)>,
    approved: BTreeSet<KgcId>,
    /// KGCs that lied at some time: a drone that found out does not ask them again.
    lied: BTreeSet<KgcId>,
}

impl<S: Suite> InvariantCheck<S> for Orders {
    fn on_step(&mut self, world: &World<S>, step: &Step, evidence: &mut Evidence) {
        let findings = &mut evidence.findings;
        for event in step.events() {
            if let NodeEvent::Edge(EdgeEvent::Message { data, channel, .. })
            | NodeEvent::Leader(LeaderEvent::Message { data, channel, .. }) = event
                && channel.as_str() == super::CHANNEL
            {
                self.observe_received(world, step, data, findings);
            }
        }
        if let NodeId::Edge(edge) = step.node {
            self.observe_opened(world, step, edge, findings);
        }
    }

    fn on_action(&mut self, world: &World<S>, _: Duration, action: &Action, _: &mut Evidence) {
        match action {
            Action::Order(number) => {
                self.sealed.extend(world.fleet().order(*number).map(|sealed| (sealed, *number)));
            }
            Action::Approve(kgc) => {
                self.approved.insert(*kgc);
            }
            Action::Lie { kgc, lies: true } => {
                self.lied.insert(*kgc);
            }
            _ => {}
        }
    }

    fn stragglers(&self, world: &World<S>, evidence: &Evidence, _: &LeadingEpoch) -> Vec<(NodeId, String)> {
        self.unopened(world, evidence)
    }
}

impl Orders {
    /// Number of orders opened.
    pub(crate) fn opened(&self) -> usize {
        self.opened.len()
    }

    /// Returns true if as many operators have approved the second phase as it takes KGCs to release its key.
    fn is_released<S: Suite>(&self, world: &World<S>) -> bool {
        self.approved.len() >= usize::from(world.setup().threshold)
    }

    fn observe_received<S: Suite>(
        &mut self,
        world: &World<S>,
        step: &Step,
        data: &[u8],
        findings: &mut Findings,
    ) {
        let number = self.sealed.get(data).copied();
        findings.require(Invariant::Delivery, step, number.is_some(), || {
            "has an order that was never sent".into()
        });
        if let (NodeId::Edge(edge), Some(number)) = (step.node, number) {
            let authorised = world.fleet().authorises(edge);
            findings
                .require(Invariant::NoUnauthorisedMember, step, authorised, || format!("has order {number}"));
            self.heard.entry(edge).or_default().insert(number);
        }
    }

    fn observe_opened<S: Suite>(
        &mut self,
        world: &World<S>,
        step: &Step,
        edge: u32,
        findings: &mut Findings,
    ) {
        if step.cause == Cause::Start {
            self.heard.remove(&edge);
        }
        for event in step.events() {
            let Some(ConditionNodeEvent::Opened(text)) = event.of_feature::<ConditionNodeEvent>() else {
                continue;
            };
            let number = message_number(text);
            let has = number
                .is_some_and(|number| self.heard.get(&edge).is_some_and(|heard| heard.contains(&number)));
            findings
                .require(Invariant::Delivery, step, has, || "opened an order that it does not have".into());
            let (released, approved) = (self.is_released(world), self.approved.len());
            findings.require(Invariant::OpensWhenReleased, step, released, || {
                format!("opened an order for phase 2, which {approved} operators had approved")
            });
            self.opened.extend(number.map(|number| (edge, number)));
        }
    }

    /// Edges with an order that should be open by now.
    fn unopened<S: Suite>(&self, world: &World<S>, evidence: &Evidence) -> Vec<(NodeId, String)> {
        let honest = self.approved.difference(&self.lied).count();
        if honest < usize::from(world.setup().threshold) {
            return Vec::new();
        }
        let waits = |(edge, heard): (&u32, &BTreeSet<u32>)| {
            world.edge(*edge)?;
            // A revoked edge gets no key.
            if evidence.history.removals.revokes(*edge) {
                return None;
            }
            let number = heard.iter().find(|number| !self.opened.contains(&(*edge, **number)))?;
            Some((NodeId::Edge(*edge), format!("has not opened order {number}, although phase 2 has begun")))
        };
        self.heard.iter().filter_map(waits).collect()
    }
}
