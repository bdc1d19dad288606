//! Checks the group's datagrams: what a station opens was sealed by the member in that slot under that epoch's
//! key, is opened once, and comes from a member to a member.

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{Epoch, Slot, Suite};

use super::{DatagramEvent, DatagramEventKind};
use crate::invariants::history::show;
use crate::invariants::{Evidence, Invariant, InvariantCheck};
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
pub(crate) struct SealedPayloads {
    sealed: BTreeMap<Vec<u8>, SealingContext>,
    /// Payloads by node and its start, because a machine may not know what it received in an earlier life.
    opened: BTreeMap<(NodeId, u32), BTreeSet<Vec<u8>>>,
}

impl<S: Suite> InvariantCheck<S> for SealedPayloads {
    fn on_datagram(&mut self, world: &World<S>, event: &DatagramEvent, evidence: &mut Evidence) {
        match &event.kind {
            DatagramEventKind::Sealed { epoch, slot, payloads } => {
                self.observe_sealed(world, event, (*epoch, *slot), payloads, evidence);
            }
            DatagramEventKind::Transmitted { .. } => {}
            DatagramEventKind::Opened { slot, payload } => {
                self.observe_opened(world, event, *slot, payload, evidence);
            }
        }
    }
}

impl SealedPayloads {
    /// A member seals under the key of the epoch that it holds, in which it is. The adversary seals under
    /// whichever key it has.
    fn observe_sealed<S: Suite>(
        &mut self,
        world: &World<S>,
        event: &DatagramEvent,
        (epoch, slot): (Epoch, Slot),
        payloads: &[Vec<u8>],
        evidence: &mut Evidence,
    ) {
        let sealed = SealingContext { sender: event.node, epoch, slot };
        self.sealed.extend(payloads.iter().map(|payload| (payload.clone(), sealed)));
        if world.station_captured(event.node) {
            return;
        }
        let held = current_epoch(world, event.node);
        demand(evidence, event, held == Some(epoch), || {
            format!("sealed under {} and holds {}", show(epoch), held.map(show).unwrap_or_default())
        });
        let member = evidence.history.is_in(event.node, epoch);
        demand(evidence, event, member, || format!("sealed under {}, which it is not in", show(epoch)));
    }

    fn observe_opened<S: Suite>(
        &mut self,
        world: &World<S>,
        event: &DatagramEvent,
        slot: Slot,
        payload: &[u8],
        evidence: &mut Evidence,
    ) {
        let sealed = self.sealed.get(payload).copied();
        demand(evidence, event, sealed.is_some(), || format!("opened what nobody sealed, of slot {slot}"));
        let Some(SealingContext { sender, epoch, slot: from }) = sealed else { return };
        demand(evidence, event, slot == from, || {
            format!("opened as of slot {slot} what {sender} sealed in slot {from}")
        });
        let life = world.life(event.node);
        let opened = self.opened.entry((event.node, life)).or_default();
        let first = opened.insert(payload.to_vec());
        demand(evidence, event, first, || format!("opened a payload of {sender} twice"));
        // §20.8: after a removal the removed opens nothing, whatever key it kept.
        let member = evidence.history.is_in(event.node, epoch);
        demand(evidence, event, member, || {
            format!("opened what {sender} sealed under {}, without being in it", show(epoch))
        });
        if let NodeId::Edge(edge) = event.node {
            let authorised = world.fleet().authorises(edge);
            demand(evidence, event, authorised, || format!("opened a payload of {sender}"));
        }
        // And nobody who has the new key takes anything from it. The adversary may take what it likes.
        let held = current_epoch(world, event.node).filter(|_| !world.station_captured(event.node));
        let taken = held.is_none_or(|held| evidence.history.is_in(sender, held));
        demand(evidence, event, taken, || {
            format!("took a payload of {sender}, which is not in {}", held.map(show).unwrap_or_default())
        });
    }
}

/// Notes a violation if something that must hold of a datagram does not.
fn demand(evidence: &mut Evidence, event: &DatagramEvent, holds: bool, detail: impl FnOnce() -> String) {
    evidence.findings.demand(Invariant::Datagrams, (event.at, event.node), holds, detail);
}

/// The epoch that a node's machine holds.
fn current_epoch<S: Suite>(world: &World<S>, node: NodeId) -> Option<Epoch> {
    match node {
        NodeId::Edge(edge) => world.edge(edge)?.status().epoch,
        NodeId::Leader(ordinal) => world.leader(ordinal)?.status().epoch,
        NodeId::Kgc(_) | NodeId::Relay(_) => None,
    }
}
