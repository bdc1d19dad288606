//! Fetches the attribute keys of an edge or a leader from the KGC (docs/protocol.md §4.2).
//!
//! A service runs it when it needs keys and ends it when it has them. It persists nothing: the application
//! stores its events, and lost keys are fetched again. After an interruption it resumes, because its request
//! names the keys that it holds.

mod interface;
mod list_request;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use quiver_ainq::{
    Deployment, Error, PendingDelivery, SealedDelivery, SignedAuthority, Suite, VerifiedAuthority,
};
use quiver_machine::{Backoff, Context, Handled, MachinePart, Peer, Route, due};
use quiver_message::{
    DeliveryChallenge, DeliveryOffer, DeliveryReply, Message, Nonce, Payload, Refusal, RefusalReason,
};

pub use self::interface::{FetchCommand, FetchEvent, FetchTiming, HeldAuthority};
use self::list_request::ListRequest;
use super::query::{KeyQuery, KeyResponse};
use crate::client::{Challenge, LONGEST_WAIT, greet};

/// A drone that fetches its attribute keys.
#[derive(Debug)]
pub struct Fetcher<S: Suite> {
    /// Authorities with a verified statement, and the mark of the grant of the held key.
    known: Vec<(VerifiedAuthority<S>, Option<u64>)>,
    /// Connected KGCs, the one to ask first.
    kgcs: Vec<Peer>,
    stage: Stage<S>,
    /// Authorities that have answered in this fetch.
    answered: Vec<[u8; 32]>,
    /// Authorities in whose name a request was refused in this fetch, which is not authenticated.
    refused: Vec<[u8; 32]>,
    revocations: ListRequest,
    deadline: Option<Duration>,
    backoff: Backoff,
}

/// The context of this part.
type FetchContext<'a, S> = Context<'a, S, FetchEvent, Infallible>;

/// Stage of a fetch.
#[derive(Debug)]
enum Stage<S: Suite> {
    /// No fetch is under way.
    Idle,
    /// Waits to begin, or begin again, when the deadline comes or a KGC is connected.
    Waiting,
    /// Asked for a challenge.
    Greeting { kgc: Peer, nonce: Nonce },
    /// Asking one authority after the other.
    Asking(Asking<S>),
}

/// Requests under one challenge.
#[derive(Debug)]
struct Asking<S: Suite> {
    kgc: Peer,
    challenge: Challenge,
    /// Still to be asked.
    rest: VecDeque<[u8; 32]>,
    /// Being asked.
    pending: PendingDelivery<S>,
}

impl<S: Suite> Fetcher<S> {
    /// A fetcher that begins as soon as a KGC is connected.
    ///
    /// # Errors
    /// If the statement of a held key does not verify.
    pub fn new(
        deployment: &Deployment<S>,
        held: Vec<HeldAuthority>,
        timing: FetchTiming,
    ) -> Result<Self, Error> {
        let mut known = Vec::with_capacity(held.len());
        for HeldAuthority { statement, grant } in held {
            let statement = SignedAuthority::decode(&statement)?.verify(deployment)?;
            known.push((statement, grant));
        }
        Ok(Self {
            known,
            kgcs: Vec::new(),
            stage: Stage::Waiting,
            answered: Vec::new(),
            refused: Vec::new(),
            revocations: ListRequest::none(),
            deadline: None,
            backoff: Backoff::new(timing.retry, timing.retry_max),
        })
    }

    /// Also requests the revocation list, if there is a newer one than the list held, number `held` (0 for
    /// `None`). For a drone that joins groups anonymously: it takes lists from no other source.
    #[must_use]
    pub fn asking_for_revocations(mut self, held: u64) -> Self {
        self.revocations = ListRequest::newer_than(held);
        self
    }

    /// Returns true if no fetch is under way.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    fn known(&self, authority: &[u8; 32]) -> Option<&(VerifiedAuthority<S>, Option<u64>)> {
        self.known.iter().find(|(known, _)| known.fingerprint() == authority)
    }

    /// §4.1, step 1.
    fn greet(&mut self, cx: &mut FetchContext<'_, S>) {
        let Some(&kgc) = self.kgcs.first() else {
            (self.stage, self.deadline) = (Stage::Waiting, None);
            return;
        };
        // §A5.3: asked for with every fetch, and before the keys: the answer arrives before anything is
        // published that depends on it.
        self.revocations.send(cx, kgc);
        self.stage = Stage::Greeting { kgc, nonce: greet(cx, kgc, Payload::AttributeKeys) };
        self.deadline = Some(cx.now.monotonic + self.backoff.next(cx.rng));
    }

    /// §4.1, step 2: the KGC's challenge and which authorities there are.
    fn challenged(
        &mut self,
        cx: &mut FetchContext<'_, S>,
        from: Peer,
        message: &DeliveryChallenge,
    ) -> Handled {
        let DeliveryOffer::AttributeKeys { authorities } = &message.offer else { return Handled::No };
        match self.stage {
            Stage::Greeting { kgc, nonce } if kgc == from && nonce == message.nonce => {}
            _ => return Handled::No,
        }
        // §4.2: the list is not authenticated: the authority of a held key is asked in any case, or leaving
        // it out would hide a withdrawal.
        let held =
            self.known.iter().filter(|(_, grant)| grant.is_some()).map(|(known, _)| known.fingerprint());
        let unlisted = held.filter(|authority| !authorities.contains(authority));
        // §4.2: a fetch that starts over asks only those that have not answered.
        let through =
            |authority: &&[u8; 32]| self.answered.contains(*authority) || self.refused.contains(*authority);
        let rest = authorities.iter().chain(unlisted).filter(|authority| !through(authority)).copied();
        let rest = rest.collect();
        self.ask(cx, from, Challenge { nonce: message.nonce, cookie: message.cookie }, rest);
        Handled::Yes
    }

    /// §4.1, step 3: asks the next authority; none left, the fetch is done.
    fn ask(
        &mut self,
        cx: &mut FetchContext<'_, S>,
        kgc: Peer,
        challenge: Challenge,
        mut rest: VecDeque<[u8; 32]>,
    ) {
        let Some(authority) = rest.pop_front() else {
            (self.stage, self.deadline) = (Stage::Idle, None);
            let (answered, refused) = (self.answered.len(), self.refused.len());
            return cx.out.event(FetchEvent::Done { answered, refused });
        };
        let known = self.known(&authority);
        // §4.2: the mark names the grant whose key the drone holds; a verified statement is not asked for
        // again.
        let query = KeyQuery { statement: known.is_none(), held: known.and_then(|(_, grant)| *grant) };
        let asked = challenge.request(cx, kgc, Payload::AttributeKeys, authority, &query.encode());
        let Some(pending) = asked else { return };
        self.stage = Stage::Asking(Asking { kgc, challenge, rest, pending });
        self.deadline = Some(cx.now.monotonic + self.backoff.next(cx.rng));
    }

    /// §4.1, step 4: the sealed reply.
    fn replied(&mut self, cx: &mut FetchContext<'_, S>, from: Peer, reply: &DeliveryReply) -> Handled {
        let Stage::Asking(asking) = &self.stage else { return Handled::No };
        if reply.request_digest != *asking.pending.digest() {
            return Handled::No;
        }
        // §4.2: an attacker may have made a reply that does not open: the authority's own may still come.
        match self.open(cx, &asking.pending, reply) {
            Err(error) => blame(cx, from, error),
            Ok((statement, response)) => {
                let (name, bytes) = (statement.name.clone(), statement.bytes());
                let grant = match &response {
                    // §4.2: no grant is known there: the drone keeps its key, and with it the mark.
                    KeyResponse::Nothing => self.known(statement.fingerprint()).and_then(|(_, grant)| *grant),
                    // §4.2: the application that stores the keys erases this one.
                    KeyResponse::Withdrawn => None,
                    KeyResponse::Held { grant } | KeyResponse::Key { grant, .. } => Some(*grant),
                };
                self.known.retain(|(known, _)| known.fingerprint() != statement.fingerprint());
                self.known.push((statement, grant));
                cx.out.event(FetchEvent::Answered { authority: name, statement: bytes, response });
                self.backoff.reset();
                self.next(cx, true);
            }
        }
        Handled::Yes
    }

    fn open(
        &self,
        cx: &FetchContext<'_, S>,
        pending: &PendingDelivery<S>,
        reply: &DeliveryReply,
    ) -> Result<(VerifiedAuthority<S>, KeyResponse), Error> {
        let known = self.known(pending.authority());
        // §4.2: the KGC's signature makes a statement genuine, whatever its sender.
        let statement = match known {
            Some((statement, _)) => statement.clone(),
            None => SignedAuthority::decode(&reply.statement)?.verify(cx.deployment)?,
        };
        // §4.2: a genuine statement of another kind (§4.3) is about no such authority.
        if !super::is_kind(&statement.kind) {
            return Err(Error::WrongAuthority);
        }
        let sealed = SealedDelivery::decode(&reply.sealed)?;
        let keypair = cx.keypair.ok_or(Error::Stale)?;
        // §4.2: a·N in the key of the answer shows that the authority made it.
        let response = KeyResponse::decode(&pending.open(keypair, &statement, &sealed)?)?;
        let held = known.and_then(|(_, grant)| *grant);
        match &response {
            // §4.2: an answer that confirms a mark which was not stated is an old one.
            KeyResponse::Held { grant } if held != Some(*grant) => Err(Error::Stale),
            _ => Ok((statement, response)),
        }
    }

    /// The authority being asked is through with.
    fn next(&mut self, cx: &mut FetchContext<'_, S>, answered: bool) {
        let Stage::Asking(asking) = core::mem::replace(&mut self.stage, Stage::Waiting) else { return };
        let through = if answered { &mut self.answered } else { &mut self.refused };
        // No more than are listed and held: no authority is asked twice.
        through.push(*asking.pending.authority());
        self.ask(cx, asking.kgc, asking.challenge, asking.rest);
    }

    /// A refusal is not authenticated: it ends this request or slows it down, and changes nothing that is
    /// held.
    fn refused(&mut self, cx: &mut FetchContext<'_, S>, from: Peer, refusal: &Refusal) -> Handled {
        let (kgc, about_us) = match &self.stage {
            Stage::Greeting { kgc, nonce } => (*kgc, refusal.reference == *nonce),
            Stage::Asking(Asking { kgc, challenge, pending, .. }) => {
                (*kgc, refusal.reference == challenge.nonce || refusal.reference == *pending.digest())
            }
            _ => return Handled::No,
        };
        if kgc != from || !about_us {
            return Handled::No;
        }
        cx.out.event(FetchEvent::Refused(refusal.reason));
        let asking = matches!(self.stage, Stage::Asking(_));
        // §4.1: an old cookie and a busy KGC take a new challenge; other refusals are about one authority.
        if asking && !matches!(refusal.reason, RefusalReason::BadCookie | RefusalReason::Busy) {
            self.next(cx, false);
        } else {
            let wait = self.backoff.next(cx.rng).max(refusal.retry_after.min(LONGEST_WAIT));
            (self.stage, self.deadline) = (Stage::Waiting, Some(cx.now.monotonic + wait));
        }
        Handled::Yes
    }
}

fn blame<S: Suite>(cx: &mut FetchContext<'_, S>, peer: Peer, error: Error) {
    cx.out.event(FetchEvent::Blamed { peer, offence: error.into() });
}

impl<S: Suite> MachinePart<S> for Fetcher<S> {
    type Command = FetchCommand;
    type Event = FetchEvent;
    type Record = Infallible;

    fn connected(&mut self, cx: &mut FetchContext<'_, S>, peer: Peer, route: Route) {
        if route == Route::Kgc {
            self.kgcs.push(peer);
            if matches!(self.stage, Stage::Waiting) && self.deadline.is_none() {
                self.greet(cx);
            }
        }
    }

    fn disconnected(&mut self, cx: &mut FetchContext<'_, S>, peer: Peer) {
        self.kgcs.retain(|kgc| *kgc != peer);
        let lost = match &self.stage {
            Stage::Greeting { kgc, .. } | Stage::Asking(Asking { kgc, .. }) => *kgc == peer,
            _ => false,
        };
        if lost {
            self.greet(cx);
        }
    }

    fn handle(&mut self, cx: &mut FetchContext<'_, S>, from: Peer, message: &Message<S>) -> Handled {
        match message {
            Message::DeliveryChallenge(challenge) => self.challenged(cx, from, challenge),
            Message::DeliveryReply(reply) => self.replied(cx, from, reply),
            Message::Refusal(refusal) => self.refused(cx, from, refusal),
            _ => self.revocations.handle(cx, from, message),
        }
    }

    fn command(&mut self, cx: &mut FetchContext<'_, S>, FetchCommand::Fetch: FetchCommand) {
        if self.is_idle() {
            self.answered.clear();
            self.refused.clear();
            self.greet(cx);
        }
    }

    fn tick(&mut self, cx: &mut FetchContext<'_, S>) {
        if !due(self.deadline, cx.now.monotonic) {
            return;
        }
        // It did not answer: the next one, if there is one.
        if !matches!(self.stage, Stage::Waiting) && self.kgcs.len() > 1 {
            self.kgcs.rotate_left(1);
        }
        self.greet(cx);
    }

    fn deadline(&self) -> Option<Duration> {
        self.deadline
    }
}
