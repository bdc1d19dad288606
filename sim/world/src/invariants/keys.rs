//! Checks keys: agreement, forward and backward secrecy, no epoch regression.

use quiver_ainq::{Epoch, Suite};
use quiver_group::{EdgeEvent, LeaderEvent};

use super::history::{GroupHistory, HeldKey, KeyChange, MadeEpoch, edge_number, show};
use super::{Evidence, Findings, Invariant, InvariantCheck, died};
use crate::{NodeEvent, NodeId, Step, World};
use quiver_testbed::matching;

/// Keys and epochs of every edge.
#[derive(Clone, Debug)]
pub(super) struct KeyAgreement {
    held: Vec<Option<HeldKey>>,
    newest: Vec<NewestEpoch>,
}

/// The newest epoch that an edge ever reported, or could use when it was done with a step.
#[derive(Clone, Copy, Debug, Default)]
struct NewestEpoch {
    epoch: Option<Epoch>,
    /// Pseudonym under which an anonymous drone was in it.
    pseudonym: Option<[u8; 16]>,
}

impl<S: Suite> InvariantCheck<S> for KeyAgreement {
    fn on_step(&mut self, world: &World<S>, step: &Step, evidence: &mut Evidence) {
        evidence.history.change = KeyChange::default();
        match step.node {
            NodeId::Leader(ordinal) => observe_leader(world, step, ordinal, evidence),
            NodeId::Edge(number) => self.observe_edge(world, step, number, evidence),
            NodeId::Kgc(_) | NodeId::Relay(_) => {}
        }
    }
}

impl KeyAgreement {
    pub(super) fn new(edges: usize) -> Self {
        Self { held: vec![None; edges], newest: vec![NewestEpoch::default(); edges] }
    }

    fn observe_edge<S: Suite>(
        &mut self,
        world: &World<S>,
        step: &Step,
        number: u32,
        evidence: &mut Evidence,
    ) {
        let Evidence { findings, history } = evidence;
        let place = number as usize;
        let pseudonym = history.pseudonyms.of(number);
        if let Some(newest) = self.newest.get_mut(place).filter(|newest| newest.pseudonym != pseudonym) {
            // §A5.3: an anonymous membership begins with nothing, so that no leader recognises the drone by what it remembers.
            *newest = NewestEpoch { epoch: None, pseudonym };
        }
        for event in step.events() {
            if let NodeEvent::Edge(EdgeEvent::KeyActivated { epoch, .. }) = event {
                self.rises(step, place, *epoch, "went back", findings);
            }
        }
        let held = history.held_key(world, number);
        // While the disk holds a step up, the machine is ahead of its outputs: it may yet have to report an
        // epoch that it is past. The key that it can use when it is done with the step counts.
        if let Some(held) = held.filter(|_| !world.stalled(step.node)) {
            self.rises(step, place, held.epoch, "goes back with the key that it exports", findings);
        }
        let before = self.held.get_mut(place).and_then(|before| std::mem::replace(before, held));
        history.change = KeyChange { before, after: held };
        // What a leader with two keys signed is compared elsewhere.
        if let Some(held) = history.change.taken_up().filter(|held| world.doubled(held.epoch).is_none()) {
            check_key(step, number, &held, history, findings);
        }
    }

    /// An edge reported or can use this epoch: none before was newer.
    fn rises(&mut self, step: &Step, place: usize, epoch: Epoch, what: &str, findings: &mut Findings) {
        let newest = self.newest.get(place).and_then(|newest| newest.epoch);
        findings.require(Invariant::NoEpochRegression, step, newest <= Some(epoch), || {
            format!("{what} from {} to {}", newest.map(show).unwrap_or_default(), show(epoch))
        });
        if let Some(known) = self.newest.get_mut(place) {
            known.epoch = newest.max(Some(epoch));
        }
    }
}

fn observe_leader<S: Suite>(world: &World<S>, step: &Step, ordinal: u16, evidence: &mut Evidence) {
    let Evidence { findings, history } = evidence;
    let made: Vec<Epoch> = step
        .events()
        .filter_map(matching!(NodeEvent::Leader(LeaderEvent::EpochActivated { epoch, .. }) => *epoch))
        .collect();
    let last = made.last().copied();
    for epoch in made {
        let newest =
            history.epochs.iter().rev().find(|(_, made)| made.leader == ordinal).map(|(epoch, _)| *epoch);
        findings.require(
            Invariant::NoEpochRegression,
            step,
            newest.is_none_or(|newest| newest < epoch),
            || format!("made epoch {} after {}", show(epoch), newest.map(show).unwrap_or_default()),
        );
        let known = history.epochs.contains_key(&epoch);
        findings.require(Invariant::Agreement, step, !known, || {
            format!("made epoch {} a second time", show(epoch))
        });
        let made = made_epoch(world, step, ordinal, last == Some(epoch), history);
        history.epochs.insert(epoch, made);
    }
}

/// The known data of an epoch: complete if it is the leader's newest and the leader lives.
fn made_epoch<S: Suite>(
    world: &World<S>,
    step: &Step,
    ordinal: u16,
    newest: bool,
    history: &GroupHistory,
) -> MadeEpoch {
    let at = step.at;
    let nothing = MadeEpoch { at, digest: None, key: None, members: None, anonymous: None, leader: ordinal };
    if !newest || died(step) {
        return nothing;
    }
    let Some(leader) = world.leader(ordinal) else { return nothing };
    MadeEpoch {
        at,
        digest: leader.status().digest,
        key: leader.export(&history.channel).map(|key| *key.expose()),
        members: Some(leader.members().filter_map(|(_, name)| edge_number(name.as_str())).collect()),
        anonymous: Some(leader.anonymous_members().map(|(_, member)| member.pseudonym.0).collect()),
        leader: ordinal,
    }
}

/// Compares a key with the leader's.
fn check_key(step: &Step, number: u32, held: &HeldKey, history: &mut GroupHistory, findings: &mut Findings) {
    let pseudonym = history.pseudonyms.of(number);
    let Some(made) = history.epochs.get_mut(&held.epoch) else {
        let detail = format!("holds epoch {}, which no leader made", show(held.epoch));
        return findings.violate(Invariant::Agreement, step.at, Some(step.node), detail);
    };
    // Of a leader that died at once the first member's key is taken: the others must agree with it.
    let (digest, key) = (*made.digest.get_or_insert(held.digest), *made.key.get_or_insert(held.key));
    let is_member = match pseudonym {
        Some(pseudonym) => made.anonymous.as_ref().is_none_or(|members| members.contains(&pseudonym)),
        None => made.members.as_ref().is_none_or(|members| members.contains(&number)),
    };
    findings.require(Invariant::Agreement, step, digest == held.digest && key == held.key, || {
        format!("holds another key of epoch {} than the leader", show(held.epoch))
    });
    if !is_member {
        let invariant = history.outsider(number, held.epoch);
        let detail = format!("holds the key of epoch {}, of which it is not a member", show(held.epoch));
        findings.violate(invariant, step.at, Some(step.node), detail);
    }
}
