//! Statements that the quorum has signed: verified, stored and reported.

use alloc::vec::Vec;

use quiver_ainq::{
    KgcId, Purpose, QuorumStatement, RevocationStatement, SignedRevocationList, StatementSignature,
};
use quiver_machine::Offence;
use quiver_message::quorum::SignedStatement;
use quiver_quorum::QuorumSuite;

use super::statement;
use crate::context::MemberContext;
use crate::interface::purpose;
use crate::statements::StatementBook;
use crate::{QuorumEvent, QuorumRecord};

impl<S: QuorumSuite> StatementBook<S> {
    /// Handles a statement that a member claims the quorum has signed. Returns true if it is news, which
    /// others are to know.
    #[must_use]
    pub(crate) fn handle_statement(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        from: KgcId,
        message: SignedStatement,
    ) -> bool {
        let Some(purpose) = purpose(&message.purpose) else {
            cx.blame(from, Offence::OutOfPlace("statement of an unknown purpose"));
            return false;
        };
        match StatementSignature::<S>::decode(&message.signature) {
            Ok(signature) => self.keep(cx, Some(from), purpose, message.body, &signature),
            Err(error) => {
                cx.blame(from, Offence::Protocol(error));
                false
            }
        }
    }

    /// Stores a statement of the quorum: received from another member, or aggregated here. Returns true if it
    /// is news.
    pub(super) fn keep(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        from: Option<KgcId>,
        purpose: Purpose,
        body: Vec<u8>,
        signature: &StatementSignature<S>,
    ) -> bool {
        // §5.4: the quorum's signature makes a statement genuine, whatever its sender.
        let Some(deployment) = cx.deployment else { return false };
        let verified =
            statement(purpose, &body).and_then(|statement| signature.verify(deployment, purpose, &statement));
        if let Err(error) = verified {
            if let Some(from) = from {
                cx.blame(from, Offence::Protocol(error));
            }
            return false;
        }
        match purpose {
            // §5.4: of a list the head is signed, which has the hash of the rest.
            Purpose::Revocation => {
                let list = RevocationStatement::decode(&body);
                let list = list.and_then(|list| SignedRevocationList::new(list, *signature));
                list.is_ok_and(|list| self.take_list(cx, &list.encode()))
            }
            Purpose::Quorum => self.take_quorum_statement(cx, body, signature),
            // §5.4: other statements go to the operator that proposed them.
            Purpose::Parameters | Purpose::AbkePolicy if from.is_none() => {
                self.proposals.retain(|proposal| *proposal != body);
                let signature = signature.encode();
                cx.event(QuorumEvent::Signed { body, signature });
                false
            }
            _ => false,
        }
    }

    /// Keeps a list if it is news. Returns true if so.
    #[must_use]
    pub(crate) fn take_list(&mut self, cx: &mut MemberContext<'_, S>, list: &[u8]) -> bool {
        let Some(deployment) = cx.deployment else { return false };
        // §12.7: dropped before its signature is verified if its number is not higher.
        let Ok(Some(number)) = self.offer(deployment, list) else { return false };
        cx.persist(QuorumRecord::RevocationList { number, list: list.to_vec() });
        self.persist(cx);
        cx.event(QuorumEvent::RevocationList { number });
        true
    }

    fn take_quorum_statement(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        body: Vec<u8>,
        signature: &StatementSignature<S>,
    ) -> bool {
        let Some(keys) = cx.keys else { return false };
        let version = keys.version();
        // §5.4: about the shares in force here, and the first one is kept.
        if self.quorum.is_some() || keys.ainq().public().encode() != body {
            return false;
        }
        let Ok(statement) = QuorumStatement::new(body, *signature) else { return false };
        let statement = statement.encode();
        self.quorum = Some(statement.clone());
        cx.persist(QuorumRecord::QuorumStatement(statement));
        cx.event(QuorumEvent::QuorumStatement { version });
        true
    }
}
