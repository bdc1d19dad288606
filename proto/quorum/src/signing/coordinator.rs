//! The coordinator's side: propose, gather, put together.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{KgcId, MAX_REVOCATION_LIST_LEN, Purpose, StatementSignature};
use quiver_message::quorum::{
    MAX_BODY_LEN, QuorumMessage, SignCommitment, SignPackage, SignProposal, SignRefusal, SignRefusalReason,
    SignShare, SignerCommitment, SigningSession,
};
use quiver_quorum::{Commitment, Error, QuorumSuite, SignatureShare, SigningNonces, SigningPackage};

use super::{SigningRounds, draw, sign, signing_package};
use crate::QuorumEvent;
use crate::context::MemberContext;
use crate::interface::{proposed, tag};
use crate::signing_policy::{MAX_AHEAD, SigningPolicy};
use crate::statements::StatementBook;
use crate::status::StatusExchange;

/// Time to wait for commitments, and for shares.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which a member is left out that committed itself and did not sign.
const LEFT_OUT: Duration = Duration::from_secs(120);

/// The package, and the shares that have arrived.
type Signers<S> = (SigningPackage<S>, BTreeMap<KgcId, SignatureShare<S>>);

/// One attempt to have one statement signed.
#[derive(Debug)]
pub(super) struct SigningAttempt<S: QuorumSuite> {
    session: SigningSession,
    purpose: Purpose,
    body: Vec<u8>,
    version: u32,
    /// Nonces of this member, until it signs.
    nonces: Option<SigningNonces<S>>,
    commitments: BTreeMap<KgcId, Commitment<S>>,
    refusals: BTreeMap<KgcId, SignRefusalReason>,
    /// Members to which it was proposed.
    asked: Vec<KgcId>,
    /// The package, once enough members would sign, and its shares.
    signing: Option<Signers<S>>,
    pub(super) deadline: Duration,
}

impl<S: QuorumSuite> SigningRounds<S> {
    /// Tries to have signed what ought to be, and gives up on what takes too long.
    pub(crate) fn tick(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        statements: &StatementBook<S>,
        statuses: &StatusExchange,
    ) {
        if self.attempt.as_ref().is_some_and(|attempt| attempt.deadline <= cx.now.monotonic) {
            self.give_up(cx);
        }
        // §5.4: nonces live for a minute.
        self.promises.retain(|_, promise| cx.now.monotonic <= promise.until);
        if self.attempt.is_some() || !self.retry.has_come(cx.now.monotonic, cx.rng) {
            return;
        }
        let jobs = self.jobs(cx, statements, statuses);
        // §5.4: by turns, so that a statement that cannot be signed does not hold up the others.
        let turn = self.turn;
        let chosen = turn.checked_rem(jobs.len()).and_then(|place| jobs.into_iter().nth(place));
        match chosen {
            Some((purpose, body)) => {
                self.turn = turn.wrapping_add(1);
                self.propose(cx, statements, purpose, body);
            }
            None => self.retry.stop(),
        }
    }

    /// Statements to be signed, as far as this member knows.
    fn jobs(
        &self,
        cx: &MemberContext<'_, S>,
        statements: &StatementBook<S>,
        statuses: &StatusExchange,
    ) -> Vec<(Purpose, Vec<u8>)> {
        let Some(keys) = cx.keys else { return Vec::new() };
        let about_shares = || keys.ainq().public().encode();
        let quorum = statements.quorum.is_none().then(|| (Purpose::Quorum, about_shares()));
        let wanted = statuses.proposed_by(cx.enough(), &statements.pending);
        let list = SigningPolicy::new(cx, statements).next_list(cx.now.unix, &wanted, self.highest);
        let list = list.map(|list| (Purpose::Revocation, list.encode()));
        let proposals = statements.proposals.iter().map(|body| (proposed(body), body.clone()));
        quorum.into_iter().chain(list).chain(proposals).collect()
    }

    fn propose(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        statements: &StatementBook<S>,
        purpose: Purpose,
        body: Vec<u8>,
    ) {
        let Some(version) = cx.keys.map(|keys| keys.version()) else { return };
        let signed_len = body.len() + StatementSignature::<S>::LEN;
        let too_long = purpose == Purpose::Revocation && signed_len > MAX_REVOCATION_LIST_LEN;
        if body.len() > MAX_BODY_LEN || too_long {
            return cx.event(QuorumEvent::TooMany);
        }
        let own = cx.config.id;
        // §5.4: the same rules as for what others propose.
        let allowed = SigningPolicy::new(cx, statements).authorize(cx.now.unix, own, version, purpose, &body);
        let drawn = allowed.and_then(|()| draw(cx));
        let (Ok((nonces, commitment)), Some(tag)) = (drawn, tag(purpose)) else { return };
        let mut session = [0; 16];
        cx.rng.fill_bytes(&mut session);
        // §5.4: `SignProposal` to all members that are connected and not left out.
        let asked = self.whom_to_ask(cx);
        let proposal = SignProposal { session, version, purpose: tag, body: body.clone() };
        let message = QuorumMessage::SignProposal(proposal);
        asked.iter().for_each(|kgc| cx.send(*kgc, &message));
        self.attempt = Some(SigningAttempt {
            session,
            purpose,
            body,
            version,
            nonces: Some(nonces),
            commitments: BTreeMap::from([(own, commitment)]),
            refusals: BTreeMap::new(),
            asked,
            signing: None,
            deadline: cx.now.monotonic.saturating_add(TIMEOUT),
        });
        self.give_up_if_hopeless(cx);
    }

    /// All connected members, without those that failed before; with them if there are too few.
    fn whom_to_ask(&mut self, cx: &MemberContext<'_, S>) -> Vec<KgcId> {
        let left_out = &mut self.left_out;
        left_out.retain(|_, until| cx.now.monotonic < *until);
        let all: Vec<KgcId> = cx.links.keys().copied().collect();
        let asked: Vec<KgcId> = all.iter().copied().filter(|kgc| !left_out.contains_key(kgc)).collect();
        if asked.len() + 1 < cx.enough() { all } else { asked }
    }

    fn attempt_of(&mut self, session: &SigningSession) -> Option<&mut SigningAttempt<S>> {
        self.attempt.as_mut().filter(|attempt| attempt.session == *session)
    }

    pub(crate) fn handle_commitment(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        statements: &mut StatementBook<S>,
        from: KgcId,
        message: &SignCommitment,
    ) {
        let Some(attempt) = self.attempt_of(&message.session) else { return };
        let known = attempt.commitments.contains_key(&from) || attempt.refusals.contains_key(&from);
        if attempt.signing.is_some() || known || !attempt.asked.contains(&from) {
            return;
        }
        match Commitment::decode(&message.commitment) {
            Ok(commitment) => drop(attempt.commitments.insert(from, commitment)),
            Err(error) => {
                self.leave_out(cx, from);
                return cx.blame_for(from, &error);
            }
        }
        if attempt.commitments.len() >= cx.enough() {
            self.have_signed(cx, statements);
        }
    }

    /// Enough would sign.
    fn have_signed(&mut self, cx: &mut MemberContext<'_, S>, statements: &mut StatementBook<S>) {
        let Some(mut attempt) = self.attempt.take() else { return };
        // §5.4: the nonces are taken out: they sign once.
        let Some(nonces) = attempt.nonces.take() else { return };
        let commitments: Vec<_> = attempt.commitments.iter().map(|(kgc, one)| (*kgc, *one)).collect();
        let wired = commitments
            .iter()
            .map(|(kgc, one)| SignerCommitment { kgc: *kgc, commitment: one.encode() })
            .collect();
        let SigningAttempt { purpose, ref body, version, session, .. } = attempt;
        // §5.4: the signed bytes are built from the body that was authorised here.
        let Ok(package) = signing_package(cx, version, purpose, body, commitments) else { return };
        let share = sign(cx, statements, purpose, body, nonces, &package);
        let Ok(own) = share.and_then(|share| SignatureShare::decode(&share)) else { return };
        let message = QuorumMessage::SignPackage(SignPackage { session, commitments: wired });
        let signers: Vec<KgcId> = package.commitments().keys().copied().collect();
        attempt.deadline = cx.now.monotonic.saturating_add(TIMEOUT);
        attempt.signing = Some((package, BTreeMap::from([(cx.config.id, own)])));
        self.attempt = Some(attempt);
        // §5.4: `SignPackage` to the signers; there is no connection to this member itself.
        signers.into_iter().for_each(|kgc| cx.send(kgc, &message));
    }

    /// Handles a signer's share. Returns true if the statement was signed, and others are to know.
    #[must_use]
    pub(crate) fn handle_share(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        statements: &mut StatementBook<S>,
        from: KgcId,
        message: &SignShare,
    ) -> bool {
        let Some(attempt) = self.attempt_of(&message.session) else { return false };
        let Some((package, shares)) = &mut attempt.signing else { return false };
        if !package.commitments().contains_key(&from) || shares.contains_key(&from) {
            return false;
        }
        match SignatureShare::decode(&message.share) {
            Ok(share) => drop(shares.insert(from, share)),
            Err(error) => {
                cx.blame_for(from, &error);
                self.spoilt(cx, &[from]);
                return false;
            }
        }
        shares.len() == package.commitments().len() && self.put_together(cx, statements)
    }

    fn put_together(&mut self, cx: &mut MemberContext<'_, S>, statements: &mut StatementBook<S>) -> bool {
        let Some(SigningAttempt { purpose, body, signing: Some((package, shares)), .. }) =
            self.attempt.take()
        else {
            return false;
        };
        let Some(keys) = cx.keys else { return false };
        // §5.4: FROST verifies every share if the signature fails, and names the culprits.
        let news = match keys.ainq().public().aggregate_statement(&package, &shares) {
            Ok(signature) => statements.keep(cx, None, purpose, body, &signature),
            Err(Error::InvalidSignatureShares { culprits }) => {
                self.spoilt(cx, &culprits);
                false
            }
            Err(_) => false,
        };
        // There may be more to sign.
        self.retry.hurry(cx.now.monotonic);
        news
    }

    fn spoilt(&mut self, cx: &mut MemberContext<'_, S>, culprits: &[KgcId]) {
        self.attempt = None;
        for culprit in culprits {
            // §5.4: left out of the next attempts for two minutes.
            self.leave_out(cx, *culprit);
            cx.event(QuorumEvent::WrongShare { by: *culprit });
        }
        self.retry.hurry(cx.now.monotonic);
    }

    fn leave_out(&mut self, cx: &MemberContext<'_, S>, kgc: KgcId) {
        self.left_out.insert(kgc, cx.now.monotonic.saturating_add(LEFT_OUT));
    }

    pub(crate) fn handle_refusal(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        statements: &StatementBook<S>,
        from: KgcId,
        refusal: &SignRefusal,
    ) {
        let known = statements.list.number();
        let Some(attempt) = self.attempt_of(&refusal.session) else { return };
        let signed = attempt.signing.as_ref().is_some_and(|(_, shares)| shares.contains_key(&from));
        // §5.4: only who was asked refuses, and whose share is there takes nothing back.
        if signed || !attempt.asked.contains(&from) {
            return;
        }
        attempt.refusals.insert(from, refusal.reason);
        // §5.4: a member that has refused is no signer of this attempt.
        let committed = attempt.commitments.remove(&from).is_some();
        let promised =
            attempt.signing.as_ref().is_some_and(|(package, _)| package.commitments().contains_key(&from));
        // §5.4: no member may raise numbers further than the rules allow.
        let highest = refusal.number.min(known.max(cx.now.unix).saturating_add(MAX_AHEAD - 1));
        self.highest = self.highest.max(highest);
        if committed || promised {
            // §5.4: it may have restarted, or signed another list since; or it answers first and never signs. Others
            // sign, for two minutes.
            self.leave_out(cx, from);
        }
        if promised {
            self.give_up(cx);
        }
        self.give_up_if_hopeless(cx);
    }

    fn give_up_if_hopeless(&mut self, cx: &mut MemberContext<'_, S>) {
        let Some(attempt) = &self.attempt else { return };
        let received =
            |kgc: &&KgcId| attempt.refusals.contains_key(*kgc) || attempt.commitments.contains_key(*kgc);
        // Members whose answer may still come.
        let open = attempt.asked.iter().filter(|kgc| !received(kgc)).count();
        if attempt.signing.is_none() && attempt.commitments.len() + open < cx.enough() {
            self.give_up(cx);
        }
    }

    fn give_up(&mut self, cx: &mut MemberContext<'_, S>) {
        let Some(attempt) = self.attempt.take() else { return };
        let SigningAttempt { purpose, commitments, refusals, signing, .. } = attempt;
        let answered = |kgc: &KgcId| match &signing {
            Some((package, shares)) if package.commitments().contains_key(kgc) => shares.contains_key(kgc),
            _ => commitments.contains_key(kgc),
        };
        let all: Vec<KgcId> = cx.config.membership.parameters().kgcs().collect();
        let silent = |kgc: &KgcId| !answered(kgc) && !refusals.contains_key(kgc);
        let silent: Vec<KgcId> = all.iter().copied().filter(silent).collect();
        let willing = all.into_iter().filter(|kgc| answered(kgc)).collect();
        if let Some((package, _)) = &signing {
            let signers = silent.iter().filter(|kgc| package.commitments().contains_key(kgc));
            signers.for_each(|kgc| self.leave_out(cx, *kgc));
        }
        let unwilling = refusals.into_iter().collect();
        cx.event(QuorumEvent::NotSigned { purpose, willing, unwilling, silent });
    }
}
