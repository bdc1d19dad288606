//! Proposals of a member: what its operator, or a proof against a leader, wants revoked or signed
//! (docs/protocol.md §5.4).

use alloc::vec::Vec;

use quiver_ainq::{KgcId, Revoked};
use quiver_machine::Offence;
use quiver_message::Message;
use quiver_message::quorum::MAX_BODY_LEN;
use quiver_quorum::QuorumSuite;

use super::context::MemberContext;
use super::interface::approval;
use super::signing_policy::SigningPolicy;
use super::statements::{MAX_APPROVALS, MAX_PROOFS, MAX_PROPOSALS, StatementBook};
use super::{QuorumEvent, QuorumRecord};

impl<S: QuorumSuite> StatementBook<S> {
    /// The operator, or a proof, wants these revoked. Returns true if others are to know.
    #[must_use]
    pub(super) fn propose_revocation(&mut self, cx: &mut MemberContext<'_, S>, drones: &[Revoked]) -> bool {
        match self.pending.add(self.list.list(), drones, cx.now.unix) {
            Ok(false) => false,
            Ok(true) => {
                // §5.4: wanted revocations are durable; other members receive them with the next status.
                self.persist(cx);
                true
            }
            Err(_) => {
                cx.event(QuorumEvent::TooMany);
                false
            }
        }
    }

    /// Takes proof that a leader signed two headers for one epoch. Returns the leader, which is to be revoked,
    /// if it is news.
    pub(super) fn prove(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        from: Option<KgcId>,
        bytes: &[u8],
    ) -> Option<Revoked> {
        let deployment = cx.deployment?;
        let proof = match Message::decode(deployment, bytes) {
            Ok(Message::EquivocationProof(proof)) => proof,
            Ok(_) => return disprove(cx, from, Offence::OutOfPlace("no proof")),
            Err(error) => return disprove(cx, from, error.into()),
        };
        let core = &proof.first.core;
        let known = self.proofs.contains_key(&core.leader.identity.serial);
        // §10.7: known long since: no curve arithmetic for it.
        if known || self.list.names(&core.leader) {
            return None;
        }
        let group = core.group.clone();
        // §10.7: a proof that does not hold blames its sender.
        match proof.verify(deployment, &group) {
            Err(error) => disprove(cx, from, error.into()),
            Ok(leader) => {
                let (name, handle) = (leader.identity.name.clone(), leader.handle());
                let drone = Revoked::from(&leader.identity);
                cx.event(QuorumEvent::Equivocation { name, handle });
                if self.proofs.len() < MAX_PROOFS && bytes.len() <= MAX_BODY_LEN {
                    self.proofs.insert(drone.serial, bytes.to_vec());
                }
                Some(drone)
            }
        }
    }

    /// The operator lets this be signed.
    pub(super) fn approve(&mut self, cx: &mut MemberContext<'_, S>, digest: [u8; 32]) {
        if self.approvals.len() >= MAX_APPROVALS {
            return cx.event(QuorumEvent::TooMany);
        }
        if self.approvals.insert(digest) {
            self.persist(cx);
        }
    }

    pub(super) fn withdraw(&mut self, cx: &mut MemberContext<'_, S>, digest: &[u8; 32]) {
        self.proposals.retain(|body| approval(body) != *digest);
        if self.approvals.remove(digest) {
            self.persist(cx);
        }
    }

    /// The operator wants this signed. Returns true if it is to be.
    #[must_use]
    pub(super) fn propose(&mut self, cx: &mut MemberContext<'_, S>, body: Vec<u8>) -> bool {
        if cx.keys.is_none() {
            cx.refuse("there is no key to sign with");
            return false;
        }
        let known = self.proposals.contains(&body);
        if body.len() > MAX_BODY_LEN || (!known && self.proposals.len() >= MAX_PROPOSALS) {
            cx.event(QuorumEvent::TooMany);
            return false;
        }
        // A statement that needs no operator's approval needs no record of it either.
        if !SigningPolicy::new(cx, self).is_about_ibe(cx.config.id, &body) {
            self.approve(cx, approval(&body));
        }
        if !known {
            self.proposals.push(body);
        }
        true
    }

    pub(super) fn persist(&self, cx: &mut MemberContext<'_, S>) {
        cx.persist(QuorumRecord::Statements(self.encode()));
    }
}

/// Blames the member that sent what proves nothing, or refuses it to the operator.
fn disprove<S: QuorumSuite>(
    cx: &mut MemberContext<'_, S>,
    from: Option<KgcId>,
    offence: Offence,
) -> Option<Revoked> {
    match from {
        Some(from) => cx.blame(from, offence),
        None => cx.refuse("this proves nothing"),
    }
    None
}
