//! Enrolment at one KGC of a quorum: a pin, a commitment, and one share of a signature.
//!
//! The drone is FROST's coordinator, and untrusted. A KGC signs no byte that the drone chose: identity and
//! P_i are those of the request to which the token is pinned, P_pub is the deployment's; the coordinator
//! chooses the commitments alone. Because every KGC pins the first request it sees for a token, before its
//! first answer, and t KGCs are more than half of them, no two requests for one token get t shares of KGCs
//! that keep to this. Every round gives another key for the same drone, so a KGC contributes to
//! [few](super::registry::MAX_ROUNDS) per token, and to none once the drone proved that it holds one.

use quiver_ainq::{Handle, Label, Suite, VerifiedRequest};
use quiver_machine::{Now, Offence, Peer};
use quiver_message::RefusalReason;
use rand_core::CryptoRngCore;

use super::{Kgc, KgcEvent, KgcRecord};
use crate::threshold::rounds::CommittedRound;
use crate::threshold::{
    Contribution, EnrolCommitment, EnrolDone, EnrolShare, EnrolSigning, EnrolmentMessage, KgcSigningKey,
};

impl<S: Suite> Kgc<S> {
    /// Answers a request that holds with a commitment, once the token is pinned to it.
    pub(super) fn commit(
        &mut self,
        now: Now,
        from: Peer,
        request: VerifiedRequest<S>,
        digest: [u8; 32],
        rng: &mut dyn CryptoRngCore,
    ) {
        let KgcSigningKey::Share(share) = &self.config.master else { return };
        // Fails only if FROST's own arithmetic does; the drone may try again.
        let Ok(committed) = share.commit(rng) else {
            return self.refuse(from, Some(*request.token_id()), RefusalReason::Busy, &digest);
        };
        let answer = EnrolCommitment {
            request_digest: digest,
            kgc: share.kgc(),
            commitment: committed.commitment,
            statement: share.statement().to_vec(),
        };
        // §3.6: durable: token → request, before the commitment leaves; d_j, e_j stay in memory.
        self.pin(now, &request, digest);
        self.rounds.open(now.monotonic, digest, CommittedRound { peer: from, request, sign: committed.sign });
        self.out.send(&self.config.deployment, from, &EnrolmentMessage::Commitment(answer).into());
    }

    fn pin(&mut self, now: Now, request: &VerifiedRequest<S>, digest: [u8; 32]) {
        let token_id = *request.token_id();
        if self.registry.find(&token_id).is_some() {
            return;
        }
        let name = request.identity().name.clone();
        let record = KgcRecord::Pinned {
            token_id,
            name: name.as_str().into(),
            identity: request.identity().encode(),
            pin: request.pin(),
            request: digest,
            at: now.unix,
        };
        self.registry.apply(&record);
        self.out.persist(record);
        self.out.event(KgcEvent::Pinned { token_id, name });
    }

    /// Takes the drone's package of commitments.
    pub(super) fn enrol_signing(
        &mut self,
        now: Now,
        from: Peer,
        message: &EnrolSigning,
        rng: &mut dyn CryptoRngCore,
    ) {
        let digest = message.request_digest;
        self.rounds.expire(now.monotonic);
        // §3.7: the answer got lost: the same share again, byte for byte, which reveals nothing new.
        if let Some(share) = self.rounds.answer(from, &digest, &message.parts).cloned() {
            return self.out.send(&self.config.deployment, from, &EnrolmentMessage::Share(share).into());
        }
        // §3.7: taken out of the open rounds before anything else: no second try with the same nonces.
        let Some(CommittedRound { request, sign, .. }) = self.rounds.take(from, &digest) else {
            return self.refuse(from, None, RefusalReason::RoundOver, &digest);
        };
        let token_id = *request.token_id();
        // §3.9: the token may have been revoked or used up in between.
        if let Err(reason) = self.may_answer(&token_id, &digest) {
            return self.refuse(from, Some(token_id), reason, &digest);
        }
        // §3.7: signs no byte that the drone sends: the message is built from the request it is bound to.
        match sign(request.identity_statement(&self.config.deployment), &message.parts) {
            Ok(contribution) => {
                let answer = self.contribute(now, &request, &contribution, rng);
                let Some(answer) = answer else { return };
                self.rounds.answered(from, digest, &message.parts, answer.clone());
                self.out.send(&self.config.deployment, from, &EnrolmentMessage::Share(answer).into());
            }
            Err(_) => {
                self.refuse(from, Some(token_id), RefusalReason::Malformed, &digest);
                self.blame(from, Offence::OutOfPlace("signing package"));
            }
        }
    }

    /// §3.9: the request whose key a share makes is durable before the share leaves.
    fn contribute(
        &mut self,
        now: Now,
        request: &VerifiedRequest<S>,
        contribution: &Contribution<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Option<EnrolShare> {
        let token_id = *request.token_id();
        // §3.7: sealed for H(request), j and H(package): only the drone can open it.
        let sealed = request.seal_share(self.config.id, &contribution.package, &contribution.share, rng);
        let sealed = sealed.ok()?;
        let handle = request.public_key(contribution.r).handle();
        let record = KgcRecord::Contributed { token_id, handle: *handle.as_bytes(), at: now.unix };
        self.registry.apply(&record);
        self.out.persist(record);
        self.out.event(KgcEvent::Contributed { token_id, name: request.identity().name.clone(), handle });
        Some(EnrolShare { package_digest: contribution.package, share: sealed.encode() })
    }

    /// §3.9: the drone proves that it holds a key, and its token is good for no more of them.
    ///
    /// Only who holds a key under the token's serial can say so. A token that is not bound here, or is closed
    /// already, costs no curve arithmetic.
    pub(super) fn enrol_done(&mut self, now: Now, from: Peer, message: &EnrolDone) {
        let serial = message.serial().filter(|serial| self.registry.awaits_proof(serial));
        let Some(token_id) = serial.filter(|_| matches!(self.config.master, KgcSigningKey::Share(_))) else {
            return;
        };
        match self.proven(message) {
            Err(offence) => self.blame(from, offence),
            Ok(handle) => {
                let record = KgcRecord::Enrolled { token_id, handle: *handle.as_bytes(), at: now.unix };
                self.registry.apply(&record);
                self.out.persist(record);
                self.out.event(KgcEvent::Enrolled { token_id, handle });
            }
        }
    }

    fn proven(&self, message: &EnrolDone) -> Result<Handle, Offence> {
        let (drone, signature) = message.decode::<S>()?;
        let serial = &drone.identity.serial;
        // §3.9: only a holder of a key under the token's serial can sign this.
        signature.verify(&self.config.deployment, &drone, Label::Enrolled, serial)?;
        Ok(drone.handle())
    }
}
