//! Proposals of a member: what its operator, or a proof against a leader, wants revoked or signed
//! (docs/protocol.md §5.4).

use alloc::vec::Vec;

use quiver_ainq::{KgcId, Revoked};
use quiver_machine::{Now, Offence};
use quiver_message::Message;
use quiver_message::quorum::{MAX_BODY_LEN, QuorumMessage, QuorumProof};
use quiver_quorum::QuorumSuite;

use super::interface::approval;
use super::statements::{MAX_APPROVALS, MAX_PROOFS, MAX_PROPOSALS};
use super::{QuorumEvent, QuorumNode, QuorumRecord};

impl<S: QuorumSuite> QuorumNode<S> {
    /// The operator, or a proof, wants these revoked.
    pub(super) fn propose_revocation(&mut self, now: Now, drones: &[Revoked]) {
        let statements = &mut self.statements;
        match statements.pending.add(statements.list.list(), drones, now.unix) {
            Ok(false) => {}
            Ok(true) => {
                // §5.4: wanted revocations are durable; other members receive them with the next status.
                self.persist_statements();
                self.changed(now);
            }
            Err(_) => self.base.out.event(QuorumEvent::TooMany),
        }
    }

    /// Takes proof that a leader signed two headers for one epoch. It needs no operator's approval.
    pub(super) fn prove(&mut self, now: Now, from: Option<KgcId>, bytes: &[u8]) {
        let Some(deployment) = &self.base.deployment else { return };
        let proof = match Message::decode(deployment, bytes) {
            Ok(Message::EquivocationProof(proof)) => proof,
            Ok(_) => return self.disprove(from, Offence::OutOfPlace("no proof")),
            Err(error) => return self.disprove(from, error.into()),
        };
        let core = &proof.first.core;
        let known = self.statements.proofs.contains_key(&core.leader.identity.serial);
        // §10.7: known long since: no curve arithmetic for it.
        if known || self.statements.list.names(&core.leader) {
            return;
        }
        let group = core.group.clone();
        // §10.7: a proof that does not hold blames its sender.
        match proof.verify(deployment, &group) {
            Err(error) => self.disprove(from, error.into()),
            Ok(leader) => {
                let (name, handle) = (leader.identity.name.clone(), leader.handle());
                let drone = Revoked::from(&leader.identity);
                self.base.out.event(QuorumEvent::Equivocation { name, handle });
                if self.statements.proofs.len() < MAX_PROOFS && bytes.len() <= MAX_BODY_LEN {
                    self.statements.proofs.insert(drone.serial, bytes.to_vec());
                }
                self.propose_revocation(now, &[drone]);
                let message = QuorumMessage::Proof(QuorumProof { proof: bytes.to_vec() });
                for kgc in self.base.config.membership.parameters().others(self.base.config.id) {
                    self.send(kgc, &message);
                }
            }
        }
    }

    fn disprove(&mut self, from: Option<KgcId>, offence: Offence) {
        match from {
            Some(from) => self.blame(from, offence),
            None => self.refuse("this proves nothing"),
        }
    }

    /// The operator lets this be signed.
    pub(super) fn approve(&mut self, digest: [u8; 32]) {
        if self.statements.approvals.len() >= MAX_APPROVALS {
            return self.base.out.event(QuorumEvent::TooMany);
        }
        if self.statements.approvals.insert(digest) {
            self.persist_statements();
        }
    }

    pub(super) fn withdraw(&mut self, digest: &[u8; 32]) {
        self.statements.proposals.retain(|body| approval(body) != *digest);
        if self.statements.approvals.remove(digest) {
            self.persist_statements();
        }
    }

    /// The operator wants this signed.
    pub(super) fn have_it_signed(&mut self, now: Now, body: Vec<u8>) {
        if self.base.keys.is_none() {
            return self.refuse("there is no key to sign with");
        }
        let known = self.statements.proposals.contains(&body);
        if body.len() > MAX_BODY_LEN || (!known && self.statements.proposals.len() >= MAX_PROPOSALS) {
            return self.base.out.event(QuorumEvent::TooMany);
        }
        // A statement that needs no operator's approval needs no record of it either.
        if !self.is_about_ibe(self.base.config.id, &body) {
            self.approve(approval(&body));
        }
        if !known {
            self.statements.proposals.push(body);
        }
        self.signing.retry.hurry(now.monotonic);
    }

    pub(super) fn persist_statements(&mut self) {
        self.base.out.persist(QuorumRecord::Statements(self.statements.encode()));
    }
}
