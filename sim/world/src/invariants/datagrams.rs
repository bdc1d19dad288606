//! Checks the group's datagrams: what a station opens was sealed by the member in that slot under that epoch's
//! key, is opened once, and comes from a member to a member.

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{Epoch, Slot, Suite};

use super::keys::show;
use super::{Invariant, Invariants, Violation};
use crate::mavlink::{DatagramEvent, DatagramEventKind};
use crate::{NodeId, World};

/// Circumstances in which a payload was sealed.
#[derive(Clone, Copy, Debug)]
struct SealingContext {
    sender: NodeId,
    epoch: Epoch,
    slot: Slot,
}

/// Payloads sealed, and by whom they were opened.
#[derive(Clone, Debug, Default)]
pub(super) struct SealedPayloads {
    sealed: BTreeMap<Vec<u8>, SealingContext>,
    /// Payloads by node and its start, because a machine may not know what it received in an earlier life.
    opened: BTreeMap<(NodeId, u32), BTreeSet<Vec<u8>>>,
}

impl<S: Suite> Invariants<S> {
    pub(super) fn observe_datagram(&mut self, world: &World<S>, event: &DatagramEvent) {
        match &event.kind {
            DatagramEventKind::Sealed { epoch, slot, payloads } => {
                self.observe_sealed(world, event, (*epoch, *slot), payloads);
            }
            DatagramEventKind::Transmitted { .. } => {}
            DatagramEventKind::Opened { slot, payload } => self.observe_opened(world, event, *slot, payload),
        }
    }

    /// A member seals under the key of the epoch that it holds, in which it is. The adversary seals under
    /// whichever key it has.
    fn observe_sealed(
        &mut self,
        world: &World<S>,
        event: &DatagramEvent,
        (epoch, slot): (Epoch, Slot),
        payloads: &[Vec<u8>],
    ) {
        let sealed = SealingContext { sender: event.node, epoch, slot };
        self.datagrams.sealed.extend(payloads.iter().map(|payload| (payload.clone(), sealed)));
        if world.station_captured(event.node) {
            return;
        }
        let held = current_epoch(world, event.node);
        self.demand(event, held == Some(epoch), || {
            format!("sealed under {} and holds {}", show(epoch), held.map(show).unwrap_or_default())
        });
        let member = self.is_in(event.node, epoch);
        self.demand(event, member, || format!("sealed under {}, which it is not in", show(epoch)));
    }

    fn observe_opened(&mut self, world: &World<S>, event: &DatagramEvent, slot: Slot, payload: &[u8]) {
        let sealed = self.datagrams.sealed.get(payload).copied();
        self.demand(event, sealed.is_some(), || format!("opened what nobody sealed, of slot {slot}"));
        let Some(SealingContext { sender, epoch, slot: from }) = sealed else { return };
        self.demand(event, slot == from, || {
            format!("opened as of slot {slot} what {sender} sealed in slot {from}")
        });
        let life = world.life(event.node);
        let opened = self.datagrams.opened.entry((event.node, life)).or_default();
        let first = opened.insert(payload.to_vec());
        self.demand(event, first, || format!("opened a payload of {sender} twice"));
        // §20.8: after a removal the removed opens nothing, whatever key it kept.
        let member = self.is_in(event.node, epoch);
        self.demand(event, member, || {
            format!("opened what {sender} sealed under {}, without being in it", show(epoch))
        });
        if let NodeId::Edge(edge) = event.node {
            let authorised = world.fleet().authorises(edge);
            self.demand(event, authorised, || format!("opened a payload of {sender}"));
        }
        // And nobody who has the new key takes anything from it. The adversary may take what it likes.
        let held = current_epoch(world, event.node).filter(|_| !world.station_captured(event.node));
        let taken = held.is_none_or(|held| self.is_in(sender, held));
        self.demand(event, taken, || {
            format!("took a payload of {sender}, which is not in {}", held.map(show).unwrap_or_default())
        });
    }

    /// Returns true if a node is in an epoch, as far as that is known.
    fn is_in(&self, node: NodeId, epoch: Epoch) -> bool {
        let Some(made) = self.epochs.get(&epoch) else { return false };
        match node {
            NodeId::Edge(edge) => made.members.as_ref().is_none_or(|members| members.contains(&edge)),
            NodeId::Leader(ordinal) => made.leader == ordinal,
            NodeId::Kgc(_) | NodeId::Relay(_) => false,
        }
    }

    fn demand(&mut self, event: &DatagramEvent, holds: bool, detail: impl FnOnce() -> String) {
        self.checks += 1;
        if !holds {
            let (invariant, at, node) = (Invariant::Datagrams, event.at, Some(event.node));
            self.violations.push(Violation { invariant, at, node, detail: detail() });
        }
    }
}

/// The epoch that a node's machine holds.
fn current_epoch<S: Suite>(world: &World<S>, node: NodeId) -> Option<Epoch> {
    match node {
        NodeId::Edge(edge) => world.edge(edge)?.status().epoch,
        NodeId::Leader(ordinal) => world.leader(ordinal)?.status().epoch,
        NodeId::Kgc(_) | NodeId::Relay(_) => None,
    }
}
