//! What a quorum has signed: kept, reported and passed on.

use alloc::vec::Vec;

use quiver_ainq::{
    KgcId, Purpose, QuorumStatement, RevocationList, SignedRevocationList, StatementSignature,
};
use quiver_crypto::canonical::Reader;
use quiver_message::quorum::{MAX_BODY_LEN, QuorumMessage, SignedStatement};
use quiver_quorum::QuorumSuite;

use crate::quorum::interface::{purpose, tag};
use crate::quorum::{QuorumEvent, QuorumNode, QuorumRecord};
use crate::{Now, Offence};

impl<S: QuorumSuite> QuorumNode<S> {
    /// Somebody says that the quorum has signed this.
    pub(in crate::quorum) fn hear_statement(&mut self, now: Now, from: KgcId, message: SignedStatement) {
        let Some(purpose) = purpose(&message.purpose) else {
            return self.blame(from, Offence::OutOfPlace("statement of an unknown purpose"));
        };
        match StatementSignature::<S>::decode(&message.signature) {
            Ok(signature) => self.signed(now, Some(from), purpose, message.body, &signature),
            Err(error) => self.blame(from, Offence::Protocol(error)),
        }
    }

    /// Keeps what the quorum has signed: by what another says, or by what was put together here.
    pub(super) fn signed(
        &mut self,
        now: Now,
        from: Option<KgcId>,
        purpose: Purpose,
        body: Vec<u8>,
        signature: &StatementSignature<S>,
    ) {
        let Some(deployment) = self.deployment.clone() else { return };
        if let Err(error) = signature.verify(&deployment, purpose, &body) {
            return from.map_or((), |from| self.blame(from, Offence::Protocol(error)));
        }
        match purpose {
            Purpose::Revocation => {
                let list = RevocationList::decode(&body);
                let list = list.and_then(|list| SignedRevocationList::new(list, *signature));
                if let Ok(list) = list {
                    self.take_list(now, &list.encode());
                }
            }
            Purpose::Quorum => self.take_quorum_statement(now, body, signature),
            Purpose::Parameters | Purpose::AbkePolicy if from.is_none() => {
                self.statements.proposals.retain(|proposal| *proposal != body);
                let signature = signature.encode();
                self.out.event(QuorumEvent::Signed { body, signature });
            }
            _ => {}
        }
    }

    /// Keeps a list if it is news.
    pub(in crate::quorum) fn take_list(&mut self, now: Now, list: &[u8]) {
        let Some(deployment) = &self.deployment else { return };
        let Ok(Some(number)) = self.statements.offer(deployment, list) else { return };
        self.out.persist(QuorumRecord::RevocationList { number, list: list.to_vec() });
        self.out.persist(QuorumRecord::Statements(self.statements.encode()));
        self.out.event(QuorumEvent::RevocationList { number });
        self.changed(now);
    }

    fn take_quorum_statement(&mut self, now: Now, body: Vec<u8>, signature: &StatementSignature<S>) {
        let Some(keys) = &self.keys else { return };
        let version = keys.version();
        if self.statements.quorum.is_some() || keys.ainq().public().encode() != body {
            return;
        }
        let Ok(statement) = QuorumStatement::new(body, *signature) else { return };
        let statement = statement.encode();
        self.statements.quorum = Some(statement.clone());
        self.out.persist(QuorumRecord::QuorumStatement(statement));
        self.out.event(QuorumEvent::QuorumStatement { version });
        self.changed(now);
    }

    /// Tells a member what it does not have, going by what it said last.
    pub(in crate::quorum) fn pass_on(&mut self, to: KgcId) {
        let Some(status) = self.statements.heard.get(&to) else { return };
        let (list, has_statement, keys) = (status.list, status.statement, status.keys);
        let proofs = self.statements.proofs.iter();
        let unknown = |handle: &quiver_ainq::Handle| status.handles.binary_search(handle).is_err();
        let proofs: Vec<_> =
            proofs.filter(|(handle, _)| unknown(handle)).map(|(_, proof)| proof.clone()).collect();
        let newer = self.statements.list.number() > list;
        let list = self.statements.list.signed_bytes().filter(|_| newer).map(<[u8]>::to_vec);
        let ours = self.keys.as_ref().map(|keys| keys.digest());
        let lacks = !has_statement && keys.is_some() && keys == ours;
        let statement = self.statements.quorum.as_ref().filter(|_| lacks).cloned();
        for (purpose, signed) in [(Purpose::Revocation, list), (Purpose::Quorum, statement)] {
            if let Some(message) = signed.and_then(|signed| statement_message(purpose, &signed)) {
                self.send(to, &message);
            }
        }
        for proof in proofs {
            self.send(to, &QuorumMessage::Proof(quiver_message::quorum::QuorumProof { proof }));
        }
    }
}

/// A signed list, and a quorum's statement, are encoded alike: `lp(body)`, then the signature.
fn statement_message(purpose: Purpose, signed: &[u8]) -> Option<QuorumMessage> {
    let mut reader = Reader::new(signed);
    let body = reader.lp(MAX_BODY_LEN).ok()?.to_vec();
    let signature = reader.take(reader.remaining()).ok()?.to_vec();
    Some(QuorumMessage::SignedStatement(SignedStatement { purpose: tag(purpose)?, body, signature }))
}
