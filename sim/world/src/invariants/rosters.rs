//! Checks rosters: no unauthorised member, ever.

use std::time::Duration;

use quiver_ainq::{Epoch, Suite};
use quiver_enrolment::KgcEvent;
use quiver_group::LeaderEvent;
use quiver_testbed::matching;

use super::history::{Removals, RevocationRequest, edge_number};
use super::{Evidence, Invariant, InvariantCheck, died};
use crate::{Action, Cause, Effect, NodeEvent, NodeId, Step, World};

/// Members of new epochs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rosters;

impl<S: Suite> InvariantCheck<S> for Rosters {
    fn on_step(&mut self, world: &World<S>, step: &Step, evidence: &mut Evidence) {
        match step.node {
            NodeId::Kgc(_) => observe_revocation(world, step, &mut evidence.history.removals),
            NodeId::Leader(ordinal) => {
                let activated = step.events().filter_map(
                    matching!(NodeEvent::Leader(LeaderEvent::EpochActivated { epoch, .. }) => *epoch),
                );
                let last = activated.last();
                if let Some(epoch) = last.filter(|_| !died(step)) {
                    check_roster(world, step, ordinal, epoch, evidence);
                }
            }
            NodeId::Edge(_) | NodeId::Relay(_) => {}
        }
    }

    fn on_action(&mut self, _: &World<S>, _: Duration, action: &Action, evidence: &mut Evidence) {
        let removals = &mut evidence.history.removals;
        match action {
            Action::Revoke(edge) => removals.to_be_revoked = Some(*edge),
            Action::Evict(edge) => {
                removals.asked_to_evict.insert(*edge);
            }
            _ => {}
        }
    }
}

/// Notes which edges a KGC revokes.
fn observe_revocation<S: Suite>(world: &World<S>, step: &Step, removals: &mut Removals) {
    // One that its disk held up before takes no command.
    let held_up = world.stalled(step.node) && !step.effects.contains(&Effect::Stalled);
    // A KGC that died before its record was durable has not taken the command.
    let kept = step.effects.iter().any(|effect| matches!(effect, Effect::Persisted { .. }));
    if kept {
        let written = removals.asked_to_revoke.iter_mut().filter(|it| it.unwritten.contains(&step.node));
        written.for_each(|it| it.unwritten.clear());
    }
    if step.cause == Cause::Start {
        removals.asked_to_revoke.retain_mut(|it| {
            let durable = it.unwritten.is_empty();
            it.unwritten.retain(|kgc| *kgc != step.node);
            durable || !it.unwritten.is_empty()
        });
    }
    if step.cause == Cause::Command("revoke")
        && (kept || !died(step))
        && !held_up
        && let Some(edge) = removals.to_be_revoked
    {
        let stalls = !kept && step.effects.contains(&Effect::Stalled);
        match removals.asked_to_revoke.iter_mut().find(|it| it.edge == edge) {
            Some(known) if !stalls => known.unwritten.clear(),
            Some(known) if !known.unwritten.is_empty() => known.unwritten.push(step.node),
            None if !removals.revoked.contains_key(&edge) => {
                let unwritten = if stalls { vec![step.node] } else { Vec::new() };
                removals.asked_to_revoke.push(RevocationRequest { edge, unwritten });
            }
            _ => {}
        }
    }
    for event in step.events() {
        if let NodeEvent::Kgc(KgcEvent::RevocationListSigned { number }) = event {
            for request in std::mem::take(&mut removals.asked_to_revoke) {
                removals.revoked.entry(request.edge).or_insert(*number);
            }
        }
    }
}

/// Checks the roster of a new epoch: every member is authorised, and none was evicted by this leader
/// before.
fn check_roster<S: Suite>(
    world: &World<S>,
    step: &Step,
    ordinal: u16,
    epoch: Epoch,
    evidence: &mut Evidence,
) {
    let (findings, removals) = (&mut evidence.findings, &mut evidence.history.removals);
    let Some(leader) = world.leader(ordinal) else { return };
    let list = leader.status().revocation_number;
    let mut wrong = Vec::new();
    for (_, name) in leader.members() {
        let Some(edge) = edge_number(name.as_str()) else {
            wrong.push((name.to_string(), "is not a drone of this world"));
            continue;
        };
        let evicted = removals.evicted.get(&(ordinal, edge)).is_some_and(|since| *since < epoch);
        let revoked = removals.revoked.get(&edge).is_some_and(|number| *number <= list);
        if !world.fleet().authorises(edge) {
            wrong.push((name.to_string(), "has no business in the group"));
        } else if evicted {
            wrong.push((name.to_string(), "was evicted before"));
        } else if revoked {
            wrong.push((name.to_string(), "is on the revocation list that the leader holds"));
        }
    }
    findings.checks += 1;
    for (name, what) in wrong {
        let detail = format!("{name} is a member and {what}");
        findings.violate(Invariant::NoUnauthorisedMember, step.at, Some(step.node), detail);
    }
    for event in step.events() {
        if let NodeEvent::Leader(LeaderEvent::Removed { name, evicted: true, .. }) = event
            && let Some(edge) = edge_number(name.as_str())
        {
            removals.evicted.entry((ordinal, edge)).or_insert(epoch);
        }
    }
}
