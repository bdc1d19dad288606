//! Checks IBE orders: none opens before enough KGCs have released its key, all open afterwards.

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{KgcId, Suite};

use super::{Invariant, Invariants};
use crate::{Cause, NodeEvent, NodeId, Step, World, message_number};

/// Received and opened orders by edge.
#[derive(Clone, Debug, Default)]
pub(super) struct Orders {
    /// Numbers of orders by their bytes.
    sealed: BTreeMap<Vec<u8>, u32>,
    /// Orders received by each edge.
    heard: BTreeMap<u32, BTreeSet<u32>>,
    opened: BTreeSet<(u32, u32)>,
    approved: BTreeSet<KgcId>,
    /// KGCs that lied at some time: a drone that found out does not ask them again.
    lied: BTreeSet<KgcId>,
}

impl<S: Suite> Invariants<S> {
    /// Number of orders opened.
    pub fn opened(&self) -> usize {
        self.orders.opened.len()
    }

    pub(super) fn order_sealed(&mut self, world: &World<S>, number: u32) {
        self.orders.sealed.extend(world.fleet().order(number).map(|sealed| (sealed, number)));
    }

    pub(super) fn approved(&mut self, kgc: KgcId) {
        self.orders.approved.insert(kgc);
    }

    pub(super) fn lied(&mut self, kgc: KgcId) {
        self.orders.lied.insert(kgc);
    }

    /// Returns true if as many operators have approved the second phase as it takes KGCs to release its key.
    fn is_released(&self, world: &World<S>) -> bool {
        self.orders.approved.len() >= usize::from(world.setup().threshold)
    }

    pub(super) fn observe_order(&mut self, world: &World<S>, step: &Step, data: &[u8]) {
        let number = self.orders.sealed.get(data).copied();
        self.require(Invariant::Delivery, step, number.is_some(), || {
            "has an order that was never sent".into()
        });
        if let (NodeId::Edge(edge), Some(number)) = (step.node, number) {
            let authorised = world.fleet().authorises(edge);
            self.require(Invariant::NoUnauthorisedMember, step, authorised, || format!("has order {number}"));
            self.orders.heard.entry(edge).or_default().insert(number);
        }
    }

    pub(super) fn observe_orders(&mut self, world: &World<S>, step: &Step) {
        let NodeId::Edge(edge) = step.node else { return };
        if step.cause == Cause::Start {
            self.orders.heard.remove(&edge);
        }
        for event in step.events() {
            let NodeEvent::Opened(text) = event else { continue };
            let number = message_number(text);
            let has = number.is_some_and(|number| {
                self.orders.heard.get(&edge).is_some_and(|heard| heard.contains(&number))
            });
            self.require(Invariant::Delivery, step, has, || "opened an order that it does not have".into());
            let (released, approved) = (self.is_released(world), self.orders.approved.len());
            self.require(Invariant::OpensWhenReleased, step, released, || {
                format!("opened an order for phase 2, which {approved} operators had approved")
            });
            self.orders.opened.extend(number.map(|number| (edge, number)));
        }
    }

    /// Edges with an order that should be open by now.
    pub(super) fn unopened(&self, world: &World<S>) -> Vec<(NodeId, String)> {
        let honest = self.orders.approved.difference(&self.orders.lied).count();
        if honest < usize::from(world.setup().threshold) {
            return Vec::new();
        }
        let waits = |(edge, heard): (&u32, &BTreeSet<u32>)| {
            world.edge(*edge)?;
            // A revoked edge gets no key.
            if self.asked_to_revoke.contains(edge) || self.revoked.contains_key(edge) {
                return None;
            }
            let number = heard.iter().find(|number| !self.orders.opened.contains(&(*edge, **number)))?;
            Some((NodeId::Edge(*edge), format!("has not opened order {number}, although phase 2 has begun")))
        };
        self.orders.heard.iter().filter_map(waits).collect()
    }
}
