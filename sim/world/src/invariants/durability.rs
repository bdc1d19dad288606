//! Checks persistence: a crash loses nothing that was acknowledged.

use std::collections::BTreeSet;

use quiver_ainq::{Epoch, KgcId, Suite};
use quiver_group::LeaderEvent;

use super::history::show;
use super::{Evidence, Findings, Invariant, InvariantCheck, died};
use crate::{Cause, Effect, NodeEvent, NodeId, Step, World};

/// State of an edge that must survive a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EdgeMemory {
    enrolled: bool,
    boot_no: u32,
    group: Option<String>,
    held: Option<(Epoch, [u8; 32])>,
}

/// State of every node after its last complete step; `None` while that is uncertain because it died in the
/// middle of one.
#[derive(Clone, Debug)]
pub(super) struct Durability {
    edges: Vec<Option<EdgeMemory>>,
    /// Names of the members, by the leader's ordinal.
    leaders: Vec<Option<BTreeSet<String>>>,
    /// Keys issued and number of the revocation list, by KGC.
    kgcs: Vec<(usize, u64)>,
}

impl Durability {
    pub(super) fn new(edges: usize, leaders: usize, kgcs: usize) -> Self {
        Self { edges: vec![None; edges], leaders: vec![None; leaders], kgcs: vec![(0, 0); kgcs] }
    }
}

impl<S: Suite> InvariantCheck<S> for Durability {
    fn on_step(&mut self, world: &World<S>, step: &Step, evidence: &mut Evidence) {
        let findings = &mut evidence.findings;
        let starts = step.cause == Cause::Start;
        let broken = step.effects.contains(&Effect::Broken);
        findings.require(Invariant::Persistence, step, !broken, || {
            "cannot be restored from its own records".into()
        });
        match step.node {
            NodeId::Kgc(id) => self.kgc_records(world, step, id, findings),
            NodeId::Leader(ordinal) => self.leader_records(world, step, ordinal, starts, findings),
            NodeId::Relay(_) => {}
            NodeId::Edge(number) => self.edge_records(world, step, number, starts, findings),
        }
    }
}

impl Durability {
    fn kgc_records<S: Suite>(&mut self, world: &World<S>, step: &Step, id: KgcId, findings: &mut Findings) {
        // Keys issued at the time of a crash are only known if they were reported.
        let Some(kgc) = world.kgc(id) else { return };
        let (issued, list) = (kgc.issued(), kgc.revocation_number());
        let place = usize::from(id) - 1;
        let Some(before) = self.kgcs.get(place).copied() else { return };
        findings.require(Invariant::Persistence, step, issued >= before.0 && list >= before.1, || {
            format!("knows {issued} keys and list {list}, but did know {} and {}", before.0, before.1)
        });
        if let Some(memory) = self.kgcs.get_mut(place).filter(|_| !world.stalled(step.node)) {
            *memory = (issued, list);
        }
    }

    fn leader_records<S: Suite>(
        &mut self,
        world: &World<S>,
        step: &Step,
        ordinal: u16,
        starts: bool,
        findings: &mut Findings,
    ) {
        let place = usize::from(ordinal);
        // A deputy's copy changes without an event.
        let deputies = world.leader_count() > 1;
        let changed = starts || deputies || died(step) || step.events().any(concerns_roster);
        let changed = changed || world.stalled(step.node);
        if !changed {
            return;
        }
        let now: Option<BTreeSet<String>> =
            world.leader(ordinal).map(|leader| leader.members().map(|(_, name)| name.to_string()).collect());
        let before = self.leaders.get(place).cloned().flatten();
        if let (true, Some(now), Some(before)) = (starts, &now, &before) {
            findings.require(Invariant::Persistence, step, now == before, || {
                let lost: Vec<_> = before.difference(now).cloned().collect();
                let risen: Vec<_> = now.difference(before).cloned().collect();
                format!(
                    "after its start the roster lacks [{}] and has [{}] again",
                    lost.join(", "),
                    risen.join(", ")
                )
            });
        }
        // State that was not durable at a stall or crash may be lost.
        let certain = !died(step) && !world.stalled(step.node);
        if let Some(memory) = self.leaders.get_mut(place) {
            *memory = now.filter(|_| certain);
        }
    }

    fn edge_records<S: Suite>(
        &mut self,
        world: &World<S>,
        step: &Step,
        number: u32,
        starts: bool,
        findings: &mut Findings,
    ) {
        let place = number as usize;
        // The durable state of an anonymous drone is its count of answers, which is checked elsewhere.
        let named = world.edge(number).filter(|_| !world.is_anonymous(number));
        let now = named.map(|edge| {
            let status = edge.status();
            EdgeMemory {
                enrolled: status.name.is_some(),
                boot_no: status.boot_no,
                group: status.group.map(|group| group.to_string()),
                held: status.epoch.zip(status.digest),
            }
        });
        let before = self.edges.get(place).cloned().flatten();
        if let (true, Some(now), Some(before)) = (starts, &now, &before) {
            findings.require(Invariant::Persistence, step, now == before, || {
                format!("was {} when it died and is {} now", describe(before), describe(now))
            });
        }
        let certain = !died(step) && !world.stalled(step.node);
        if let Some(memory) = self.edges.get_mut(place) {
            *memory = now.filter(|_| certain);
        }
    }
}

fn concerns_roster(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::Leader(LeaderEvent::EpochActivated { .. } | LeaderEvent::SteppedDown { .. }))
}

fn describe(memory: &EdgeMemory) -> String {
    let held =
        memory.held.map_or_else(|| "no epoch".to_string(), |(epoch, _)| format!("epoch {}", show(epoch)));
    let group = memory.group.as_deref().unwrap_or("no group");
    let enrolled = if memory.enrolled { "enrolled" } else { "not enrolled" };
    format!("({enrolled}, start {}, wants {group}, holds {held})", memory.boot_no)
}
