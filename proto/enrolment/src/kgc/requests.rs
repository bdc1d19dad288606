//! Answers enrolment requests at the KGC (docs/protocol.md §3.4).
//!
//! Order matters: cookie before any curve arithmetic; the stored reply before verification, so that a repeat
//! is cheap; the pin durable before the first answer, so that no crash lets a token serve two keys. The KGC's key
//! answers what holds ([`IssuingKey`](super::IssuingKey)).

use quiver_ainq::{Error, KgcId, Suite, VerifiedRequest};
use quiver_machine::{Now, Peer};
use quiver_message::{EnrolCookie, EnrolHello, EnrolReply, EnrolRequest, Message, RefusalReason};
use rand_core::CryptoRngCore;

use super::{Kgc, KgcEvent};

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
            self.key(now, from, rng).1.refuse(None, RefusalReason::BadCookie, &message.nonce);
            return;
        }
        let request = match quiver_ainq::EnrolmentRequest::<S>::decode(&message.request) {
            Ok(request) => request,
            Err(error) => {
                self.key(now, from, rng).1.refuse(None, RefusalReason::Malformed, &message.nonce);
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
            if let Err(reason) = self.registry.may_answer(&token_id, &digest) {
                return self.key(now, from, rng).1.refuse(Some(token_id), reason, &digest);
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
                self.key(now, from, rng).1.refuse(Some(token_id), reason, &digest);
                // §13.8: expired or foreign tokens are no offence.
                if matches!(reason, RefusalReason::Malformed | RefusalReason::BadSignature) {
                    self.blame(from, error.into());
                }
            }
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
        if let Err(reason) = self.registry.may_answer(&token_id, &digest) {
            return self.key(now, from, rng).1.refuse(Some(token_id), reason, &digest);
        }
        // §3.4: no other drone holds the name.
        if self.registry.name_is_taken(request.identity().name.as_str(), &token_id, now.unix) {
            return self.key(now, from, rng).1.refuse(Some(token_id), RefusalReason::NameTaken, &digest);
        }
        // §3.4: no other leader of the group has the ordinal: two with one ordinal would open the same terms.
        if self.registry.ordinal_is_taken(&request.identity().role, &token_id, now.unix) {
            return self.key(now, from, rng).1.refuse(Some(token_id), RefusalReason::OrdinalTaken, &digest);
        }
        let (key, mut cx) = self.key(now, from, rng);
        key.answer(&mut cx, request, digest);
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
