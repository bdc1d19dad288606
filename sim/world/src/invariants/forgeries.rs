//! Checks the effect of forged messages: no answer that multiplies, and no membership ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use quiver_ainq::{EpochKind, Header, HeaderCore, KemKey, Suite};
use quiver_group::{EdgeEvent, LeaderEvent};
use quiver_machine::Destination;
use quiver_message::{Message, ShortRekey};

use super::history::{HeldKey, show};
use super::publications::LeaderPublication;
use super::{Evidence, Findings, Invariant, InvariantCheck, died};
use crate::drone_role::DroneRole;
use crate::{Cause, Effect, NodeEvent, NodeId, Step, World};

/// Greatest number of one node's answers to unauthenticated questions of one peer within a second that are longer than the
/// question: five of two messages each for the newest epoch, and four for a revocation list.
const MOST: u32 = 14;
/// Number of epochs whose headers are kept, because short ones build on them.
const EPOCHS: usize = 64;

/// Number of answers to forged messages.
#[derive(Clone)]
pub(super) struct ForgedMessages<S: Suite> {
    seen: u64,
    /// A publication of each of the newest epochs.
    published: VecDeque<Arc<LeaderPublication<S>>>,
    /// Second and number of answers, by node and the peer that it answered.
    answered: BTreeMap<(NodeId, NodeId), (u64, u32)>,
}

impl<S: Suite> Default for ForgedMessages<S> {
    fn default() -> Self {
        Self { seen: 0, published: VecDeque::new(), answered: BTreeMap::new() }
    }
}

impl<S: Suite> InvariantCheck<S> for ForgedMessages<S> {
    fn on_step(&mut self, world: &World<S>, step: &Step, evidence: &mut Evidence) {
        if let NodeId::Edge(number) = step.node {
            let before = evidence.history.change.before;
            self.observe_forgery(world, step, number, before, &mut evidence.findings);
        }
        self.observe_answers(world, step, &mut evidence.findings);
    }

    fn on_publication(
        &mut self,
        _: &World<S>,
        _: &Step,
        publication: &Arc<LeaderPublication<S>>,
        _: &mut Evidence,
    ) {
        if self.published.iter().all(|known| known.digest != publication.digest) {
            self.published.push_front(Arc::clone(publication));
            self.published.truncate(EPOCHS);
        }
    }
}

impl<S: Suite> ForgedMessages<S> {
    /// Number of forged messages that arrived.
    pub(super) const fn seen(&self) -> u64 {
        self.seen
    }

    /// A node took a forged message: who answers it, and how often.
    fn observe_answers(&mut self, world: &World<S>, step: &Step, findings: &mut Findings) {
        let Cause::Message { via, by_group, payload } = &step.cause else { return };
        // A relay's message is no answer of its own, and not of this message.
        if !world.is_forged(payload) || matches!(step.node, NodeId::Relay(_)) {
            return;
        }
        self.seen += 1;
        let answers: Vec<(usize, Message<S>)> =
            step.effects.iter().filter_map(|effect| answer(world, step, *via, effect)).collect();
        if *by_group {
            findings.require(Invariant::NoReflection, step, answers.is_empty(), || {
                format!("answers what came by the group, with {} messages", answers.len())
            });
            return;
        }
        for (_, answer) in &answers {
            let told = matches!(answer, Message::CatchUpReply(reply) if reply.tag != [0; 32]);
            findings.require(Invariant::NoReflection, step, !told, || {
                "says under a fresh tag which epoch is the newest, to who has not shown to be a member".into()
            });
        }
        let second = step.at.as_secs();
        let (since, count) = self.answered.entry((step.node, *via)).or_insert((second, 0));
        if *since != second {
            (*since, *count) = (second, 0);
        }
        // An answer that is no longer than the question amplifies nothing.
        let longer = answers.iter().filter(|(len, _)| *len > payload.len()).count();
        *count += u32::try_from(longer).unwrap_or(u32::MAX);
        let count = *count;
        findings.require(Invariant::NoReflection, step, count <= MOST, || {
            format!("answers {via} {count} times within a second, and cannot know who it is")
        });
    }

    /// Checks that an edge that received a forged message kept its membership.
    fn observe_forgery(
        &self,
        world: &World<S>,
        step: &Step,
        number: u32,
        before: Option<HeldKey>,
        findings: &mut Findings,
    ) {
        let Cause::Message { payload, .. } = &step.cause else { return };
        let Some(held) = before.filter(|_| world.is_forged(payload) && !died(step)) else { return };
        let expired = |event: &NodeEvent| matches!(event, NodeEvent::Feature(event) if event.is_expiry());
        if step.events().any(expired) {
            return;
        }
        let now = world.edge(number).and_then(|edge| edge.status().epoch);
        let kept = now >= Some(held.epoch)
            || match Message::<S>::decode(world.fleet().deployment(), payload) {
                Ok(Message::Rekey(rekey)) => ends(world, number, rekey.header, &held),
                Ok(Message::ShortRekey(short)) => self.short_ends(world, number, short, &held),
                _ => false,
            };
        findings.require(Invariant::NoForgedEnd, step, kept, || {
            format!("gave up epoch {} for a message of a sender without an identity", show(held.epoch))
        });
    }

    /// Returns true if a short header may end the membership of an edge, as the whole header that it stands for. Without the
    /// header that it builds on nothing but its epoch can be told.
    fn short_ends(&self, world: &World<S>, number: u32, short: ShortRekey<S>, held: &HeldKey) -> bool {
        let Some(before) = self.published.iter().find(|known| known.digest == held.digest) else {
            return short.header.epoch > held.epoch;
        };
        let whole = short.header.rebuild(&before.header.core, &held.digest, &short.wraps);
        whole.is_ok_and(|header| ends(world, number, header, held))
    }
}

/// Returns true if a header may end the membership of an edge with this state: it is newer, genuine, and says
/// so itself, or opens a term to which no κ of the edge leads (§24.7).
fn ends<S: Suite>(world: &World<S>, number: u32, header: Header<S>, held: &HeldKey) -> bool {
    let core = &header.core;
    if core.epoch <= held.epoch {
        return false;
    }
    let may_end =
        core.kind == EpochKind::Rekey || !core.absent.is_empty() || !has_second_factor(world, number, core);
    may_end && world.fleet().verify_header(header).is_some()
}

/// Returns true if an opening needs no κ, or the edge holds one that leads there.
fn has_second_factor<S: Suite>(world: &World<S>, number: u32, core: &HeaderCore<S>) -> bool {
    let Some(term) = core.kem else { return true };
    let leader = core.leader.handle();
    let state = world.edge(number).and_then(DroneRole::compromised_state);
    let held = state.into_iter().flat_map(|state| state.kems).filter(|(of, _)| *of == leader);
    held.filter_map(|(_, key)| KemKey::<S>::decode(&key).ok()).any(|key| key.at(&leader, term).is_ok())
}

/// The answer that an effect sends, if it is one, with its length in bytes.
fn answer<S: Suite>(
    world: &World<S>,
    step: &Step,
    via: NodeId,
    effect: &Effect,
) -> Option<(usize, Message<S>)> {
    let Effect::Sent { to: Destination::Peer(peer), payload } = effect else { return None };
    let to = world.behind(*peer).0;
    let message = Message::<S>::decode(world.fleet().deployment(), payload).ok()?;
    let answers = match &message {
        // Leaders resend to members in the same step, and a leader that steps down, or whose epoch is due just when the
        // message comes, sends to all its members: none of this is an answer to the forger.
        Message::Rekey(_) => to == via && !step.events().any(sends_to_all),
        Message::Welcome(_) => to == via && !step.events().any(activates_epoch),
        // What was altered of an epoch was another newcomer's nonce, which is not signed (§6.1): all that this member takes
        // is genuine, and its leader is to know that it has the epoch.
        Message::Ack(_) if step.events().any(activates_key) => false,
        Message::Ack(_) | Message::RevocationList(_) => to == via || matches!(step.node, NodeId::Edge(_)),
        Message::CatchUpReply(_)
        | Message::JoinChallenge(_)
        | Message::JoinCiphertext(_)
        | Message::Refusal(_)
        | Message::SpareAck(_) => to == via,
        _ => false,
    };
    answers.then_some((payload.len(), message))
}

fn sends_to_all(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::Leader(LeaderEvent::SteppedDown { .. })) || activates_epoch(event)
}

fn activates_epoch(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::Leader(LeaderEvent::EpochActivated { .. }))
}

fn activates_key(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::Edge(EdgeEvent::KeyActivated { .. }))
}
