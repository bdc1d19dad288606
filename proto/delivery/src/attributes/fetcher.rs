//! How an enrolled drone fetches its attribute keys: edges and leaders alike, over a connection to the KGC.
//!
//! A machine of its own, so that a service runs it when it wants keys and ends it when it has them. It persists nothing:
//! what it reports is stored by whoever runs it, and what was lost is fetched again. Interrupted, it goes on where it was,
//! because it says which keys it holds.

mod interface;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

#[cfg(feature = "services")]
use quiver_ainq::SignedRevocationList;
use quiver_ainq::{
    DeliveryRequest, Deployment, DroneKeypair, Error, Label, PendingDelivery, SealedDelivery,
    SignedAuthority, Suite, VerifiedAuthority,
};
use quiver_message::{
    AttributeChallenge, AttributeHello, AttributeReply, AttributeRequest, COOKIE_LEN, Message, Nonce, Reason,
    Refusal,
};
use rand_core::CryptoRngCore;

pub use self::interface::{FetchCommand, FetchEvent, FetchTiming, FetcherConfig, Held};
use super::inner::{Answer, Question, challenge};
use quiver_machine::Outbox;
use quiver_machine::{Backoff, due};
use quiver_machine::{Input, Machine, Now, Offence, Output, Peer, Route};

/// The longest wait that a refusal can talk a drone into.
const LONGEST_WAIT: Duration = Duration::from_secs(240);

/// A drone that fetches its attribute keys.
#[derive(Debug)]
pub struct Fetcher<S: Suite> {
    deployment: Deployment<S>,
    keypair: DroneKeypair<S>,
    /// Authorities whose statement is at hand, and the mark of the grant that the key held is for.
    known: Vec<(VerifiedAuthority<S>, Option<u64>)>,
    /// Connected KGCs, the one to ask first.
    kgcs: Vec<Peer>,
    stage: Stage<S>,
    /// Authorities that have answered in this fetch.
    answered: Vec<[u8; 32]>,
    /// Authorities for which somebody refused in this fetch: nobody vouches for that.
    refused: Vec<[u8; 32]>,
    /// The number of the revocation list that is held, if newer ones are asked for.
    #[cfg(feature = "services")]
    revocations: Option<u64>,
    deadline: Option<Duration>,
    backoff: Backoff,
    out: Outbox<FetchEvent, Infallible>,
}

/// How far a fetch has come.
#[derive(Debug)]
enum Stage<S: Suite> {
    /// Nothing to do.
    Idle,
    /// To be begun, or begun again, when the deadline comes or a KGC is connected.
    Waiting,
    /// Asked for a challenge.
    Greeting { kgc: Peer, nonce: Nonce },
    /// Asking one authority after the other.
    Asking(Asking<S>),
}

/// Questions under one challenge.
#[derive(Debug)]
struct Asking<S: Suite> {
    kgc: Peer,
    nonce: Nonce,
    cookie: [u8; COOKIE_LEN],
    /// Still to be asked.
    rest: VecDeque<[u8; 32]>,
    /// Being asked.
    pending: PendingDelivery<S>,
}

impl<S: Suite> Fetcher<S> {
    /// A fetcher that begins as soon as a KGC is connected.
    ///
    /// # Errors
    /// If a statement that is said to be held does not verify.
    pub fn new(config: FetcherConfig<S>) -> Result<Self, Error> {
        let FetcherConfig { deployment, keypair, held, timing } = config;
        let mut known = Vec::with_capacity(held.len());
        for Held { statement, grant } in held {
            let statement = SignedAuthority::decode(&statement)?.verify(&deployment)?;
            known.push((statement, grant));
        }
        Ok(Self {
            deployment,
            keypair,
            known,
            kgcs: Vec::new(),
            stage: Stage::Waiting,
            answered: Vec::new(),
            refused: Vec::new(),
            #[cfg(feature = "services")]
            revocations: None,
            deadline: None,
            backoff: Backoff::new(timing.retry, timing.retry_max),
            out: Outbox::new(),
        })
    }

    /// Asks for the revocation list as well, if there is a newer one than that of this number, which is held; 0 for none. For a drone that
    /// joins groups without its name: it takes lists from nobody else.
    #[cfg(feature = "services")]
    #[must_use]
    pub fn asking_for_revocations(mut self, held: u64) -> Self {
        self.revocations = Some(held);
        self
    }

    /// Whether it has nothing to do.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    fn known(&self, authority: &[u8; 32]) -> Option<&(VerifiedAuthority<S>, Option<u64>)> {
        self.known.iter().find(|(known, _)| known.fingerprint() == authority)
    }

    fn greet(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Some(&kgc) = self.kgcs.first() else {
            (self.stage, self.deadline) = (Stage::Waiting, None);
            return;
        };
        let mut nonce = [0; 16];
        rng.fill_bytes(&mut nonce);
        self.stage = Stage::Greeting { kgc, nonce };
        self.deadline = Some(now.monotonic + self.backoff.next(rng));
        // Before the keys: the answer is there before anything is shown that depends on it.
        #[cfg(feature = "services")]
        if let Some(number) = self.revocations {
            let query = quiver_message::RevocationQuery { number, max_len: 0 };
            self.out.send(&self.deployment, kgc, &Message::<S>::RevocationQuery(query));
        }
        self.out.send(&self.deployment, kgc, &Message::AttributeHello(AttributeHello { nonce }));
    }

    /// A revocation list that was asked for: any KGC may have signed it, and its number says whether it is newer.
    #[cfg(feature = "services")]
    fn revocation_list(&mut self, from: Peer, list: Vec<u8>) {
        let Some(held) = self.revocations else { return };
        let verified =
            SignedRevocationList::<S>::decode(&list).and_then(|list| list.verify(&self.deployment));
        match verified {
            Err(error) => self.blame(from, error),
            Ok(verified) if verified.number > held => {
                self.revocations = Some(verified.number);
                self.out.event(FetchEvent::RevocationList { number: verified.number, list });
            }
            Ok(_) => {}
        }
    }

    fn challenged(&mut self, now: Now, from: Peer, message: AttributeChallenge, rng: &mut dyn CryptoRngCore) {
        match self.stage {
            Stage::Greeting { kgc, nonce } if kgc == from && nonce == message.nonce => {}
            _ => return,
        }
        let AttributeChallenge { nonce, cookie, authorities } = message;
        // Nobody vouches for the list: whose key is held is asked in any case, or leaving it out would hide a withdrawal.
        let held =
            self.known.iter().filter(|(_, grant)| grant.is_some()).map(|(known, _)| *known.fingerprint());
        let unlisted: Vec<_> = held.filter(|authority| !authorities.contains(authority)).collect();
        let through =
            |authority: &[u8; 32]| self.answered.contains(authority) || self.refused.contains(authority);
        let rest = authorities.into_iter().chain(unlisted).filter(|authority| !through(authority)).collect();
        self.ask(now, (from, nonce, cookie), rest, rng);
    }

    /// Asks the next authority; none left, the fetch is done.
    fn ask(
        &mut self,
        now: Now,
        (kgc, nonce, cookie): (Peer, Nonce, [u8; COOKIE_LEN]),
        mut rest: VecDeque<[u8; 32]>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let Some(authority) = rest.pop_front() else {
            (self.stage, self.deadline) = (Stage::Idle, None);
            let (answered, refused) = (self.answered.len(), self.refused.len());
            return self.out.event(FetchEvent::Done { answered, refused });
        };
        let known = self.known(&authority);
        let held = known.and_then(|(_, grant)| *grant);
        let question = Question { statement: known.is_none(), held };
        let asked = DeliveryRequest::create(
            &self.deployment,
            &self.keypair,
            Label::Attributes,
            authority,
            &challenge(&nonce, &cookie),
            &question.encode(),
            rng,
        );
        // Only a long question fails, and these have eleven bytes.
        let Ok((request, pending)) = asked else { return };
        self.stage = Stage::Asking(Asking { kgc, nonce, cookie, rest, pending });
        self.deadline = Some(now.monotonic + self.backoff.next(rng));
        let request = AttributeRequest { nonce, cookie, request: request.encode() };
        self.out.send(&self.deployment, kgc, &Message::AttributeRequest(request));
    }

    fn replied(&mut self, now: Now, from: Peer, reply: &AttributeReply, rng: &mut dyn CryptoRngCore) {
        let Stage::Asking(asking) = &self.stage else { return };
        if reply.request_digest != *asking.pending.digest() {
            return;
        }
        // What does not hold somebody on the way has made: the authority's own answer may still come.
        match self.open(&asking.pending, reply) {
            Err(error) => self.blame(from, error),
            Ok((statement, answer)) => {
                let (name, bytes) = (statement.name.clone(), statement.bytes());
                let grant = match &answer {
                    Answer::Nothing => self.known(statement.fingerprint()).and_then(|(_, grant)| *grant),
                    Answer::Withdrawn => None,
                    Answer::Held { grant } | Answer::Key { grant, .. } => Some(*grant),
                };
                self.known.retain(|(known, _)| known.fingerprint() != statement.fingerprint());
                self.known.push((statement, grant));
                self.out.event(FetchEvent::Answered { authority: name, statement: bytes, answer });
                self.backoff.reset();
                self.next(now, true, rng);
            }
        }
    }

    fn open(
        &self,
        pending: &PendingDelivery<S>,
        reply: &AttributeReply,
    ) -> Result<(VerifiedAuthority<S>, Answer), Error> {
        let known = self.known(pending.authority());
        let statement = match known {
            Some((statement, _)) => statement.clone(),
            None => SignedAuthority::decode(&reply.statement)?.verify(&self.deployment)?,
        };
        if !super::is_kind(&statement.kind) {
            return Err(Error::WrongAuthority);
        }
        let sealed = SealedDelivery::decode(&reply.sealed)?;
        let answer = Answer::decode(&pending.open(&self.keypair, &statement, &sealed)?)?;
        let held = known.and_then(|(_, grant)| *grant);
        match &answer {
            Answer::Held { grant } if held != Some(*grant) => Err(Error::Stale),
            _ => Ok((statement, answer)),
        }
    }

    /// The authority being asked is through with.
    fn next(&mut self, now: Now, answered: bool, rng: &mut dyn CryptoRngCore) {
        let Stage::Asking(asking) = core::mem::replace(&mut self.stage, Stage::Waiting) else { return };
        let through = if answered { &mut self.answered } else { &mut self.refused };
        // No more than are listed and held: nobody is asked twice.
        through.push(*asking.pending.authority());
        self.ask(now, (asking.kgc, asking.nonce, asking.cookie), asking.rest, rng);
    }

    /// A refusal is not authenticated: it ends this question or slows it down, and changes nothing that is held.
    fn refused(&mut self, now: Now, from: Peer, refusal: &Refusal, rng: &mut dyn CryptoRngCore) {
        let (kgc, about_us) = match &self.stage {
            Stage::Greeting { kgc, nonce } => (*kgc, refusal.reference == *nonce),
            Stage::Asking(Asking { kgc, nonce, pending, .. }) => {
                (*kgc, refusal.reference == *nonce || refusal.reference == *pending.digest())
            }
            _ => return,
        };
        if kgc != from || !about_us {
            return;
        }
        self.out.event(FetchEvent::Refused(refusal.reason));
        let asking = matches!(self.stage, Stage::Asking(_));
        if asking && !matches!(refusal.reason, Reason::BadCookie | Reason::Busy) {
            return self.next(now, false, rng);
        }
        let wait = self.backoff.next(rng).max(refusal.retry_after.min(LONGEST_WAIT));
        (self.stage, self.deadline) = (Stage::Waiting, Some(now.monotonic + wait));
    }

    fn received(&mut self, now: Now, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        match Message::decode(&self.deployment, bytes) {
            Err(error) => self.blame(from, error),
            Ok(Message::AttributeChallenge(message)) => self.challenged(now, from, message, rng),
            Ok(Message::AttributeReply(reply)) => self.replied(now, from, &reply, rng),
            Ok(Message::Refusal(refusal)) => self.refused(now, from, &refusal, rng),
            #[cfg(feature = "services")]
            Ok(Message::RevocationList(message)) => self.revocation_list(from, message.list),
            // A KGC tells whoever it knows of a new revocation list; this is not the place for it.
            #[cfg(not(feature = "services"))]
            Ok(Message::RevocationList(_)) => {}
            Ok(_) => self.blame(from, Offence::OutOfPlace("message to a drone that fetches its keys")),
        }
    }

    fn blame(&mut self, peer: Peer, offence: impl Into<Offence>) {
        self.out.event(FetchEvent::Blamed { peer, offence: offence.into() });
    }

    fn disconnected(&mut self, now: Now, peer: Peer, rng: &mut dyn CryptoRngCore) {
        self.kgcs.retain(|kgc| *kgc != peer);
        let lost = match &self.stage {
            Stage::Greeting { kgc, .. } | Stage::Asking(Asking { kgc, .. }) => *kgc == peer,
            _ => false,
        };
        if lost {
            self.greet(now, rng);
        }
    }

    fn tick(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if !due(self.deadline, now.monotonic) {
            return;
        }
        // It did not answer: the next one, if there is one.
        if !matches!(self.stage, Stage::Waiting) && self.kgcs.len() > 1 {
            self.kgcs.rotate_left(1);
        }
        self.greet(now, rng);
    }
}

impl<S: Suite> Machine for Fetcher<S> {
    type Command = FetchCommand;
    type Event = FetchEvent;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, FetchCommand>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Timeout | Input::Resumed => {}
            Input::Connected { peer, route: Route::Kgc } => {
                self.kgcs.push(peer);
                if matches!(self.stage, Stage::Waiting) && self.deadline.is_none() {
                    self.greet(now, rng);
                }
            }
            Input::Connected { .. } => {}
            Input::Disconnected { peer } => self.disconnected(now, peer, rng),
            Input::Received { from, bytes, .. } => self.received(now, from, bytes, rng),
            Input::Command(FetchCommand::Fetch) => {
                if self.is_idle() {
                    self.answered.clear();
                    self.refused.clear();
                    self.greet(now, rng);
                }
            }
        }
        self.tick(now, rng);
    }

    fn poll_output(&mut self) -> Output<FetchEvent, Infallible> {
        self.out.poll(self.deadline)
    }
}
