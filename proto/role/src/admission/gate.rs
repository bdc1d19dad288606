//! The leader's side: what it demands of whoever wants in, and who has shown it.
//!
//! Order matters: cookie before anything is decoded; lengths before any curve arithmetic; keys verified many at a time; nothing garbled for a
//! key that the authority did not sign. A connection has one run. Whatever goes wrong from the proof on, the other side is told the same: refused.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use quiver_abke::exchange::{Awaiting, Garbling, Hello, Policy, Seeded, Session, Terms, VerifiedHello};
use quiver_abke::{AuthorityKey, Error as AbkeError, Verifier};
use quiver_ainq::{Deployment, DroneKeypair, Label, Name, Suite, UnixTime, VerifiedAuthority};
use quiver_crypto::{Digest, Secret};
use quiver_message::{
    AdmissionChallenge, AdmissionHello, AdmissionProof, AdmissionStep, COOKIE_LEN, Message, Nonce, Reason,
    Refusal,
};
use rand_core::CryptoRngCore;

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
/// Keys that are verified at once at most.
const BATCH: usize = 32;

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
    verifier: Option<Verifier>,
    waiting: Vec<Waiting>,
    /// When those who wait are verified.
    batch_at: Option<Duration>,
    runs: BTreeMap<Peer, Run>,
    sessions: BTreeMap<Peer, Session>,
    /// Connections that have had their run, or are having it.
    spent: BTreeSet<Peer>,
    out: Outbox<GateEvent, Infallible>,
}

/// A key that waits to be verified.
#[derive(Debug)]
struct Waiting {
    peer: Peer,
    challenge: Challenge,
    hello: Hello,
    until: Duration,
}

/// What binds a run to its connection.
#[derive(Clone, Copy, Debug)]
struct Challenge {
    nonce: Nonce,
    cookie: [u8; COOKIE_LEN],
}

impl Challenge {
    fn channel(&self) -> Vec<u8> {
        [self.nonce.as_slice(), &self.cookie].concat()
    }
}

#[derive(Debug)]
struct Run {
    nonce: Nonce,
    stage: Stage,
    until: Duration,
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
            waiting: Vec::new(),
            batch_at: None,
            runs: BTreeMap::new(),
            sessions: BTreeMap::new(),
            spent: BTreeSet::new(),
            out: Outbox::new(),
        })
    }

    /// The session with whoever was admitted on this connection, once.
    pub fn take_session(&mut self, peer: Peer) -> Option<Session> {
        self.sessions.remove(&peer)
    }

    /// Takes a message that is already decoded. Returns false if it is none for a gate.
    pub fn hear(&mut self, now: Now, from: Peer, message: &Message<S>, rng: &mut dyn CryptoRngCore) -> bool {
        match message {
            Message::AdmissionHello(hello) => self.hello(now, from, hello),
            Message::AdmissionProof(proof) => self.proof(now, from, proof, rng),
            Message::AdmissionStep(step) => self.step(from, step),
            _ => return false,
        }
        true
    }

    /// The slot keys in force, if there are any.
    fn verifier(&self, now: Now) -> Option<&Verifier> {
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

    fn proof(&mut self, now: Now, from: Peer, proof: &AdmissionProof, rng: &mut dyn CryptoRngCore) {
        if !self.cookies.recognises(now.monotonic, from, &[COOKIE, &proof.nonce], &proof.cookie) {
            self.refuse(from, Reason::BadCookie, &proof.nonce);
            return self.out.event(GateEvent::Blamed { peer: from, offence: Offence::Cookie });
        }
        if self.spent.contains(&from) {
            return self.deny(
                from,
                &proof.nonce,
                AdmissionError::OutOfTurn("a second run on one connection"),
            );
        }
        if self.verifier(now).is_none() {
            return self.refuse(from, Reason::NotReady, &proof.nonce);
        }
        if self.waiting.len() + self.runs.len() >= MAX_RUNS {
            return self.refuse(from, Reason::Busy, &proof.nonce);
        }
        self.spent.insert(from);
        match Hello::decode(&proof.step, self.policy.attributes()) {
            Err(error) => self.deny(from, &proof.nonce, error.into()),
            Ok(hello) => {
                let challenge = Challenge { nonce: proof.nonce, cookie: proof.cookie };
                let until = now.monotonic + self.config.timing.patience;
                self.waiting.push(Waiting { peer: from, challenge, hello, until });
                self.batch_at.get_or_insert(now.monotonic + self.config.timing.batching);
                if self.waiting.len() >= BATCH {
                    self.verify(now, rng);
                }
            }
        }
    }

    /// Verifies all who wait, in one product if all are good.
    fn verify(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.batch_at = None;
        let waiting = core::mem::take(&mut self.waiting);
        let Some(verifier) = self.verifier(now).cloned() else {
            // The period ended while they waited.
            return waiting
                .iter()
                .for_each(|one| self.refuse(one.peer, Reason::NotReady, &one.challenge.nonce));
        };
        let (places, hellos): (Vec<_>, Vec<_>) =
            waiting.into_iter().map(|one| ((one.peer, one.challenge, one.until), one.hello)).unzip();
        let verdicts = Hello::verify_batch(hellos, &verifier, rng);
        for ((peer, challenge, until), verdict) in places.into_iter().zip(verdicts) {
            let offered = verdict.and_then(|hello| self.offer(hello, &challenge, rng));
            match offered {
                Err(error) => self.deny(peer, &challenge.nonce, error.into()),
                Ok((garbling, offer)) => {
                    self.send(peer, challenge.nonce, offer);
                    self.garble(peer, challenge.nonce, garbling, until);
                }
            }
        }
    }

    fn offer(
        &self,
        hello: VerifiedHello,
        challenge: &Challenge,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<(Garbling, Vec<u8>), AbkeError> {
        let Self { config, policy, .. } = self;
        let server = config.keypair.public().encode();
        let terms = Terms { policy: config.policy.id(), server: &server, channel: &challenge.channel() };
        let mut coins = [0; 32];
        rng.fill_bytes(&mut coins);
        let mut signing = <rand_chacha::ChaCha20Rng as rand_core::SeedableRng>::from_seed(coins);
        let sign = |context: &Digest| {
            config.keypair.sign(&config.deployment, Label::Abke, context, &mut signing).encode()
        };
        hello.offer(&terms, Arc::clone(policy), rng, sign)
    }

    /// Sends the next tables, and waits for the drone to ask for more or, if that was all, to commit itself.
    fn garble(&mut self, peer: Peer, nonce: Nonce, mut garbling: Garbling, until: Duration) {
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
        self.go_on(peer, nonce, Stage::Garbling(Box::new(garbling)), until);
    }

    fn go_on(&mut self, peer: Peer, nonce: Nonce, stage: Stage, until: Duration) {
        self.runs.insert(peer, Run { nonce, stage, until });
    }

    fn step(&mut self, from: Peer, message: &AdmissionStep) {
        let Some(Run { nonce, stage, until }) = self.runs.remove(&from) else {
            let offence = Offence::OutOfPlace("AdmissionStep");
            return self.out.event(GateEvent::Blamed { peer: from, offence });
        };
        if nonce != message.nonce {
            return self.deny(from, &nonce, AdmissionError::OutOfTurn("a step of another run"));
        }
        match (stage, message.step.as_slice()) {
            (Stage::Garbling(garbling), []) => self.garble(from, nonce, *garbling, until),
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
                    self.sessions.insert(from, session);
                    self.out.event(GateEvent::Admitted { peer: from, pseudonym });
                }
            },
        }
    }

    fn commitment(&mut self, peer: Peer, nonce: Nonce, awaiting: Awaiting, step: &[u8], until: Duration) {
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

    fn disconnected(&mut self, peer: Peer) {
        self.waiting.retain(|one| one.peer != peer);
        self.runs.remove(&peer);
        self.sessions.remove(&peer);
        self.spent.remove(&peer);
    }

    fn tick(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if due(self.batch_at, now.monotonic) {
            self.verify(now, rng);
        }
        let silent = |(peer, run): (&Peer, &Run)| (run.until <= now.monotonic).then_some((*peer, run.nonce));
        for (peer, nonce) in self.runs.iter().filter_map(silent).collect::<Vec<_>>() {
            self.runs.remove(&peer);
            self.deny(peer, &nonce, AdmissionError::Silent);
        }
    }

    fn deadline(&self) -> Option<Duration> {
        self.runs.values().map(|run| run.until).chain(self.batch_at).min()
    }
}

impl<S: Suite> Machine for Gate<S> {
    type Command = GateCommand;
    type Event = GateEvent;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, GateCommand>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Timeout | Input::Connected { .. } => {}
            Input::Disconnected { peer } => self.disconnected(peer),
            Input::Received { from, bytes } => match Message::decode(&self.config.deployment, bytes) {
                Err(error) => self.out.event(GateEvent::Blamed { peer: from, offence: error.into() }),
                Ok(message) => {
                    if !self.hear(now, from, &message, rng) {
                        let offence = Offence::OutOfPlace("message to a gate");
                        self.out.event(GateEvent::Blamed { peer: from, offence });
                    }
                }
            },
            Input::Command(GateCommand::SlotKeys(key)) => {
                // Keys for other fields verify nothing here.
                if key.attributes() == self.policy.attributes() {
                    self.verifier = Some(Verifier::new(key));
                }
            }
        }
        self.tick(now, rng);
    }

    fn poll_output(&mut self) -> Output<GateEvent, Infallible> {
        let deadline = self.deadline();
        self.out.poll(deadline)
    }
}
