//! Checks anonymous admission: members are exactly those that the policy admits, for as long as their period
//! lasts, and no leader asks more often than it may.

use std::collections::{BTreeMap, BTreeSet};

use quiver_admission::{AdmissionMessage, AnonymousEvent};
use quiver_ainq::{Epoch, Suite, UnixTime};
use quiver_group::LeaderEvent;
use quiver_machine::Destination;

use super::{AdmissionNodeEvent, is_unsatisfied, read};
use crate::invariants::history::{GroupHistory, show};
use crate::invariants::{Evidence, Invariant, InvariantCheck, died};
use crate::{Effect, NodeEvent, NodeId, Step, World};

/// Drones behind pseudonyms, which no node knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pseudonyms {
    edges: BTreeMap<[u8; 16], u32>,
    /// Pseudonym under which each was in last.
    last: BTreeMap<u32, [u8; 16]>,
}

impl Pseudonyms {
    /// The pseudonym under which an edge was in last.
    pub(crate) fn of(&self, edge: u32) -> Option<[u8; 16]> {
        self.last.get(&edge).copied()
    }

    /// The edge with a pseudonym.
    pub(crate) fn edge(&self, pseudonym: &[u8; 16]) -> Option<u32> {
        self.edges.get(pseudonym).copied()
    }

    /// Number of pseudonyms.
    pub(crate) fn count(&self) -> usize {
        self.edges.len()
    }
}

/// Answers of anonymous drones to leaders.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnonymousAdmission {
    /// The lives in which something was answered already.
    answering: BTreeSet<(u32, u32)>,
    /// Number of answers by edge, leader and period.
    answered: BTreeMap<(u32, NodeId, u64), u32>,
    /// Time since which the disk of a leader holds up what it decided then.
    held_up: BTreeMap<NodeId, UnixTime>,
}

impl<S: Suite> InvariantCheck<S> for AnonymousAdmission {
    fn on_step(&mut self, world: &World<S>, step: &Step, evidence: &mut Evidence) {
        match step.node {
            NodeId::Edge(number) if world.is_anonymous(number) => {
                observe_drone(world, step, number, evidence);
                self.count_answers(world, step, number, evidence);
            }
            NodeId::Leader(ordinal) => {
                let activated = step
                    .events()
                    .any(|event| matches!(event, NodeEvent::Leader(LeaderEvent::EpochActivated { .. })));
                // An epoch is said to be in force once it is durable, and was made before.
                let now = world.clock(step.node).unix;
                let made = self.held_up.get(&step.node).copied().unwrap_or(now);
                if activated && !died(step) {
                    check_roster(world, step, (ordinal, made), evidence);
                }
                if world.stalled(step.node) {
                    self.held_up.entry(step.node).or_insert(now);
                } else {
                    self.held_up.remove(&step.node);
                }
            }
            NodeId::Edge(_) | NodeId::Kgc(_) | NodeId::Relay(_) => {}
        }
    }
}

impl AnonymousAdmission {
    /// The first step of the exchange that a drone takes after a leader's offer is an answer.
    fn count_answers<S: Suite>(
        &mut self,
        world: &World<S>,
        step: &Step,
        number: u32,
        evidence: &mut Evidence,
    ) {
        let Some((checkpoint, (_, period))) = world.fleet().checkpoint().zip(world.shows(number)) else {
            return;
        };
        for effect in &step.effects {
            let Effect::Sent { to: Destination::Peer(peer), payload } = effect else { continue };
            if !matches!(read(world.fleet().deployment(), payload), Some(AdmissionMessage::Step(_)))
                || !self.answering.insert((number, world.life(step.node)))
            {
                continue;
            }
            let answers = self.answered.entry((number, world.behind(*peer).0, period)).or_default();
            *answers += 1;
            let (answers, most) = (*answers, checkpoint.answers());
            evidence.findings.require(Invariant::Persistence, step, answers <= most, || {
                format!("answered one leader {answers} times in a period, and may {most} times")
            });
        }
    }
}

/// Checks a step of an anonymous drone.
fn observe_drone<S: Suite>(world: &World<S>, step: &Step, number: u32, evidence: &mut Evidence) {
    let (findings, pseudonyms) = (&mut evidence.findings, &mut evidence.history.pseudonyms);
    let suffices = world.shows(number).map(|(suffices, _)| suffices);
    for event in step.events().filter_map(NodeEvent::of_feature::<AdmissionNodeEvent>) {
        match event {
            AdmissionNodeEvent::Anonymous(AnonymousEvent::Admitted { pseudonym, .. }) => {
                findings.require(Invariant::Admission, step, suffices == Some(true), || {
                    "got in although the policy keeps it out".into()
                });
                let first = pseudonyms.edges.insert(pseudonym.0, number).is_none();
                findings.require(Invariant::Unlinkability, step, first, || "has a pseudonym again".into());
                pseudonyms.last.insert(number, pseudonym.0);
            }
            AdmissionNodeEvent::Anonymous(AnonymousEvent::Ended(why)) if is_unsatisfied(why) => {
                findings.require(Invariant::Admission, step, suffices == Some(false), || {
                    "was told that it does not satisfy the policy, and does".into()
                });
            }
            _ => {}
        }
    }
}

/// Checks a new epoch that a leader made at this time: where a policy is demanded, no member is named, and no
/// anonymous one has outlived its period.
fn check_roster<S: Suite>(
    world: &World<S>,
    step: &Step,
    (ordinal, made): (u16, UnixTime),
    evidence: &mut Evidence,
) {
    let Some(leader) = world.leader(ordinal).filter(|_| world.fleet().checkpoint().is_some()) else {
        return;
    };
    let named = leader.members().count();
    let over = leader.anonymous_members().filter(|(_, member)| member.until <= made).count();
    let ends = leader.anonymous_members().map(|(_, member)| member.until).min();
    let valid_until = leader.status().valid_until;
    evidence.findings.require(Invariant::NoUnauthorisedMember, step, named == 0, || {
        format!("{named} are members by name, although a policy is demanded")
    });
    evidence.findings.require(Invariant::Admission, step, over == 0, || {
        format!("{over} are members although their period is over")
    });
    let outlives = ends.zip(valid_until).is_some_and(|(ends, valid)| valid > ends);
    evidence.findings.require(Invariant::Admission, step, !outlives || died(step), || {
        "has a key that is valid for longer than a membership lasts".into()
    });
    let stranger = |event: &NodeEvent| matches!(event, NodeEvent::Leader(LeaderEvent::Joined { .. }));
    evidence.findings.require(Invariant::NoUnauthorisedMember, step, !step.events().any(stranger), || {
        "admitted a drone by name although the group demands a policy".into()
    });
}

/// Describes what is wrong with an anonymous drone's membership once faults are over.
pub(crate) fn out_of_place<S: Suite>(
    history: &GroupHistory,
    world: &World<S>,
    number: u32,
    newest: Epoch,
    key: Option<[u8; 32]>,
) -> Option<String> {
    match history.held_key(world, number) {
        None => world
            .may_be_admitted(number)
            .then(|| format!("is not a member although it may be; the newest epoch is {}", show(newest))),
        Some(held) if !world.wants_in(number) => (held.epoch == newest)
            .then(|| format!("is not a member and holds the newest epoch {}", show(newest))),
        // A drone that may not return is a member for as long as the period lasts.
        Some(held) => (held.epoch != newest || Some(held.key) != key)
            .then(|| format!("holds epoch {}, the newest is {}", show(held.epoch), show(newest))),
    }
}
