//! The leader's side: what it demands of whoever wants in, and who has shown it.
//!
//! Order matters: cookie before anything is decoded; lengths before any curve arithmetic; keys verified many at a time; nothing garbled for a
//! key that the authority did not sign. A connection has one run. Whatever goes wrong from the proof on, the other side is told the same: refused.
//!
//! Verifying a few keys or making an offer is a piece of work; with each input a gate does one at most, and asks to be woken at once for the
//! next: whoever it is a part of goes on with other things in between.

mod work;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use quiver_abke::exchange::{Awaiting, Garbling, Hello, Policy, Seeded, Session, VerifiedHello};
use quiver_abke::{AuthorityKey, Verifier};
use quiver_ainq::{Deployment, DroneKeypair, Name, Suite, UnixTime, VerifiedAuthority};
use quiver_crypto::Secret;
use quiver_message::{
    AdmissionChallenge, AdmissionHello, AdmissionProof, AdmissionStep, Message, Nonce, Reason, Refusal,
};
use rand_core::CryptoRngCore;

use self::work::{Done, Place, Waiting, Work};
use super::policy::{PolicyError, VerifiedPolicy};
use super::{AdmissionError, WINDOW};
use crate::attributes::certifying::Terms as Certified;
use crate::backoff::due;
use crate::cookie::{CookieJar, LIFETIME};
use crate::outbox::Outbox;
use crate::{Input, Machine, Now, Offence, Output, Peer};

/// What tells these cookies from those of other machines that may have the same key.
const COOKIE: &[u8] = b"admission";
/// Runs at a time, those included that wait to be verified.
pub const MAX_RUNS: usize = 256;
/// Keys that are verified at once at most: a piece of work holds others up.
const BATCH: usize = 4;

/// What a gate is set up with.
#[derive(Debug)]
pub struct GateConfig<S: Suite> {
    /// The deployment.
    pub deployment: Deployment<S>,
    /// The group that is led.
    pub group: Name,
    /// The leader's own key.
    pub keypair: DroneKeypair<S>,
    /// What is demanded.
    pub policy: VerifiedPolicy<S>,
    /// Whose fields it is about.
    pub authority: VerifiedAuthority<S>,
    /// When things happen.
    pub timing: GateTiming,
}

/// When a gate does things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateTiming {
    /// How long the first key waits for company before it is verified.
    pub batching: Duration,
    /// How long a run may take.
    pub patience: Duration,
}

impl Default for GateTiming {
    fn default() -> Self {
        Self { batching: Duration::from_millis(50), patience: Duration::from_secs(60) }
    }
}

/// What the application asks of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateCommand {
    /// The authority's slot keys of a period, as they were delivered.
    SlotKeys(AuthorityKey),
}

/// What a gate reports. For the leader's own log: nobody else learns why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateEvent {
    /// Somebody has shown that the policy is satisfied; the session is there to be taken.
    Admitted {
        /// On which connection.
        peer: Peer,
        /// A name of this run alone.
        pseudonym: [u8; 16],
        /// When the period ends of what was shown.
        until: UnixTime,
    },
    /// Somebody has not.
    Denied {
        /// On which connection.
        peer: Peer,
        /// Why.
        why: AdmissionError,
    },
    /// A peer did something wrong.
    Blamed {
        /// Who.
        peer: Peer,
        /// What.
        offence: Offence,
    },
}

/// The gate as a machine.
#[derive(Debug)]
pub struct Gate<S: Suite> {
    config: GateConfig<S>,
    terms: Certified,
    policy: Arc<Policy>,
    cookies: CookieJar,
    verifier: Option<Arc<Verifier>>,
    waiting: VecDeque<Waiting>,
    /// When those who wait are verified.
    batch_at: Option<Duration>,
    /// Verified, and to be made an offer.
    welcome: VecDeque<(Place, Box<VerifiedHello>)>,
    runs: BTreeMap<Peer, Run>,
    sessions: BTreeMap<Peer, (Nonce, Session)>,
    /// Connections that have had their run, or are having it.
    spent: BTreeSet<Peer>,
    out: Outbox<GateEvent, Infallible>,
}

/// How long a run may take, on the monotonic clock, and when the period ends of what is shown.
type Until = (Duration, UnixTime);

#[derive(Debug)]
struct Run {
    nonce: Nonce,
    stage: Stage,
    until: Duration,
    /// When the period ends of what is shown.
    ends: UnixTime,
}

#[derive(Debug)]
enum Stage {
    Garbling(Box<Garbling>),
    Awaiting(Awaiting),
    Seeded(Seeded),
}

impl<S: Suite> Gate<S> {
    /// A gate that demands this policy. It lets nobody in before it has the slot keys of the period. The key of its cookies is random at
    /// every start.
    ///
    /// # Errors
    /// [`PolicyError`] if the policy is not for this group, not about these fields, over, or too large.
    pub fn new(config: GateConfig<S>, cookie_key: Secret<32>, now: UnixTime) -> Result<Self, PolicyError> {
        let policy = config.policy.exchangeable(&config.group, &config.authority, now)?;
        Ok(Self {
            terms: Certified::of(&config.authority)?,
            cookies: CookieJar::new(cookie_key, LIFETIME),
            config,
            policy,
            verifier: None,
            waiting: VecDeque::new(),
            batch_at: None,
            welcome: VecDeque::new(),
            runs: BTreeMap::new(),
            sessions: BTreeMap::new(),
            spent: BTreeSet::new(),
            out: Outbox::new(),
        })
    }

    /// The session with whoever was admitted on this connection, once.
    pub fn take_session(&mut self, peer: Peer) -> Option<Session> {
        self.sessions.remove(&peer).map(|(_, session)| session)
    }

    /// The same with the nonce of its run.
    pub(crate) fn take_run(&mut self, peer: Peer) -> Option<(Nonce, Session)> {
        self.sessions.remove(&peer)
    }

    /// Takes a message that is already decoded. Returns false if it is none for a gate.
    pub fn hear(&mut self, now: Now, from: Peer, message: &Message<S>) -> bool {
        match message {
            Message::AdmissionHello(hello) => self.hello(now, from, hello),
            Message::AdmissionProof(proof) => self.proof(now, from, proof),
            Message::AdmissionStep(step) => self.step(from, step),
            _ => return false,
        }
        true
    }

    /// The slot keys in force, if there are any.
    fn verifier(&self, now: Now) -> Option<&Arc<Verifier>> {
        let period = self.terms.period_at(now.unix);
        let over = now.unix >= self.config.policy.not_after;
        self.verifier.as_ref().filter(|verifier| verifier.authority().period() == period && !over)
    }

    fn hello(&mut self, now: Now, from: Peer, hello: &AdmissionHello) {
        if hello.group != self.config.group {
            return self.refuse(from, Reason::WrongGroup, &hello.nonce);
        }
        if self.verifier(now).is_none() {
            return self.refuse(from, Reason::NotReady, &hello.nonce);
        }
        let answer = AdmissionChallenge {
            nonce: hello.nonce,
            cookie: self.cookies.bake(now.monotonic, from, &[COOKIE, &hello.nonce]),
            leader: self.config.keypair.public().clone(),
            policy: self.config.policy.bytes(),
        };
        self.out.send(&self.config.deployment, from, &Message::AdmissionChallenge(answer));
    }

    fn proof(&mut self, now: Now, from: Peer, proof: &AdmissionProof) {
        if !self.cookies.recognises(now.monotonic, from, &[COOKIE, &proof.nonce], &proof.cookie) {
            self.refuse(from, Reason::BadCookie, &proof.nonce);
            return self.out.event(GateEvent::Blamed { peer: from, offence: Offence::Cookie });
        }
        if self.spent.contains(&from) {
            let again = AdmissionError::OutOfTurn("a second run on one connection");
            return self.deny(from, &proof.nonce, again);
        }
        let Some(period) = self.verifier(now).map(|verifier| verifier.authority().period()) else {
            return self.refuse(from, Reason::NotReady, &proof.nonce);
        };
        if self.waiting.len() + self.welcome.len() + self.runs.len() >= MAX_RUNS {
            return self.refuse(from, Reason::Busy, &proof.nonce);
        }
        self.spent.insert(from);
        if proof.step.len() != Hello::encoded_len(self.policy.attributes()) {
            return self.deny(from, &proof.nonce, AdmissionError::OutOfTurn("a hello of another length"));
        }
        let until = now.monotonic + self.config.timing.patience;
        let ends = self.terms.end_of(period);
        let place = Place { peer: from, nonce: proof.nonce, cookie: proof.cookie, until, ends };
        self.waiting.push_back(Waiting { place, hello: proof.step.clone() });
        self.batch_at.get_or_insert(now.monotonic + self.config.timing.batching);
    }

    /// The next piece of work, if there is any: offers first, for those who wait for one wait longest.
    fn next_work(&mut self, now: Now) -> Option<Work> {
        if let Some((place, hello)) = self.welcome.pop_front() {
            return Some(Work::Offer(place, hello));
        }
        if !due(self.batch_at, now.monotonic) && self.waiting.len() < BATCH {
            return None;
        }
        let next: Vec<Waiting> = self.waiting.drain(..BATCH.min(self.waiting.len())).collect();
        if self.waiting.is_empty() {
            self.batch_at = None;
        }
        match self.verifier(now).cloned() {
            Some(verifier) if !next.is_empty() => Some(Work::Verify(verifier, next)),
            _ => {
                // The period ended while they waited.
                next.iter().for_each(|one| self.refuse(one.place.peer, Reason::NotReady, &one.place.nonce));
                None
            }
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Verified(verdicts) => {
                for (place, verdict) in verdicts {
                    match verdict {
                        Err(error) => self.deny(place.peer, &place.nonce, error.into()),
                        Ok(hello) => self.welcome.push_back((place, Box::new(hello))),
                    }
                }
            }
            Done::Offered(place, Err(error)) => self.deny(place.peer, &place.nonce, error.into()),
            Done::Offered(place, Ok((garbling, offer))) => {
                self.send(place.peer, place.nonce, offer);
                self.garble(place.peer, place.nonce, garbling, (place.until, place.ends));
            }
        }
    }

    /// Sends the next tables, and waits for the drone to ask for more or, if that was all, to commit itself.
    fn garble(&mut self, peer: Peer, nonce: Nonce, mut garbling: Box<Garbling>, until: Until) {
        for _ in 0..WINDOW {
            match garbling.next_tables() {
                Err(error) => return self.deny(peer, &nonce, error.into()),
                Ok(Some(tables)) => self.send(peer, nonce, tables),
                Ok(None) => {
                    return match garbling.finish() {
                        Err(error) => self.deny(peer, &nonce, error.into()),
                        Ok(awaiting) => self.go_on(peer, nonce, Stage::Awaiting(awaiting), until),
                    };
                }
            }
        }
        self.go_on(peer, nonce, Stage::Garbling(garbling), until);
    }

    fn go_on(&mut self, peer: Peer, nonce: Nonce, stage: Stage, (until, ends): Until) {
        self.runs.insert(peer, Run { nonce, stage, until, ends });
    }

    fn step(&mut self, from: Peer, message: &AdmissionStep) {
        let Some(Run { nonce, stage, until, ends }) = self.runs.remove(&from) else {
            let offence = Offence::OutOfPlace("AdmissionStep");
            return self.out.event(GateEvent::Blamed { peer: from, offence });
        };
        if nonce != message.nonce {
            return self.deny(from, &nonce, AdmissionError::OutOfTurn("a step of another run"));
        }
        let until = (until, ends);
        match (stage, message.step.as_slice()) {
            (Stage::Garbling(garbling), []) => self.garble(from, nonce, garbling, until),
            (Stage::Garbling(garbling), step) => match garbling.finish() {
                // All tables were taken, and nobody asked whether there are more.
                Ok(awaiting) => self.commitment(from, nonce, awaiting, step, until),
                Err(error) => self.deny(from, &nonce, error.into()),
            },
            (Stage::Awaiting(awaiting), step) => self.commitment(from, nonce, awaiting, step, until),
            (Stage::Seeded(seeded), step) => match seeded.opening(step) {
                Err(error) => self.deny(from, &nonce, error.into()),
                Ok((session, confirmation)) => {
                    self.send(from, nonce, confirmation);
                    let pseudonym = session.pseudonym();
                    self.sessions.insert(from, (nonce, session));
                    self.out.event(GateEvent::Admitted { peer: from, pseudonym, until: ends });
                }
            },
        }
    }

    fn commitment(&mut self, peer: Peer, nonce: Nonce, awaiting: Awaiting, step: &[u8], until: Until) {
        match awaiting.commitment(step) {
            Err(error) => self.deny(peer, &nonce, error.into()),
            Ok((seeded, seeds)) => {
                self.send(peer, nonce, seeds);
                self.go_on(peer, nonce, Stage::Seeded(seeded), until);
            }
        }
    }

    fn send(&mut self, peer: Peer, nonce: Nonce, step: Vec<u8>) {
        self.out.send(&self.config.deployment, peer, &Message::AdmissionStep(AdmissionStep { nonce, step }));
    }

    /// The one answer to whatever went wrong in a run.
    fn deny(&mut self, peer: Peer, nonce: &Nonce, why: AdmissionError) {
        self.tell(peer, Reason::NotAuthorised, nonce);
        self.out.event(GateEvent::Denied { peer, why });
    }

    /// An answer before there is a run.
    fn refuse(&mut self, peer: Peer, reason: Reason, nonce: &Nonce) {
        self.tell(peer, reason, nonce);
        self.out.event(GateEvent::Denied { peer, why: AdmissionError::Refused(reason) });
    }

    fn tell(&mut self, peer: Peer, reason: Reason, nonce: &Nonce) {
        let refusal = Refusal { reason, reference: nonce.to_vec(), retry_after: Duration::ZERO };
        self.out.send(&self.config.deployment, peer, &Message::Refusal(refusal));
    }

    pub(crate) fn disconnected(&mut self, peer: Peer) {
        self.waiting.retain(|one| one.place.peer != peer);
        self.welcome.retain(|(place, _)| place.peer != peer);
        self.runs.remove(&peer);
        self.sessions.remove(&peer);
        self.spent.remove(&peer);
    }

    /// The slot keys of a period; those for other fields verify nothing here.
    pub(crate) fn take_slot_keys(&mut self, key: &AuthorityKey) {
        if key.attributes() == self.policy.attributes() {
            self.verifier = Some(Arc::new(Verifier::new(key.clone())));
        }
    }

    /// Does what is due, and one piece of work at most.
    pub(crate) fn tick(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if let Some(work) = self.next_work(now) {
            let done = work.run(&self.config, &self.policy, &Secret::random(rng));
            self.done(done);
        }
        let silent = |(peer, run): (&Peer, &Run)| (run.until <= now.monotonic).then_some((*peer, run.nonce));
        for (peer, nonce) in self.runs.iter().filter_map(silent).collect::<Vec<_>>() {
            self.runs.remove(&peer);
            self.deny(peer, &nonce, AdmissionError::Silent);
        }
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        let work = !self.welcome.is_empty() || self.waiting.len() >= BATCH;
        let at_once = work.then_some(Duration::ZERO);
        self.runs.values().map(|run| run.until).chain(self.batch_at).chain(at_once).min()
    }
}

impl<S: Suite> Machine for Gate<S> {
    type Command = GateCommand;
    type Event = GateEvent;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, GateCommand>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Timeout | Input::Connected { .. } | Input::Resumed => {}
            Input::Disconnected { peer } => self.disconnected(peer),
            Input::Received { from, bytes, .. } => match Message::decode(&self.config.deployment, bytes) {
                Err(error) => self.out.event(GateEvent::Blamed { peer: from, offence: error.into() }),
                Ok(message) => {
                    if !self.hear(now, from, &message) {
                        let offence = Offence::OutOfPlace("message to a gate");
                        self.out.event(GateEvent::Blamed { peer: from, offence });
                    }
                }
            },
            Input::Command(GateCommand::SlotKeys(key)) => self.take_slot_keys(&key),
        }
        self.tick(now, rng);
    }

    fn poll_output(&mut self) -> Output<GateEvent, Infallible> {
        let deadline = self.deadline();
        self.out.poll(deadline)
    }
}
