//! Answers enrolment requests at the KGC (docs/protocol.md §3.4).
//!
//! Order matters: cookie before any curve arithmetic; the stored reply before verification, so that a repeat
//! is cheap; the pin durable before the first answer, so that no crash lets a token serve two keys. Answers
//! of a quorum's KGC are in [`sharing`](super::sharing).

use quiver_ainq::{Error, KgcId, Suite, VerifiedRequest};
use quiver_machine::{Now, Peer};
use quiver_message::{EnrolCookie, EnrolHello, EnrolReply, EnrolRequest, Message, RefusalReason};
use rand_core::CryptoRngCore;

use super::{Kgc, KgcEvent, KgcRecord};
use crate::threshold::KgcSigningKey;

impl<S: Suite> Kgc<S> {
    pub(super) fn enrol_hello(&mut self, now: Now, from: Peer, hello: &EnrolHello) {
        // §3.3: a stranger's first packet costs one MAC.
        let cookie = self.cookies.bake(now.monotonic, from, &[&hello.nonce]);
        let answer = Message::EnrolCookie(EnrolCookie { nonce: hello.nonce, cookie });
        self.out.send(&self.config.deployment, from, &answer);
    }

    pub(super) fn enrol_request(
        &mut self,
        now: Now,
        from: Peer,
        message: &EnrolRequest,
        rng: &mut dyn CryptoRngCore,
    ) {
        // §3.4: first the cookie.
        if !self.cookies.recognises(now.monotonic, from, &[&message.nonce], &message.cookie) {
            self.refuse(from, None, RefusalReason::BadCookie, &message.nonce);
            return;
        }
        let request = match quiver_ainq::EnrolmentRequest::<S>::decode(&message.request) {
            Ok(request) => request,
            Err(error) => {
                self.refuse(from, None, RefusalReason::Malformed, &message.nonce);
                self.blame(from, error.into());
                return;
            }
        };
        // §3.4: a request has one encoding, so equal digests are a byte-identical repeat.
        let digest = request.digest();
        let token_id = request.statement().id;
        let issue = self.registry.find(&token_id).filter(|issue| issue.request == digest);
        // §3.4: it gets the stored reply; its sender has proven itself, and may learn the token's state.
        if let Some(reply) = issue.and_then(|issue| issue.reply.clone()) {
            if let Err(reason) = self.may_answer(&token_id, &digest) {
                return self.refuse(from, Some(token_id), reason, &digest);
            }
            let reply = EnrolReply { request_digest: digest, reply };
            self.out.send(&self.config.deployment, from, &Message::EnrolReply(reply));
            self.out.event(KgcEvent::Repeated { token_id });
            return;
        }
        let this: KgcId = self.config.id;
        // §3.4: the operator's signature, the expiry, and both proofs.
        match request.verify(&self.config.deployment, &self.config.operators, this, now.unix) {
            Ok(request) => self.answer_request(now, from, request, digest, rng),
            Err(error) => {
                let reason = refusal_reason(&error);
                self.refuse(from, Some(token_id), reason, &digest);
                // §13.8: expired or foreign tokens are no offence.
                if matches!(reason, RefusalReason::Malformed | RefusalReason::BadSignature) {
                    self.blame(from, error.into());
                }
            }
        }
    }

    /// Revoked tokens get no answer; used tokens only one to the request that they are bound to.
    pub(super) fn may_answer(&self, token_id: &[u8; 16], digest: &[u8; 32]) -> Result<(), RefusalReason> {
        if self.registry.token_is_revoked(token_id) {
            return Err(RefusalReason::TokenRevoked);
        }
        match self.registry.find(token_id) {
            // §3.4: another P_i under the same token is refused for ever.
            Some(issue) if issue.request != *digest => Err(RefusalReason::TokenReused),
            _ if self.registry.is_spent(token_id) => Err(RefusalReason::TokenSpent),
            _ => Ok(()),
        }
    }

    fn answer_request(
        &mut self,
        now: Now,
        from: Peer,
        request: VerifiedRequest<S>,
        digest: [u8; 32],
        rng: &mut dyn CryptoRngCore,
    ) {
        let token_id = *request.token_id();
        // §3.4: neither revoked nor pinned to another key. Only after the signatures hold: the knowledge of a
        // token's id reveals nothing of its state.
        if let Err(reason) = self.may_answer(&token_id, &digest) {
            return self.refuse(from, Some(token_id), reason, &digest);
        }
        // §3.4: no other drone holds the name.
        if self.registry.name_is_taken(request.identity().name.as_str(), &token_id, now.unix) {
            return self.refuse(from, Some(token_id), RefusalReason::NameTaken, &digest);
        }
        // §3.4: no other leader of the group has the ordinal: two with one ordinal would open the same terms.
        if self.registry.ordinal_is_taken(&request.identity().role, &token_id, now.unix) {
            return self.refuse(from, Some(token_id), RefusalReason::OrdinalTaken, &digest);
        }
        match &self.config.master {
            KgcSigningKey::Whole(_) => self.issue(now, from, &request, digest, rng),
            KgcSigningKey::Share(_) => self.commit(now, from, request, digest, rng),
        }
    }

    fn issue(
        &mut self,
        now: Now,
        from: Peer,
        request: &VerifiedRequest<S>,
        digest: [u8; 32],
        rng: &mut dyn CryptoRngCore,
    ) {
        let KgcSigningKey::Whole(master) = &self.config.master else { return };
        let token_id = *request.token_id();
        let name = request.identity().name.clone();
        // §3.5: s and R, sealed under e·P_i ‖ e·N_i.
        let (reply, public) = master.issue(&self.config.deployment, request, self.config.id, rng);
        let handle = public.handle();
        let record = KgcRecord::Issued {
            token_id,
            name: name.as_str().into(),
            identity: request.identity().encode(),
            handle: *handle.as_bytes(),
            pin: request.pin(),
            request: digest,
            reply: reply.encode(),
            at: now.unix,
        };
        // §3.4: pin and reply are durable before the KGC answers.
        self.registry.apply(&record);
        self.out.persist(record);
        let answer = EnrolReply { request_digest: digest, reply: reply.encode() };
        self.out.send(&self.config.deployment, from, &Message::EnrolReply(answer));
        self.out.event(KgcEvent::Issued { token_id, name, handle });
    }
}

fn refusal_reason(error: &Error) -> RefusalReason {
    match error {
        Error::Expired => RefusalReason::TokenExpired,
        Error::UnknownOperator | Error::WrongDeployment | Error::WrongSuite | Error::NotAuthorised => {
            RefusalReason::TokenForeign
        }
        Error::InvalidSignature => RefusalReason::BadSignature,
        _ => RefusalReason::Malformed,
    }
}
