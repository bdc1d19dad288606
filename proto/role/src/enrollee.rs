//! The drone's side of enrolment: hello, cookie, request, sealed partial key. Edges and leaders enrol alike.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    Deployment, DroneKeypair, Error, IssuedToken, KgcId, PendingEnrolment, SealedReply, Suite,
};
use quiver_message::{EnrolCookie, EnrolHello, EnrolReply, EnrolRequest, Message, Nonce, Reason, Refusal};
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use crate::backoff::Backoff;
use crate::{Now, Peer};

/// A drone that has a token and wants a key.
#[derive(Debug)]
pub(crate) struct Enrollee<S: Suite> {
    pending: PendingEnrolment<S>,
    request: Vec<u8>,
    digest: [u8; 32],
    /// Connected KGCs, the one to ask first.
    kgcs: Vec<Peer>,
    nonce: Option<Nonce>,
    deadline: Option<Duration>,
    backoff: Backoff,
}

/// What an answer from the KGC came to.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "short-lived")]
pub(crate) enum Outcome<S: Suite> {
    /// Nothing to do.
    Ignored,
    /// Send this to the KGC.
    Send(Message<S>),
    /// The key verified.
    Enrolled(DroneKeypair<S>),
    /// Somebody on the way, or the KGC, sent something that does not hold.
    Wrong(Error),
    /// The KGC says no.
    Refused(Reason),
}

impl<S: Suite> Enrollee<S> {
    /// Starts a new enrolment. The caller persists [`Self::encode`] before anything is sent: the KGC binds the token to
    /// the secret value drawn here for ever.
    pub(crate) fn start(
        deployment: &Deployment<S>,
        token: &IssuedToken<S>,
        kgcs: &[KgcId],
        backoff: Backoff,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Self, Error> {
        let mut session = [0; 16];
        rng.fill_bytes(&mut session);
        let (_, pending) = quiver_ainq::EnrolmentRequest::create(deployment, token, kgcs, session, rng)?;
        Ok(Self::resume(pending, backoff))
    }

    /// Goes on with an enrolment that was persisted.
    pub(crate) fn resume(pending: PendingEnrolment<S>, backoff: Backoff) -> Self {
        let (request, digest) = (pending.request().encode(), pending.request().digest());
        Self { pending, request, digest, kgcs: Vec::new(), nonce: None, deadline: None, backoff }
    }

    pub(crate) fn encode(&self) -> Zeroizing<Vec<u8>> {
        self.pending.encode()
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// A KGC is connected: say hello.
    pub(crate) fn connected(&mut self, now: Now, kgc: Peer, rng: &mut dyn CryptoRngCore) -> Message<S> {
        self.kgcs.insert(0, kgc);
        self.backoff.reset();
        self.hello(now, rng)
    }

    pub(crate) fn disconnected(&mut self, peer: Peer) {
        self.kgcs.retain(|kgc| *kgc != peer);
        if self.kgcs.is_empty() {
            self.nonce = None;
            self.deadline = None;
        }
    }

    /// The deadline has come: begin again with a fresh nonce. The request itself stays the same.
    pub(crate) fn retry(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> Option<(Peer, Message<S>)> {
        // It did not answer: the next one, if there is one.
        if self.kgcs.len() > 1 {
            self.kgcs.rotate_left(1);
        }
        let kgc = *self.kgcs.first()?;
        Some((kgc, self.hello(now, rng)))
    }

    fn hello(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> Message<S> {
        let mut nonce = [0; 16];
        rng.fill_bytes(&mut nonce);
        self.nonce = Some(nonce);
        self.deadline = Some(now.monotonic + self.backoff.next(rng));
        Message::EnrolHello(EnrolHello { nonce })
    }

    /// Takes an answer to the enrolment; other messages are none of its business.
    pub(crate) fn hear(
        &mut self,
        deployment: &Deployment<S>,
        now: Now,
        from: Peer,
        message: &Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Outcome<S> {
        match message {
            Message::EnrolCookie(cookie) => self.cookie(from, cookie),
            Message::EnrolReply(reply) => self.reply(deployment, reply),
            Message::Refusal(refusal) => self.refusal(now, from, refusal, rng),
            _ => Outcome::Ignored,
        }
    }

    fn cookie(&self, from: Peer, message: &EnrolCookie) -> Outcome<S> {
        if self.kgcs.first() != Some(&from) || self.nonce != Some(message.nonce) {
            return Outcome::Ignored;
        }
        Outcome::Send(Message::EnrolRequest(EnrolRequest {
            nonce: message.nonce,
            cookie: message.cookie,
            request: self.request.clone(),
        }))
    }

    fn reply(&self, deployment: &Deployment<S>, message: &EnrolReply) -> Outcome<S> {
        if message.request_digest != self.digest {
            return Outcome::Ignored;
        }
        let opened =
            SealedReply::decode(&message.reply).and_then(|reply| self.pending.open(deployment, &reply));
        match opened {
            Ok(keypair) => Outcome::Enrolled(keypair),
            Err(error) => Outcome::Wrong(error),
        }
    }

    /// A refusal is not authenticated, so it only slows the retries down; the request is never given up for it.
    fn refusal(
        &mut self,
        now: Now,
        from: Peer,
        message: &Refusal,
        rng: &mut dyn CryptoRngCore,
    ) -> Outcome<S> {
        let about_us =
            self.nonce.is_some_and(|nonce| message.reference == nonce) || message.reference == self.digest;
        if self.kgcs.first() != Some(&from) || !about_us {
            return Outcome::Ignored;
        }
        let wait = self.backoff.next(rng).max(message.retry_after.min(Duration::from_secs(240)));
        self.deadline = Some(now.monotonic + wait);
        self.nonce = None;
        Outcome::Refused(message.reason)
    }
}
