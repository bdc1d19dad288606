//! Statements that the quorum has signed: stored, reported and passed on.

use alloc::vec::Vec;

use quiver_ainq::{
    KgcId, Purpose, QuorumStatement, RevocationStatement, SignedRevocationList, StatementSignature,
};
use quiver_crypto::canonical::Reader;
use quiver_machine::{Now, Offence};
use quiver_message::quorum::{MAX_BODY_LEN, QuorumMessage, SignedStatement};
use quiver_quorum::QuorumSuite;

use super::statement;
use crate::interface::{purpose, tag};
use crate::{QuorumEvent, QuorumNode, QuorumRecord};

impl<S: QuorumSuite> QuorumNode<S> {
    /// Handles a statement that a member claims the quorum has signed.
    pub(crate) fn handle_statement(&mut self, now: Now, from: KgcId, message: SignedStatement) {
        let Some(purpose) = purpose(&message.purpose) else {
            return self.blame(from, Offence::OutOfPlace("statement of an unknown purpose"));
        };
        match StatementSignature::<S>::decode(&message.signature) {
            Ok(signature) => self.signed(now, Some(from), purpose, message.body, &signature),
            Err(error) => self.blame(from, Offence::Protocol(error)),
        }
    }

    /// Stores a statement of the quorum: received from another member, or aggregated here.
    pub(super) fn signed(
        &mut self,
        now: Now,
        from: Option<KgcId>,
        purpose: Purpose,
        body: Vec<u8>,
        signature: &StatementSignature<S>,
    ) {
        // §5.4: the quorum's signature makes a statement genuine, whatever its sender.
        let Some(deployment) = self.base.deployment.clone() else { return };
        let verified = statement(purpose, &body)
            .and_then(|statement| signature.verify(&deployment, purpose, &statement));
        if let Err(error) = verified {
            return from.map_or((), |from| self.blame(from, Offence::Protocol(error)));
        }
        match purpose {
            // §5.4: of a list the head is signed, which has the hash of the rest.
            Purpose::Revocation => {
                let list = RevocationStatement::decode(&body);
                let list = list.and_then(|list| SignedRevocationList::new(list, *signature));
                if let Ok(list) = list {
                    self.take_list(now, &list.encode());
                }
            }
            Purpose::Quorum => self.take_quorum_statement(now, body, signature),
            // §5.4: other statements go to the operator that proposed them.
            Purpose::Parameters | Purpose::AbkePolicy if from.is_none() => {
                self.statements.proposals.retain(|proposal| *proposal != body);
                let signature = signature.encode();
                self.base.out.event(QuorumEvent::Signed { body, signature });
            }
            _ => {}
        }
    }

    /// Keeps a list if it is news.
    pub(crate) fn take_list(&mut self, now: Now, list: &[u8]) {
        let Some(deployment) = &self.base.deployment else { return };
        // §12.7: dropped before its signature is verified if its number is not higher.
        let Ok(Some(number)) = self.statements.offer(deployment, list) else { return };
        self.base.out.persist(QuorumRecord::RevocationList { number, list: list.to_vec() });
        self.base.out.persist(QuorumRecord::Statements(self.statements.encode()));
        self.base.out.event(QuorumEvent::RevocationList { number });
        self.changed(now);
    }

    fn take_quorum_statement(&mut self, now: Now, body: Vec<u8>, signature: &StatementSignature<S>) {
        let Some(keys) = &self.base.keys else { return };
        let version = keys.version();
        // §5.4: about the shares in force here, and the first one is kept.
        if self.statements.quorum.is_some() || keys.ainq().public().encode() != body {
            return;
        }
        let Ok(statement) = QuorumStatement::new(body, *signature) else { return };
        let statement = statement.encode();
        self.statements.quorum = Some(statement.clone());
        self.base.out.persist(QuorumRecord::QuorumStatement(statement));
        self.base.out.event(QuorumEvent::QuorumStatement { version });
        self.changed(now);
    }

    /// Sends a member the statements that it lacks, by its last status.
    pub(crate) fn pass_on(&mut self, to: KgcId) {
        let Some(status) = self.statements.received.get(&to) else { return };
        let (list, has_statement, keys) = (status.list, status.statement, status.keys);
        let proofs = self.statements.proofs.iter();
        // §10.7: a proof goes to all who do not want that leader revoked yet.
        let unknown = |serial: &[u8; 16]| {
            status.proposed.binary_search_by_key(serial, |proposal| proposal.serial).is_err()
        };
        let proofs: Vec<_> =
            proofs.filter(|(serial, _)| unknown(serial)).map(|(_, proof)| proof.clone()).collect();
        let newer = self.statements.list.number() > list;
        let list = self.statements.list.newest().filter(|_| newer);
        let list = list.map(|list| (Purpose::Revocation, list.encode(), list.signature().encode()));
        let ours = self.base.keys.as_ref().map(|keys| keys.digest());
        let lacks = !has_statement && keys.is_some() && keys == ours;
        let statement = self.statements.quorum.as_ref().filter(|_| lacks).cloned();
        let statement = statement.and_then(|signed| parts(&signed));
        let statement = statement.map(|(body, signature)| (Purpose::Quorum, body, signature));
        for (purpose, body, signature) in list.into_iter().chain(statement) {
            if let Some(purpose) = tag(purpose) {
                let message = SignedStatement { purpose, body, signature };
                self.send(to, &QuorumMessage::SignedStatement(message));
            }
        }
        for proof in proofs {
            self.send(to, &QuorumMessage::Proof(quiver_message::quorum::QuorumProof { proof }));
        }
    }
}

/// A quorum's statement is encoded as `lp(body)`, then the signature.
fn parts(signed: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut reader = Reader::new(signed);
    let body = reader.lp(MAX_BODY_LEN).ok()?.to_vec();
    Some((body, reader.take(reader.remaining()).ok()?.to_vec()))
}
