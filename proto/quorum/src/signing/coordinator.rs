//! The coordinator's side: propose, gather, put together.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{KgcId, MAX_REVOCATION_LIST_LEN, Purpose, StatementSignature};
use quiver_machine::Now;
use quiver_message::quorum::{
    MAX_BODY_LEN, QuorumMessage, SignCommitment, SignPackage, SignProposal, SignRefusal, SignRefusalReason,
    SignShare, SignerCommitment, SigningSession,
};
use quiver_quorum::{Commitment, Error, QuorumSuite, SignatureShare, SigningNonces, SigningPackage};
use rand_core::CryptoRngCore;

use crate::interface::{proposed, tag};
use crate::signing_policy::MAX_AHEAD;
use crate::{QuorumEvent, QuorumNode};

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

impl<S: QuorumSuite> QuorumNode<S> {
    /// Tries to have signed what ought to be, and gives up on what takes too long.
    pub(crate) fn tick_signing(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if self.signing.attempt.as_ref().is_some_and(|attempt| attempt.deadline <= now.monotonic) {
            self.give_up(now);
        }
        // §5.4: nonces live for a minute.
        self.signing.promises.retain(|_, promise| now.monotonic <= promise.until);
        if self.signing.attempt.is_some() || !self.signing.retry.has_come(now.monotonic, rng) {
            return;
        }
        let jobs = self.jobs(now);
        // §5.4: by turns, so that a statement that cannot be signed does not hold up the others.
        let turn = self.signing.turn;
        let chosen = turn.checked_rem(jobs.len()).and_then(|place| jobs.into_iter().nth(place));
        match chosen {
            Some((purpose, body)) => {
                self.signing.turn = turn.wrapping_add(1);
                self.propose(now, purpose, body, rng);
            }
            None => self.signing.retry.stop(),
        }
    }

    /// Statements to be signed, as far as this member knows.
    fn jobs(&self, now: Now) -> Vec<(Purpose, Vec<u8>)> {
        let Some(keys) = &self.base.keys else { return Vec::new() };
        let about_shares = || keys.ainq().public().encode();
        let quorum = self.statements.quorum.is_none().then(|| (Purpose::Quorum, about_shares()));
        let list = self.next_list(now.unix).map(|list| (Purpose::Revocation, list.encode()));
        let proposals = self.statements.proposals.iter().map(|body| (proposed(body), body.clone()));
        quorum.into_iter().chain(list).chain(proposals).collect()
    }

    fn propose(&mut self, now: Now, purpose: Purpose, body: Vec<u8>, rng: &mut dyn CryptoRngCore) {
        let Some(version) = self.base.keys.as_ref().map(|keys| keys.version()) else { return };
        let signed_len = body.len() + StatementSignature::<S>::LEN;
        let too_long = purpose == Purpose::Revocation && signed_len > MAX_REVOCATION_LIST_LEN;
        if body.len() > MAX_BODY_LEN || too_long {
            return self.base.out.event(QuorumEvent::TooMany);
        }
        let own = self.base.config.id;
        // §5.4: the same rules as for what others propose.
        let drawn = self.authorize(now.unix, own, version, purpose, &body).and_then(|()| self.draw(rng));
        let (Ok((nonces, commitment)), Some(tag)) = (drawn, tag(purpose)) else { return };
        let mut session = [0; 16];
        rng.fill_bytes(&mut session);
        // §5.4: `SignProposal` to all members that are connected and not left out.
        let asked = self.whom_to_ask(now);
        let proposal = SignProposal { session, version, purpose: tag, body: body.clone() };
        let message = QuorumMessage::SignProposal(proposal);
        asked.iter().for_each(|kgc| self.send(*kgc, &message));
        self.signing.attempt = Some(SigningAttempt {
            session,
            purpose,
            body,
            version,
            nonces: Some(nonces),
            commitments: BTreeMap::from([(own, commitment)]),
            refusals: BTreeMap::new(),
            asked,
            signing: None,
            deadline: now.monotonic.saturating_add(TIMEOUT),
        });
        self.give_up_if_hopeless(now);
    }

    /// All connected members, without those that failed before; with them if there are too few.
    fn whom_to_ask(&mut self, now: Now) -> Vec<KgcId> {
        let left_out = &mut self.signing.left_out;
        left_out.retain(|_, until| now.monotonic < *until);
        let all: Vec<KgcId> = self.base.links.keys().copied().collect();
        let asked: Vec<KgcId> = all.iter().copied().filter(|kgc| !left_out.contains_key(kgc)).collect();
        if asked.len() + 1 < self.enough() { all } else { asked }
    }

    fn attempt(&mut self, session: &SigningSession) -> Option<&mut SigningAttempt<S>> {
        self.signing.attempt.as_mut().filter(|attempt| attempt.session == *session)
    }

    pub(crate) fn handle_commitment(&mut self, now: Now, from: KgcId, message: &SignCommitment) {
        let enough = self.enough();
        let Some(attempt) = self.attempt(&message.session) else { return };
        let known = attempt.commitments.contains_key(&from) || attempt.refusals.contains_key(&from);
        if attempt.signing.is_some() || known || !attempt.asked.contains(&from) {
            return;
        }
        match Commitment::decode(&message.commitment) {
            Ok(commitment) => drop(attempt.commitments.insert(from, commitment)),
            Err(error) => {
                self.leave_out(now, from);
                return self.blame_for(from, &error);
            }
        }
        if attempt.commitments.len() >= enough {
            self.have_signed(now);
        }
    }

    /// Enough would sign.
    fn have_signed(&mut self, now: Now) {
        let Some(mut attempt) = self.signing.attempt.take() else { return };
        // §5.4: the nonces are taken out: they sign once.
        let Some(nonces) = attempt.nonces.take() else { return };
        let commitments: Vec<_> = attempt.commitments.iter().map(|(kgc, one)| (*kgc, *one)).collect();
        let wired = commitments
            .iter()
            .map(|(kgc, one)| SignerCommitment { kgc: *kgc, commitment: one.encode() })
            .collect();
        let SigningAttempt { purpose, ref body, version, session, .. } = attempt;
        // §5.4: the signed bytes are built from the body that was authorised here.
        let Ok(package) = self.package(version, purpose, body, commitments) else { return };
        let own = self.sign(purpose, body, nonces, &package).and_then(|share| SignatureShare::decode(&share));
        let Ok(own) = own else { return };
        let message = QuorumMessage::SignPackage(SignPackage { session, commitments: wired });
        let signers: Vec<KgcId> = package.commitments().keys().copied().collect();
        attempt.deadline = now.monotonic.saturating_add(TIMEOUT);
        attempt.signing = Some((package, BTreeMap::from([(self.base.config.id, own)])));
        self.signing.attempt = Some(attempt);
        // §5.4: `SignPackage` to the signers; there is no connection to this member itself.
        signers.into_iter().for_each(|kgc| self.send(kgc, &message));
    }

    pub(crate) fn handle_share(&mut self, now: Now, from: KgcId, message: &SignShare) {
        let Some(attempt) = self.attempt(&message.session) else { return };
        let Some((package, shares)) = &mut attempt.signing else { return };
        if !package.commitments().contains_key(&from) || shares.contains_key(&from) {
            return;
        }
        match SignatureShare::decode(&message.share) {
            Ok(share) => drop(shares.insert(from, share)),
            Err(error) => {
                self.blame_for(from, &error);
                return self.spoilt(now, &[from]);
            }
        }
        if shares.len() == package.commitments().len() {
            self.put_together(now);
        }
    }

    fn put_together(&mut self, now: Now) {
        let Some(SigningAttempt { purpose, body, signing: Some((package, shares)), .. }) =
            self.signing.attempt.take()
        else {
            return;
        };
        let Some(keys) = &self.base.keys else { return };
        // §5.4: FROST verifies every share if the signature fails, and names the culprits.
        match keys.ainq().public().aggregate_statement(&package, &shares) {
            Ok(signature) => self.signed(now, None, purpose, body, &signature),
            Err(Error::InvalidSignatureShares { culprits }) => self.spoilt(now, &culprits),
            Err(_) => {}
        }
        // There may be more to sign.
        self.signing.retry.hurry(now.monotonic);
    }

    fn spoilt(&mut self, now: Now, culprits: &[KgcId]) {
        self.signing.attempt = None;
        for culprit in culprits {
            // §5.4: left out of the next attempts for two minutes.
            self.leave_out(now, *culprit);
            self.base.out.event(QuorumEvent::WrongShare { by: *culprit });
        }
        self.signing.retry.hurry(now.monotonic);
    }

    fn leave_out(&mut self, now: Now, kgc: KgcId) {
        self.signing.left_out.insert(kgc, now.monotonic.saturating_add(LEFT_OUT));
    }

    pub(crate) fn handle_sign_refusal(&mut self, now: Now, from: KgcId, refusal: &SignRefusal) {
        let known = self.statements.list.number();
        let Some(attempt) = self.attempt(&refusal.session) else { return };
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
        let highest = refusal.number.min(known.max(now.unix).saturating_add(MAX_AHEAD - 1));
        self.signing.highest = self.signing.highest.max(highest);
        if committed || promised {
            // §5.4: it may have restarted, or signed another list since; or it answers first and never signs. Others
            // sign, for two minutes.
            self.leave_out(now, from);
        }
        if promised {
            self.give_up(now);
        }
        self.give_up_if_hopeless(now);
    }

    fn give_up_if_hopeless(&mut self, now: Now) {
        let Some(attempt) = &self.signing.attempt else { return };
        let received =
            |kgc: &&KgcId| attempt.refusals.contains_key(*kgc) || attempt.commitments.contains_key(*kgc);
        // Members whose answer may still come.
        let open = attempt.asked.iter().filter(|kgc| !received(kgc)).count();
        if attempt.signing.is_none() && attempt.commitments.len() + open < self.enough() {
            self.give_up(now);
        }
    }

    fn give_up(&mut self, now: Now) {
        let Some(attempt) = self.signing.attempt.take() else { return };
        let SigningAttempt { purpose, commitments, refusals, signing, .. } = attempt;
        let answered = |kgc: &KgcId| match &signing {
            Some((package, shares)) if package.commitments().contains_key(kgc) => shares.contains_key(kgc),
            _ => commitments.contains_key(kgc),
        };
        let all: Vec<KgcId> = self.base.config.membership.parameters().kgcs().collect();
        let silent = |kgc: &KgcId| !answered(kgc) && !refusals.contains_key(kgc);
        let silent: Vec<KgcId> = all.iter().copied().filter(silent).collect();
        let willing = all.into_iter().filter(|kgc| answered(kgc)).collect();
        if let Some((package, _)) = &signing {
            let signers = silent.iter().filter(|kgc| package.commitments().contains_key(kgc));
            signers.for_each(|kgc| self.leave_out(now, *kgc));
        }
        let unwilling = refusals.into_iter().collect();
        self.base.out.event(QuorumEvent::NotSigned { purpose, willing, unwilling, silent });
    }
}
