//! Checks that a leader which signs two headers for one epoch, each under another of its keys, is refused: a
//! node that sees both has proof, follows none of its keys from then on, and the KGC that receives the proof
//! revokes it.

use std::collections::BTreeSet;

use quiver_ainq::{SignedRevocationList, Suite};
use quiver_enrolment::KgcEvent;
use quiver_group::{EdgeEvent, LeaderEvent};

use super::convergence::LeadingEpoch;
use super::history::{HeldKey, show};
use super::{Evidence, Findings, Invariant, InvariantCheck, died};
use crate::world::adversary::{Doubled, SERIAL};
use crate::{Cause, NodeEvent, NodeId, Step, World};

/// State of the leader with two keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Contradiction {
    /// Nodes that have proof.
    refusing: BTreeSet<NodeId>,
    /// A leader has: it keeps the proof for the KGCs.
    kept: bool,
    /// True if one of several KGCs proposed its revocation.
    wanted: bool,
    /// A KGC has verified the proof.
    told: bool,
}

impl<S: Suite> InvariantCheck<S> for Contradiction {
    fn on_step(&mut self, world: &World<S>, step: &Step, evidence: &mut Evidence) {
        let Evidence { findings, history } = evidence;
        if let NodeId::Edge(number) = step.node {
            // Before proofs of this step count: an edge may take up a header and have proof in one step.
            if let Some(held) = history.change.taken_up()
                && let Some(doubled) = world.doubled(held.epoch)
            {
                self.check_doubled(step, doubled, &held, findings);
            }
            self.observe_second_header(world, step, number, history.change.before, findings);
        }
        self.observe_proofs(world, step, findings);
    }

    fn stragglers(&self, world: &World<S>, _: &Evidence, _: &LeadingEpoch) -> Vec<(NodeId, String)> {
        self.unrevoked(world).into_iter().collect()
    }
}

impl Contradiction {
    /// Number of nodes that have had proof against a leader.
    pub(super) fn convinced(&self) -> usize {
        self.refusing.len()
    }

    /// Checks a node's proof against a leader: there is none against honest leaders.
    fn observe_proofs<S: Suite>(&mut self, world: &World<S>, step: &Step, findings: &mut Findings) {
        for event in step.events() {
            let epoch = match event {
                NodeEvent::Edge(EdgeEvent::Equivocation { epoch, .. }) => *epoch,
                NodeEvent::Leader(LeaderEvent::Equivocation { epoch, .. }) => {
                    self.kept |= world.doubled(*epoch).is_some();
                    *epoch
                }
                NodeEvent::Kgc(KgcEvent::RevocationListWanted(list)) => {
                    self.wanted |= list.names_serial(&SERIAL);
                    continue;
                }
                NodeEvent::Kgc(KgcEvent::Equivocation { .. }) => {
                    self.told = true;
                    continue;
                }
                _ => continue,
            };
            findings.require(Invariant::Agreement, step, world.doubled(epoch).is_some(), || {
                "has proof that a leader made an epoch twice".into()
            });
            self.refusing.insert(step.node);
        }
    }

    /// An edge took up an epoch of the leader with two keys.
    fn check_doubled(&self, step: &Step, doubled: &Doubled, held: &HeldKey, findings: &mut Findings) {
        findings.require(Invariant::Agreement, step, doubled.digests.contains(&held.digest), || {
            format!("holds epoch {}, which its leader did not sign", show(held.epoch))
        });
        let refuses = self.refusing.contains(&step.node);
        findings.require(Invariant::RefusedForGood, step, !refuses, || {
            format!("follows to epoch {} a leader against which it had proof", show(held.epoch))
        });
    }

    /// An edge that holds one header of an epoch and is handed the other has proof.
    fn observe_second_header<S: Suite>(
        &self,
        world: &World<S>,
        step: &Step,
        number: u32,
        before: Option<HeldKey>,
        findings: &mut Findings,
    ) {
        let Cause::Message { payload, .. } = &step.cause else { return };
        let Some((held, (epoch, digest))) = before.zip(world.doubled_header(payload)) else { return };
        let Some(doubled) = world.doubled(epoch) else { return };
        let valid = world.clock(step.node).unix < doubled.valid_until;
        let concerned = held.epoch == epoch && held.digest != digest && valid && !world.is_anonymous(number);
        // A list may say before the proof does that nothing it signs counts.
        let known = self.refusing.contains(&step.node) || self.is_revoked(world);
        if !concerned || known || died(step) || world.stalled(step.node) {
            return;
        }
        let proven =
            step.events().any(|event| matches!(event, NodeEvent::Edge(EdgeEvent::Equivocation { .. })));
        findings.require(Invariant::RefusedForGood, step, proven, || {
            format!("has seen two headers of epoch {} under one serial and has no proof of it", show(epoch))
        });
    }

    /// Returns true if the KGC has revoked the leader with two keys, or one of several wants to.
    fn is_revoked<S: Suite>(&self, world: &World<S>) -> bool {
        let names = |bytes: &[u8]| {
            let list = SignedRevocationList::<S>::decode(bytes).ok()?;
            let list = list.verify(world.fleet().deployment()).ok()?;
            Some(list.names_serial(&SERIAL))
        };
        let listed = (1..=world.kgc_count())
            .filter_map(|kgc| names(world.kgc(kgc)?.signed_revocations()?))
            .any(|named| named);
        self.wanted || listed
    }

    /// Finds a leader with proof that the KGC has not acted on; the proof needs nobody's approval.
    fn unrevoked<S: Suite>(&self, world: &World<S>) -> Option<(NodeId, String)> {
        let heard = self.told || self.is_revoked(world);
        let pending = self.kept && !heard;
        pending.then(|| (NodeId::Kgc(1), "has not received the proof against a leader".into()))
    }
}
