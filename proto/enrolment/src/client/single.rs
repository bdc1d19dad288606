//! Enrolment with one KGC at a time.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Deployment, Suite};
use quiver_machine::{Backoff, Now, Peer};
use quiver_message::{EnrolCookie, EnrolHello, Message, Nonce, Refusal};
use rand_core::CryptoRngCore;

use super::{EnrolmentStep, KgcSelection, SharedRequest, Steps};

/// The KGC that is asked, and its deadline.
#[derive(Debug)]
pub(crate) struct Single {
    /// Connected KGCs, the one to ask first.
    kgcs: Vec<Peer>,
    nonce: Option<Nonce>,
    deadline: Option<Duration>,
    backoff: Backoff,
}

impl Single {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self { kgcs: Vec::new(), nonce: None, deadline: None, backoff }
    }

    fn hello<S: Suite>(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> Message<S> {
        let mut nonce = [0; 16];
        rng.fill_bytes(&mut nonce);
        self.nonce = Some(nonce);
        self.deadline = Some(now.monotonic + self.backoff.next(rng));
        Message::EnrolHello(EnrolHello { nonce })
    }

    fn cookie<S: Suite>(
        &self,
        shared: &SharedRequest<S>,
        from: Peer,
        message: &EnrolCookie,
    ) -> Option<EnrolmentStep<S>> {
        // §3.3: the cookie that the hello under way asked for.
        let expected = self.kgcs.first() == Some(&from) && self.nonce == Some(message.nonce);
        expected.then(|| EnrolmentStep::Send(from, shared.request(message)))
    }

    /// A refusal is not authenticated, so it only slows the retries down; the request is never given up for
    /// it.
    fn refusal<S: Suite>(
        &mut self,
        shared: &SharedRequest<S>,
        now: Now,
        from: Peer,
        message: &Refusal,
        rng: &mut dyn CryptoRngCore,
    ) -> Option<EnrolmentStep<S>> {
        let about_us =
            self.nonce.is_some_and(|nonce| message.reference == nonce) || message.reference == shared.digest;
        if self.kgcs.first() != Some(&from) || !about_us {
            return None;
        }
        // §3.5: at most four minutes, whatever time an unauthenticated refusal names.
        let wait = self.backoff.next(rng).max(message.retry_after.min(Duration::from_secs(240)));
        self.deadline = Some(now.monotonic + wait);
        self.nonce = None;
        Some(EnrolmentStep::Refused(message.reason))
    }
}

impl<S: Suite> KgcSelection<S> for Single {
    fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    fn connected(&mut self, now: Now, kgc: Peer, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        // §3.4: the newest connection first: a repeat of the request gets the stored reply.
        self.kgcs.insert(0, kgc);
        self.backoff.reset();
        alloc::vec![EnrolmentStep::Send(kgc, self.hello(now, rng))]
    }

    fn disconnected(
        &mut self,
        _: &SharedRequest<S>,
        _: Now,
        peer: Peer,
        _: &mut dyn CryptoRngCore,
    ) -> Steps<S> {
        self.kgcs.retain(|kgc| *kgc != peer);
        if self.kgcs.is_empty() {
            self.nonce = None;
            self.deadline = None;
        }
        Vec::new()
    }

    /// The deadline has come: begin again with a fresh nonce. The request itself stays the same.
    fn retry(&mut self, _: &SharedRequest<S>, now: Now, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        // It did not answer: the next one, if there is one.
        if self.kgcs.len() > 1 {
            self.kgcs.rotate_left(1);
        }
        let first = self.kgcs.first().copied();
        first.map(|kgc| EnrolmentStep::Send(kgc, self.hello(now, rng))).into_iter().collect()
    }

    fn receive(
        &mut self,
        shared: &SharedRequest<S>,
        deployment: &Deployment<S>,
        (now, from): (Now, Peer),
        message: &Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Steps<S> {
        let step = match message {
            Message::EnrolCookie(cookie) => self.cookie(shared, from, cookie),
            // §3.4: the stored reply to a repeat is as good as the first.
            Message::EnrolReply(reply) => shared.open(deployment, reply).map(|opened| match opened {
                Ok(keypair) => EnrolmentStep::Enrolled(keypair),
                Err(error) => EnrolmentStep::Wrong(from, error.into()),
            }),
            Message::Refusal(refusal) => self.refusal(shared, now, from, refusal, rng),
            _ => None,
        };
        step.into_iter().collect()
    }
}
