//! Enrolment at one KGC of a quorum: a pin, a commitment, and one share of a signature.
//!
//! The drone is FROST's coordinator, and untrusted. A KGC signs no byte that the drone chose: identity and
//! P_i are those of the request to which the token is pinned, P_pub is the deployment's; the coordinator
//! chooses the commitments alone. Because every KGC pins the first request it sees for a token, before its
//! first answer, and t KGCs are more than half of them, no two requests for one token get t shares of KGCs
//! that keep to this. Every round gives another key for the same drone, so a KGC contributes to
//! few per token, and to none once the drone proved that it holds one.

use alloc::boxed::Box;
use core::time::Duration;

use quiver_ainq::{Deployment, Handle, KgcId, Label, Serial, Suite, VerifiedRequest};
use quiver_machine::{Offence, Peer};
use quiver_message::{Message, RefusalReason};

use super::master::{Contribution, MasterShare};
use super::rounds::{CommittedRound, OpenRounds};
use crate::kgc::{IssuingKey, KgcContext, KgcEvent, KgcRecord, KgcSigningKey};
use crate::threshold::message::{EnrolCommitment, EnrolDone, EnrolShare, EnrolSigning, EnrolmentMessage};

/// A share of the key, and the rounds that are open with it: a commitment ends with a refresh.
#[derive(Debug)]
struct SharedKey<S: Suite> {
    share: MasterShare<S>,
    rounds: OpenRounds<S>,
}

impl<S: Suite> From<MasterShare<S>> for KgcSigningKey<S> {
    fn from(share: MasterShare<S>) -> Self {
        Self(Box::new(SharedKey { share, rounds: OpenRounds::new() }))
    }
}

impl<S: Suite> IssuingKey<S> for SharedKey<S> {
    fn share_of(&self) -> Option<KgcId> {
        Some(self.share.kgc())
    }

    /// Answers a request that holds with a commitment, once the token is pinned to it.
    fn answer(&mut self, cx: &mut KgcContext<'_, S>, request: VerifiedRequest<S>, digest: [u8; 32]) {
        // Fails only if FROST's own arithmetic does; the drone may try again.
        let Ok(committed) = self.share.commit(cx.rng) else {
            return cx.refuse(Some(*request.token_id()), RefusalReason::Busy, &digest);
        };
        let answer = EnrolCommitment {
            request_digest: digest,
            kgc: self.share.kgc(),
            commitment: committed.commitment,
            statement: self.share.statement().to_vec(),
        };
        // §3.6: durable: token → request, before the commitment leaves; d_j, e_j stay in memory.
        pin(cx, &request, digest);
        let round = CommittedRound { peer: cx.from, request, sign: committed.sign };
        self.rounds.open(cx.now.monotonic, digest, round);
        cx.send(&EnrolmentMessage::Commitment(answer).into());
    }

    fn receive(&mut self, cx: &mut KgcContext<'_, S>, message: &Message<S>) -> bool {
        match message.extension() {
            Some(Ok(EnrolmentMessage::Signing(signing))) => self.sign(cx, &signing),
            Some(Ok(EnrolmentMessage::Done(done))) => close(cx, &done),
            Some(Ok(EnrolmentMessage::Commitment(_) | EnrolmentMessage::Share(_))) => {
                cx.blame(Offence::OutOfPlace("message to a KGC"));
            }
            Some(Err(error)) => cx.blame(error.into()),
            None => return false,
        }
        true
    }

    fn expire(&mut self, now: Duration) {
        self.rounds.expire(now);
    }

    fn deadline(&self) -> Option<Duration> {
        self.rounds.deadline()
    }

    fn disconnected(&mut self, peer: Peer) {
        self.rounds.disconnected(peer);
    }

    fn forget(&mut self) {
        self.rounds.clear();
    }

    fn open_rounds(&self) -> usize {
        self.rounds.len()
    }
}

impl<S: Suite> SharedKey<S> {
    /// Takes the drone's package of commitments.
    fn sign(&mut self, cx: &mut KgcContext<'_, S>, message: &EnrolSigning) {
        let digest = message.request_digest;
        self.rounds.expire(cx.now.monotonic);
        // §3.7: the answer got lost: the same share again, byte for byte, which reveals nothing new.
        if let Some(share) = self.rounds.answer(cx.from, &digest, &message.parts).cloned() {
            return cx.send(&EnrolmentMessage::Share(share).into());
        }
        // §3.7: taken out of the open rounds before anything else: no second try with the same nonces.
        let Some(CommittedRound { request, sign, .. }) = self.rounds.take(cx.from, &digest) else {
            return cx.refuse(None, RefusalReason::RoundOver, &digest);
        };
        let token_id = *request.token_id();
        // §3.9: the token may have been revoked or used up in between.
        if let Err(reason) = cx.registry.may_answer(&token_id, &digest) {
            return cx.refuse(Some(token_id), reason, &digest);
        }
        // §3.7: signs no byte that the drone sends: the message is built from the request it is bound to.
        match sign(request.identity_statement(cx.deployment), &message.parts) {
            Ok(contribution) => {
                let Some(answer) = contribute(cx, &request, &contribution) else { return };
                self.rounds.answered(cx.from, digest, &message.parts, answer.clone());
                cx.send(&EnrolmentMessage::Share(answer).into());
            }
            Err(_) => {
                cx.refuse(Some(token_id), RefusalReason::Malformed, &digest);
                cx.blame(Offence::OutOfPlace("signing package"));
            }
        }
    }
}

fn pin<S: Suite>(cx: &mut KgcContext<'_, S>, request: &VerifiedRequest<S>, digest: [u8; 32]) {
    let token_id = *request.token_id();
    if cx.registry.find(&token_id).is_some() {
        return;
    }
    let name = request.identity().name.clone();
    cx.record(KgcRecord::Pinned {
        token_id,
        name: name.as_str().into(),
        identity: request.identity().encode(),
        pin: request.pin(),
        request: digest,
        at: cx.now.unix,
    });
    cx.event(KgcEvent::Pinned { token_id, name });
}

/// §3.9: the request whose key a share makes is durable before the share leaves.
fn contribute<S: Suite>(
    cx: &mut KgcContext<'_, S>,
    request: &VerifiedRequest<S>,
    contribution: &Contribution<S>,
) -> Option<EnrolShare> {
    let token_id = *request.token_id();
    // §3.7: sealed for H(request), j and H(package): only the drone can open it.
    let sealed = request.seal_share(cx.id, &contribution.package, &contribution.share, cx.rng);
    let sealed = sealed.ok()?;
    let handle = request.public_key(contribution.r).handle();
    cx.record(KgcRecord::Contributed { token_id, handle: *handle.as_bytes(), at: cx.now.unix });
    cx.event(KgcEvent::Contributed { token_id, name: request.identity().name.clone(), handle });
    Some(EnrolShare { package_digest: contribution.package, share: sealed.encode() })
}

/// §3.9: the drone proves that it holds a key, and its token is good for no more of them.
///
/// Only who holds a key under the token's serial can say so. A token that is not bound here, or is closed
/// already, costs no curve arithmetic.
fn close<S: Suite>(cx: &mut KgcContext<'_, S>, message: &EnrolDone) {
    let is_news = |serial: &Serial| cx.registry.find(serial).is_some() && !cx.registry.is_enrolled(serial);
    let Some(token_id) = message.serial().filter(is_news) else { return };
    match proven(cx.deployment, message) {
        Err(offence) => cx.blame(offence),
        Ok(handle) => {
            cx.record(KgcRecord::Enrolled { token_id, handle: *handle.as_bytes(), at: cx.now.unix });
            cx.event(KgcEvent::Enrolled { token_id, handle });
        }
    }
}

fn proven<S: Suite>(deployment: &Deployment<S>, message: &EnrolDone) -> Result<Handle, Offence> {
    let (drone, signature) = message.decode::<S>()?;
    let serial = &drone.identity.serial;
    // §3.9: only a holder of a key under the token's serial can sign this.
    signature.verify(deployment, &drone, Label::Enrolled, serial)?;
    Ok(drone.handle())
}
