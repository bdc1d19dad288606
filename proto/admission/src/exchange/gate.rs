//! The leader's side of anonymous admission: demands a policy, and runs the exchange with each applicant.
//!
//! Order matters: cookie before anything is decoded; lengths before any curve arithmetic; keys verified many
//! at a time; nothing garbled for a key that the authority did not sign. A connection has one run. All
//! failures from the proof on get the same answer: refused.
//!
//! Verifying a few keys, making an offer, garbling four pieces of a circuit: each is a piece of work. A gate
//! whose driver has threads to spare ([`GateTiming::workers`]) lets it do them, as
//! [jobs](quiver_machine::Job). Without, it does one at most with each timeout, none with any other input,
//! and asks to be woken at once for the next, so that the leader handles other inputs in between.

mod work;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use quiver_abke::exchange::{Awaiting, Garbling, Hello, PolicyCircuit, Seeded, Session};
use quiver_abke::{AuthorityKey, Verifier};
use quiver_ainq::{
    Deployment, DroneKeypair, KemKey, KemTerm, Label, Name, Signature, Suite, UnixTime, VerifiedAuthority,
};
use quiver_crypto::{Secret, prf};
use quiver_kem::{KemSet, KemSetting};
use quiver_message::{KemOffer, Message, Nonce, Refusal, RefusalReason};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_core::CryptoRngCore;

use self::work::{Garbled, GarblingRun, PendingKeyCheck, Proven, RunId, Work, WorkResult};
use super::AdmissionError;
use crate::certifying::CertificationTerms;
use crate::message::{AdmissionChallenge, AdmissionHello, AdmissionMessage, AdmissionProof, AdmissionStep};
use crate::policy::{AdmissionPolicyError, VerifiedPolicy};
use quiver_machine::Outbox;
use quiver_machine::due;
use quiver_machine::{COOKIE_LIFETIME, CookieJar};
use quiver_machine::{FinishedJob, Input, Job, Machine, Now, Offence, Output, Peer};

/// Distinguishes these cookies from those of other machines that may have the same key.
const COOKIE: &[u8] = b"admission";
/// Runs at a time, those included that wait to be verified.
pub const MAX_RUNS: usize = 256;
/// Keys that are verified at once at most: a piece of work holds others up.
const BATCH: usize = 4;
/// The same for gates whose driver has worker threads.
const WORKERS_BATCH: usize = 16;

/// Configuration of a gate.
#[derive(Debug)]
pub struct GateConfig<S: Suite> {
    /// The deployment.
    pub deployment: Deployment<S>,
    /// The group that is led.
    pub group: Name,
    /// The leader's own key.
    pub keypair: DroneKeypair<S>,
    /// The policy demanded.
    pub policy: VerifiedPolicy<S>,
    /// The authority that certifies the fields of the policy.
    pub authority: VerifiedAuthority<S>,
    /// Times and rates.
    pub timing: GateTiming,
    /// Parameter set and count of the leader's term, if it has a second factor. A gate is of one term.
    pub kem: Option<KemTerm>,
}

/// Times of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateTiming {
    /// Maximum time for which the first key waits for others before the batch is verified.
    pub batching: Duration,
    /// Maximum duration of one run.
    pub patience: Duration,
    /// Pieces of work that the driver does at a time ([`Machine::take_job`]); 0 if the gate does them itself,
    /// one with each timeout.
    pub workers: usize,
}

impl Default for GateTiming {
    fn default() -> Self {
        Self { batching: Duration::from_millis(50), patience: Duration::from_secs(60), workers: 0 }
    }
}

/// Command of the application to a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateCommand {
    /// The authority's slot keys of a period, as they were delivered.
    SlotKeys(AuthorityKey),
}

/// Event of a gate, for the leader's own log: no peer learns the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateEvent {
    /// A drone has shown that it satisfies the policy; its session can be taken.
    Admitted {
        /// Connection of the drone.
        peer: Peer,
        /// A name of this run alone.
        pseudonym: [u8; 16],
        /// End of the period of the credential shown.
        until: UnixTime,
    },
    /// A drone has not shown that it satisfies the policy.
    Denied {
        /// Connection of the drone.
        peer: Peer,
        /// Reason.
        why: AdmissionError,
    },
    /// The deployment of a drone says another parameter set of ML-KEM, or none. Nobody enters so.
    KemDiffers {
        /// Connection of the drone.
        peer: Peer,
        /// Setting of the leader.
        own: KemSetting,
        /// Setting of the drone.
        other: KemSetting,
    },
    /// A peer did something wrong.
    Blamed {
        /// The peer.
        peer: Peer,
        /// The offence.
        offence: Offence,
    },
}

/// The gate as a machine.
#[derive(Debug)]
pub struct Gate<S: Suite> {
    config: Arc<GateConfig<S>>,
    /// Distinguishes its jobs from those of earlier gates.
    generation: u64,
    terms: CertificationTerms,
    policy: Arc<PolicyCircuit>,
    /// Signature of the group and the policy that is demanded.
    signature: Signature<S>,
    cookies: CookieJar,
    /// Slot keys of the authority; `None` until they were delivered.
    verifier: Option<Arc<Verifier>>,
    /// Keys of applicants that wait to be verified together.
    pending_key_checks: VecDeque<PendingKeyCheck>,
    /// Time at which they are verified, however few they are.
    key_check_at: Option<Duration>,
    /// Applicants whose keys are verified, and who wait for an offer.
    pending_offers: VecDeque<Proven>,
    /// Runs whose drones asked for the next tables.
    pending_tables: VecDeque<GarblingRun<S>>,
    /// Jobs that the driver has not taken yet.
    jobs: VecDeque<Job>,
    /// Number of the next job, by which its result is told from those of others.
    next_job_number: u64,
    /// Runs whose work is done by the driver's threads, by the number of the job.
    running_jobs: BTreeMap<u64, Vec<RunId>>,
    /// Pieces of work done here.
    pieces_done: u64,
    /// Runs that wait for a step of their drone.
    runs: BTreeMap<Peer, GateRun<S>>,
    /// Results of runs that nobody has taken yet.
    sessions: BTreeMap<Peer, Admitted<S>>,
    /// Connections that have had their run, or are having it, because a second run would let a drone guess again.
    used_connections: BTreeSet<Peer>,
    out: Outbox<GateEvent, Infallible>,
}

#[derive(Debug)]
struct GateRun<S: Suite> {
    run_id: RunId,
    stage: GateStage,
    /// κ, if the term has a second factor.
    kem: Option<KemKey<S>>,
}

/// Result of a run with a drone that satisfies the policy.
#[derive(Debug)]
pub struct Admitted<S: Suite> {
    /// The nonce of the run.
    pub nonce: Nonce,
    /// Key and name that both have.
    pub session: Session,
    /// κ, if the term has a second factor.
    pub kem: Option<KemKey<S>>,
}

/// Result of a job.
struct Returned<S: Suite> {
    generation: u64,
    number: u64,
    done: WorkResult<S>,
}

#[derive(Debug)]
enum GateStage {
    Garbling(Box<Garbling>),
    Awaiting(Awaiting),
    Seeded(Seeded),
}

impl<S: Suite> Gate<S> {
    /// A gate that demands this policy. It admits no drone before it has the slot keys of the period. The key
    /// of its cookies is random at every start.
    ///
    /// # Errors
    /// [`AdmissionPolicyError`] if the policy is not for this group, not about these fields, over, or too large.
    pub fn new(
        config: GateConfig<S>,
        cookie_key: Secret<32>,
        now: UnixTime,
    ) -> Result<Self, AdmissionPolicyError> {
        let policy = config.policy.exchangeable(&config.group, &config.authority, now)?;
        Self::compiled(config, policy, cookie_key, 0)
    }

    /// The same with a policy that was compiled before: it takes long.
    pub fn compiled(
        config: GateConfig<S>,
        policy: Arc<PolicyCircuit>,
        cookie_key: Secret<32>,
        generation: u64,
    ) -> Result<Self, AdmissionPolicyError> {
        // §A4.2: one signature for all applicants: its content is the same for all, and a first message costs
        // no curve arithmetic.
        let coins = prf(&cookie_key, "quiver/1", "admission demand", &[]);
        let mut rng = ChaCha20Rng::from_seed(*coins.expose());
        let demand = super::demand(&config.group, &config.policy.bytes());
        let signature = config.keypair.sign(&config.deployment, Label::Admission, &demand, &mut rng);
        Ok(Self {
            terms: CertificationTerms::of(&config.authority)?,
            signature,
            cookies: CookieJar::new(cookie_key, COOKIE_LIFETIME),
            config: Arc::new(config),
            generation,
            policy,
            verifier: None,
            pending_key_checks: VecDeque::new(),
            key_check_at: None,
            pending_offers: VecDeque::new(),
            pending_tables: VecDeque::new(),
            jobs: VecDeque::new(),
            next_job_number: 0,
            running_jobs: BTreeMap::new(),
            pieces_done: 0,
            runs: BTreeMap::new(),
            sessions: BTreeMap::new(),
            used_connections: BTreeSet::new(),
            out: Outbox::new(),
        })
    }

    /// The session with the drone admitted on this connection; `None` if it was taken before.
    pub fn take_session(&mut self, peer: Peer) -> Option<Session> {
        self.sessions.remove(&peer).map(|admitted| admitted.session)
    }

    /// The same with what else its run gave.
    pub fn take_run(&mut self, peer: Peer) -> Option<Admitted<S>> {
        self.sessions.remove(&peer)
    }

    /// Pieces of work that the gate did itself.
    #[must_use]
    pub const fn pieces(&self) -> u64 {
        self.pieces_done
    }

    /// Takes a message that is already decoded.
    pub fn receive(&mut self, now: Now, from: Peer, message: &AdmissionMessage<S>) {
        match message {
            AdmissionMessage::Hello(hello) => self.hello(now, from, hello),
            AdmissionMessage::Proof(proof) => self.proof(now, from, proof),
            AdmissionMessage::Step(step) => self.step(from, step),
            AdmissionMessage::Challenge(_) | AdmissionMessage::Leave(_) => {
                let offence = Offence::OutOfPlace("message to a gate");
                self.out.event(GateEvent::Blamed { peer: from, offence });
            }
        }
    }

    /// Decodes a message, and takes it.
    fn received(&mut self, now: Now, from: Peer, bytes: &[u8]) {
        let offence = match Message::decode(&self.config.deployment, bytes) {
            Err(error) => error.into(),
            Ok(message) => match message.extension() {
                Some(Ok(message)) => return self.receive(now, from, &message),
                Some(Err(error)) => error.into(),
                None => Offence::out_of_place(&message, "message to a gate"),
            },
        };
        self.out.event(GateEvent::Blamed { peer: from, offence });
    }

    /// The slot keys in force, if there are any.
    fn verifier(&self, now: Now) -> Option<&Arc<Verifier>> {
        // §A1.1: a credential of one period is not accepted in the next.
        let period = self.terms.period_at(now.unix);
        let over = now.unix >= self.config.policy.not_after;
        self.verifier.as_ref().filter(|verifier| verifier.authority().period() == period && !over)
    }

    fn hello(&mut self, now: Now, from: Peer, hello: &AdmissionHello) {
        // §A4.2: refusals before a run say what is wrong.
        if hello.group != self.config.group {
            return self.refuse(from, RefusalReason::WrongGroup, &hello.nonce);
        }
        if self.verifier(now).is_none() {
            return self.refuse(from, RefusalReason::NotReady, &hello.nonce);
        }
        // §24.6: the challenge names our set, so a drone of another stops there.
        self.compare_kem(from, hello.kem);
        // §A4.1: no state, no curve: everything but the cookie is the same for all.
        let answer = AdmissionChallenge {
            nonce: hello.nonce,
            cookie: self.cookies.bake(now.monotonic, from, &[COOKIE, &hello.nonce]),
            leader: self.config.keypair.public().clone(),
            policy: self.config.policy.bytes(),
            signature: self.signature,
            kem: self.config.kem,
        };
        self.out.send(&self.config.deployment, from, &AdmissionMessage::Challenge(answer).into());
    }

    /// Reports a drone whose deployment says another parameter set. Returns true if it says the same.
    fn compare_kem(&mut self, peer: Peer, set: Option<KemSet>) -> bool {
        let own = self.config.kem.map(|term| term.set());
        if set != own {
            self.out.event(GateEvent::KemDiffers { peer, own: own.into(), other: set.into() });
        }
        set == own
    }

    fn proof(&mut self, now: Now, from: Peer, proof: &AdmissionProof) {
        // §A4.1: first the cookie.
        if !self.cookies.recognises(now.monotonic, from, &[COOKIE, &proof.nonce], &proof.cookie) {
            self.refuse(from, RefusalReason::BadCookie, &proof.nonce);
            return self.out.event(GateEvent::Blamed { peer: from, offence: Offence::Cookie });
        }
        // §A4.2: a connection has one run.
        if self.used_connections.contains(&from) {
            let again = AdmissionError::OutOfTurn("a second run on one connection");
            return self.deny(from, &proof.nonce, again);
        }
        let Some(period) = self.verifier(now).map(|verifier| verifier.authority().period()) else {
            return self.refuse(from, RefusalReason::NotReady, &proof.nonce);
        };
        // §A4.2: 256 runs at a time.
        if self.run_count() >= MAX_RUNS {
            return self.refuse(from, RefusalReason::Busy, &proof.nonce);
        }
        // §24.6: nothing falls back.
        if !self.compare_kem(from, proof.kem.as_ref().map(KemOffer::set)) {
            let own = self.config.kem.map(|term| term.set());
            return self.refuse(from, RefusalReason::other_kem(own), &proof.nonce);
        }
        let kem = match &proof.kem {
            Some(KemOffer::Key { key, .. }) => key.clone(),
            // §A4.3: no run names what was made in another; such a message is not decoded.
            _ => Vec::new(),
        };
        self.used_connections.insert(from);
        // §A4.1: the length, before anything is decoded.
        if proof.step.len() != Hello::encoded_len(self.policy.attributes()) {
            return self.deny(from, &proof.nonce, AdmissionError::OutOfTurn("a hello of another length"));
        }
        let until = now.monotonic + self.config.timing.patience;
        let ends = self.terms.end_of(period);
        let run_id = RunId { peer: from, nonce: proof.nonce, cookie: proof.cookie, until, ends };
        // §A8: drones that apply at once are verified in one product.
        self.pending_key_checks.push_back(PendingKeyCheck { run_id, hello: proof.step.clone(), kem });
        self.key_check_at.get_or_insert(now.monotonic + self.config.timing.batching);
    }

    /// Number of runs under way, those included that wait for work.
    fn run_count(&self) -> usize {
        let working: usize = self.running_jobs.values().map(Vec::len).sum();
        self.pending_key_checks.len()
            + self.pending_offers.len()
            + self.pending_tables.len()
            + self.runs.len()
            + working
    }

    /// Number of keys that are verified in one product.
    fn key_batch(&self) -> usize {
        if self.config.timing.workers == 0 { BATCH } else { WORKERS_BATCH }
    }

    /// The next piece of work, if there is any: first for those whose runs are furthest.
    fn next_work(&mut self, now: Now) -> Option<Work<S>> {
        if let Some(tables) = self.pending_tables.pop_front() {
            return Some(Work::Garble(tables));
        }
        if let Some(proven) = self.pending_offers.pop_front() {
            return Some(Work::Offer(proven));
        }
        if !due(self.key_check_at, now.monotonic) && self.pending_key_checks.len() < self.key_batch() {
            return None;
        }
        // §A8: 16 keys at most where threads verify them, 4 here.
        let next: Vec<PendingKeyCheck> =
            self.pending_key_checks.drain(..self.key_batch().min(self.pending_key_checks.len())).collect();
        if self.pending_key_checks.is_empty() {
            self.key_check_at = None;
        }
        let verifier = self.verifier(now).cloned();
        let ends = verifier.as_ref().map(|verifier| self.terms.end_of(verifier.authority().period()));
        // §A1.1: a credential of one period is not accepted in the next, and some may have waited until then.
        let (next, late): (Vec<_>, Vec<_>) = next.into_iter().partition(|one| Some(one.run_id.ends) == ends);
        late.iter().for_each(|one| self.refuse(one.run_id.peer, RefusalReason::NotReady, &one.run_id.nonce));
        verifier.filter(|_| !next.is_empty()).map(|verifier| Work::Verify(verifier, next))
    }

    /// Gives the driver work, as much as it does at a time.
    fn hand_out(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        while self.running_jobs.len() < self.config.timing.workers {
            let Some(work) = self.next_work(now) else { return };
            let number = self.next_job_number;
            self.next_job_number += 1;
            self.running_jobs.insert(number, work.run_ids());
            let generation = self.generation;
            let config = Arc::clone(&self.config);
            let policy = Arc::clone(&self.policy);
            let seed = Secret::random(rng);
            // §A8: on a thread beside the leader's loop.
            self.jobs.push_back(Job::new(move || {
                let done = work.run(&config, &policy, &seed);
                Returned { generation, number, done }
            }));
        }
    }

    /// The next piece of work that the driver does, if it does any.
    pub fn next_job(&mut self) -> Option<Job> {
        self.jobs.pop_front()
    }

    /// Takes the result of a job, unless its runs have ended.
    pub fn finish(&mut self, now: Now, done: FinishedJob, rng: &mut dyn CryptoRngCore) {
        let Some(Returned::<S> { generation, number, done }) = done.open() else { return };
        if generation == self.generation
            && let Some(awaited) = self.running_jobs.remove(&number)
        {
            self.done(done, &awaited);
        }
        self.tick(now, false, rng);
    }

    /// Continues the runs whose peers are still connected and whose time is not over.
    fn done(&mut self, done: WorkResult<S>, awaited: &[RunId]) {
        // A run that took too long was taken out of its job, and answered.
        let in_time = |run_id: &RunId| awaited.iter().any(|one| one.peer == run_id.peer);
        let goes_on =
            |gate: &Self, run_id: &RunId| gate.used_connections.contains(&run_id.peer) && in_time(run_id);
        match done {
            WorkResult::Verified(verdicts) => {
                for (run_id, verdict) in verdicts {
                    match verdict {
                        // §13.8: a peer that has disconnected meanwhile is judged all the same.
                        Err(error) if in_time(&run_id) && !goes_on(self, &run_id) => {
                            let why = error.into();
                            self.out.event(GateEvent::Denied { peer: run_id.peer, why });
                        }
                        _ if !goes_on(self, &run_id) => {}
                        Err(error) => self.deny(run_id.peer, &run_id.nonce, error.into()),
                        Ok(proven) => self.pending_offers.push_back(proven),
                    }
                }
            }
            WorkResult::Garbled(run_id, _) if !goes_on(self, &run_id) => {}
            WorkResult::Garbled(run_id, Err(error)) => self.deny(run_id.peer, &run_id.nonce, error),
            WorkResult::Garbled(run_id, Ok(garbled)) => {
                let Garbled { stage, kem, steps, mut ciphertext } = *garbled;
                for step in steps {
                    // §A4.3: with the offer, which is the first.
                    let ciphertext = core::mem::take(&mut ciphertext);
                    self.send_with(run_id.peer, AdmissionStep { nonce: run_id.nonce, step, ciphertext });
                }
                self.runs.insert(run_id.peer, GateRun { run_id, stage, kem });
            }
        }
    }

    fn step(&mut self, from: Peer, message: &AdmissionStep) {
        let Some(GateRun { run_id, stage, kem }) = self.runs.remove(&from) else {
            let offence = Offence::OutOfPlace("AdmissionStep");
            return self.out.event(GateEvent::Blamed { peer: from, offence });
        };
        let nonce = run_id.nonce;
        if nonce != message.nonce {
            return self.deny(from, &nonce, AdmissionError::OutOfTurn("a step of another run"));
        }
        // §A4.3: ciphertexts are the leader's.
        if !message.ciphertext.is_empty() {
            return self.deny(from, &nonce, AdmissionError::OutOfTurn("a ciphertext from a drone"));
        }
        match (stage, message.step.as_slice()) {
            // §A4.1: an empty step asks for more tables.
            (GateStage::Garbling(garbling), []) => {
                self.pending_tables.push_back(GarblingRun { run_id, garbling, kem });
            }
            (GateStage::Garbling(garbling), step) => match garbling.finish() {
                // All tables were received, with no request for more pending.
                Ok(awaiting) => self.commitment(run_id, kem, awaiting, step),
                Err(error) => self.deny(from, &nonce, error.into()),
            },
            (GateStage::Awaiting(awaiting), step) => self.commitment(run_id, kem, awaiting, step),
            // §A4.1: opening → confirmation, and both sides have the session.
            (GateStage::Seeded(seeded), step) => match seeded.opening(step) {
                Err(error) => self.deny(from, &nonce, error.into()),
                Ok((session, confirmation)) => {
                    self.send(from, nonce, confirmation);
                    let pseudonym = session.pseudonym();
                    self.sessions.insert(from, Admitted { nonce, session, kem });
                    self.out.event(GateEvent::Admitted { peer: from, pseudonym, until: run_id.ends });
                }
            },
        }
    }

    fn commitment(&mut self, run_id: RunId, kem: Option<KemKey<S>>, awaiting: Awaiting, step: &[u8]) {
        match awaiting.commitment(step) {
            Err(error) => self.deny(run_id.peer, &run_id.nonce, error.into()),
            Ok((seeded, seeds)) => {
                // §A4.1: commitment → seeds.
                self.send(run_id.peer, run_id.nonce, seeds);
                self.runs.insert(run_id.peer, GateRun { run_id, stage: GateStage::Seeded(seeded), kem });
            }
        }
    }

    fn send(&mut self, peer: Peer, nonce: Nonce, step: Vec<u8>) {
        self.send_with(peer, AdmissionStep { nonce, step, ciphertext: Vec::new() });
    }

    fn send_with(&mut self, peer: Peer, step: AdmissionStep) {
        self.out.send(&self.config.deployment, peer, &AdmissionMessage::Step(step).into());
    }

    /// The one answer to whatever went wrong in a run.
    fn deny(&mut self, peer: Peer, nonce: &Nonce, why: AdmissionError) {
        // §A4.2: from the proof on there is one refusal: not authorised.
        self.send_refusal(peer, RefusalReason::NotAuthorised, nonce);
        self.out.event(GateEvent::Denied { peer, why });
    }

    /// An answer before there is a run.
    fn refuse(&mut self, peer: Peer, reason: RefusalReason, nonce: &Nonce) {
        self.send_refusal(peer, reason, nonce);
        self.out.event(GateEvent::Denied { peer, why: AdmissionError::Refused(reason) });
    }

    fn send_refusal(&mut self, peer: Peer, reason: RefusalReason, nonce: &Nonce) {
        let refusal = Refusal { reason, reference: nonce.to_vec(), retry_after: Duration::ZERO };
        self.out.send(&self.config.deployment, peer, &Message::Refusal(refusal));
    }

    /// A connection is gone, and its run with it.
    pub fn disconnected(&mut self, peer: Peer) {
        // §A4.2: a run ends with its connection.
        self.pending_key_checks.retain(|one| one.run_id.peer != peer);
        self.pending_offers.retain(|one| one.run_id.peer != peer);
        self.pending_tables.retain(|one| one.run_id.peer != peer);
        self.runs.remove(&peer);
        self.sessions.remove(&peer);
        self.used_connections.remove(&peer);
    }

    /// The slot keys of a period; those for other fields verify nothing here.
    pub fn take_slot_keys(&mut self, key: &AuthorityKey) {
        if key.attributes() == self.policy.attributes() {
            self.verifier = Some(Arc::new(Verifier::new(key.clone())));
        }
    }

    /// Does what is due, and one piece of work if it is time for that and there are no worker threads.
    pub fn tick(&mut self, now: Now, timeout: bool, rng: &mut dyn CryptoRngCore) {
        // §A8: nothing is computed for those whose time is over.
        self.expire(now);
        if self.config.timing.workers > 0 {
            return self.hand_out(now, rng);
        }
        // §A8: without threads, one piece of work with each timeout.
        if timeout && let Some(work) = self.next_work(now) {
            self.pieces_done += 1;
            let run_ids = work.run_ids();
            let done = work.run(&self.config, &self.policy, &Secret::random(rng));
            self.done(done, &run_ids);
        }
    }

    /// Every run, whatever it waits for.
    fn all_run_ids(&self) -> impl Iterator<Item = &RunId> {
        let key_checks = self.pending_key_checks.iter().map(|one| &one.run_id);
        let offers = self.pending_offers.iter().map(|one| &one.run_id);
        let tables = self.pending_tables.iter().map(|one| &one.run_id);
        key_checks
            .chain(offers)
            .chain(tables)
            .chain(self.runs.values().map(|run| &run.run_id))
            .chain(self.running_jobs.values().flatten())
    }

    /// Ends the runs that have taken too long.
    fn expire(&mut self, now: Now) {
        // §A4.2: a run has 60 s, so that a drone that sends nothing does not hold a place for ever.
        let over = |run_id: &RunId| run_id.until <= now.monotonic;
        let silent: Vec<RunId> = self.all_run_ids().filter(|run_id| over(run_id)).copied().collect();
        if silent.is_empty() {
            return;
        }
        self.pending_key_checks.retain(|one| !over(&one.run_id));
        self.pending_offers.retain(|one| !over(&one.run_id));
        self.pending_tables.retain(|one| !over(&one.run_id));
        self.runs.retain(|_, run| !over(&run.run_id));
        // A job all of whose runs are over is not waited for.
        self.running_jobs.retain(|_, run_ids| {
            run_ids.retain(|run_id| !over(run_id));
            !run_ids.is_empty()
        });
        if self.pending_key_checks.is_empty() {
            self.key_check_at = None;
        }
        for run_id in silent {
            self.deny(run_id.peer, &run_id.nonce, AdmissionError::Silent);
        }
    }

    /// Time of the next timeout.
    pub fn deadline(&self) -> Option<Duration> {
        let timing = &self.config.timing;
        let ready = !self.pending_tables.is_empty()
            || !self.pending_offers.is_empty()
            || self.pending_key_checks.len() >= self.key_batch();
        let at_once = (ready && timing.workers == 0).then_some(Duration::ZERO);
        let batch =
            self.key_check_at.filter(|_| timing.workers == 0 || self.running_jobs.len() < timing.workers);
        self.all_run_ids().map(|run_id| run_id.until).chain(batch).chain(at_once).min()
    }
}

impl<S: Suite> Machine for Gate<S> {
    type Command = GateCommand;
    type Event = GateEvent;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, GateCommand>, rng: &mut dyn CryptoRngCore) {
        let timeout = matches!(input, Input::Timeout);
        match input {
            Input::Timeout | Input::Connected { .. } | Input::Resumed => {}
            Input::Disconnected { peer } => self.disconnected(peer),
            Input::Received { from, bytes, .. } => self.received(now, from, bytes),
            Input::Command(GateCommand::SlotKeys(key)) => self.take_slot_keys(&key),
        }
        self.tick(now, timeout, rng);
    }

    fn take_job(&mut self) -> Option<Job> {
        self.next_job()
    }

    fn finish_job(&mut self, now: Now, done: FinishedJob, rng: &mut dyn CryptoRngCore) {
        self.finish(now, done, rng);
    }

    fn poll_output(&mut self) -> Output<GateEvent, Infallible> {
        let deadline = self.deadline();
        self.out.poll(deadline)
    }
}
