//! The drone's side of anonymous admission: proves that it satisfies a leader's policy, and reveals nothing
//! else.
//!
//! One run over one connection, under a fresh transport key. The leader is authentic if its signature on the
//! run's context verifies; the policy is one that the KGC signed for its group; the count of answers is
//! durable before the leader learns anything.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_abke::Credential;
use quiver_abke::exchange::{Client, Committed, Evaluating, ExchangeTerms, OpenedClient, Session};
use quiver_ainq::{
    Deployment, DronePublicKey, KemKey, Label, Name, RevocationStatement, Role, Signature, Suite,
    VerifiedAuthority,
};
use quiver_kem::KemSetting;
use quiver_message::{KemOffer, Message, Nonce, Refusal};
use rand_core::CryptoRngCore;

use super::kem::{RunKeypair, RunParties, channel, statement};
use super::ledger::Ledger;
use super::{AdmissionError, WINDOW};
use crate::certifying::CertificationTerms as Certified;
use crate::message::{AdmissionChallenge, AdmissionHello, AdmissionMessage, AdmissionProof, AdmissionStep};
use crate::policy::{AdmissionPolicyError, SignedPolicy};
use quiver_machine::Outbox;
use quiver_machine::due;
use quiver_machine::{Input, Machine, Now, Offence, Output, Peer, Route};

/// Configuration of an applicant.
#[derive(Debug)]
pub struct ApplicantConfig<S: Suite> {
    /// The deployment.
    pub deployment: Deployment<S>,
    /// The group to be admitted to.
    pub group: Name,
    /// The authority that certified the drone's fields.
    pub authority: VerifiedAuthority<S>,
    /// Credential of the drone.
    pub credential: Credential,
    /// The period that the credential is of.
    pub period: u64,
    /// The newest list known.
    pub revocations: RevocationStatement,
    /// Number of answers per leader in this period.
    pub ledger: Ledger,
    /// Maximum number of answers to one leader in a period.
    pub most: u32,
    /// Maximum duration of the whole exchange.
    pub patience: Duration,
    /// The deployment's setting of a second factor.
    pub kem: KemSetting,
}

/// Event of an applicant, for the drone's own log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplicantEvent {
    /// The policy is satisfied, and the leader knows; the session is there to be taken.
    Admitted {
        /// The name of this run, which the leader has too.
        pseudonym: [u8; 16],
    },
    /// Not admitted, or another failure. The run is over.
    Failed(AdmissionError),
    /// A peer did something wrong.
    Blamed {
        /// The peer.
        peer: Peer,
        /// The offence.
        offence: Offence,
    },
}

/// A drone that asks to be admitted.
#[derive(Debug)]
pub struct Applicant<S: Suite> {
    config: ApplicantConfig<S>,
    stage: ApplicantStage<S>,
    deadline: Option<Duration>,
    session: Option<(ApplicantRun, Session)>,
    /// κ of this run, if the deployment has a second factor.
    kem: Option<KemKey<S>>,
    /// True if anything was shown: a key, though of this run alone.
    shown: bool,
    out: Outbox<ApplicantEvent, Ledger>,
}

/// The leader, and the nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ApplicantRun {
    peer: Peer,
    nonce: Nonce,
}

#[derive(Debug)]
enum ApplicantStage<S: Suite> {
    /// No leader is connected yet.
    Waiting,
    Greeting(ApplicantRun),
    Proving(Box<Proving<S>>),
    /// The drone evaluates, with the number of pieces that came since tables were last asked for.
    Evaluating(ApplicantRun, Box<Evaluating>, usize),
    Committed(ApplicantRun, Box<Committed>),
    Opened(ApplicantRun, OpenedClient),
    Over,
}

/// Values against which the leader's offer is checked.
#[derive(Debug)]
struct Proving<S: Suite> {
    run: ApplicantRun,
    client: Client,
    leader: DronePublicKey<S>,
    channel: Vec<u8>,
    /// Present if the deployment has a second factor.
    keypair: Option<RunKeypair>,
}

impl<S: Suite> Applicant<S> {
    /// An applicant that begins as soon as a leader is connected.
    #[must_use]
    pub fn new(config: ApplicantConfig<S>) -> Self {
        Self {
            config,
            stage: ApplicantStage::Waiting,
            deadline: None,
            session: None,
            kem: None,
            shown: false,
            out: Outbox::new(),
        }
    }

    /// The session, once admitted.
    pub fn take_session(&mut self) -> Option<Session> {
        self.session.take().map(|(_, session)| session)
    }

    /// The same with whom, and the nonce of the run.
    pub fn take_run(&mut self) -> Option<(Peer, Nonce, Session)> {
        self.session.take().map(|(run, session)| (run.peer, run.nonce, session))
    }

    /// κ of the run, once admitted, if the deployment has a second factor.
    pub const fn take_kem(&mut self) -> Option<KemKey<S>> {
        self.kem.take()
    }

    /// Returns true if a key was shown, so that the same connection may not be used again.
    pub const fn has_shown(&self) -> bool {
        self.shown
    }

    /// Time of the next timeout.
    pub const fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// Returns true if the run is over, one way or the other.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.stage, ApplicantStage::Over)
    }

    fn greet(&mut self, now: Now, peer: Peer, rng: &mut dyn CryptoRngCore) {
        let mut nonce = [0; 16];
        rng.fill_bytes(&mut nonce);
        self.stage = ApplicantStage::Greeting(ApplicantRun { peer, nonce });
        self.deadline = Some(now.monotonic + self.config.patience);
        // §A4.1: a nonce, the group and what its deployment says, nothing about the drone.
        let (group, kem) = (self.config.group.clone(), self.config.kem.set());
        let hello = AdmissionHello { nonce, group, kem };
        self.out.send(&self.config.deployment, peer, &AdmissionMessage::Hello(hello).into());
    }

    fn challenged(
        &mut self,
        now: Now,
        from: Peer,
        challenge: &AdmissionChallenge<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let ApplicantStage::Greeting(run) = self.stage else { return };
        // §A4.1: a challenge repeats the nonce of the hello.
        if run != (ApplicantRun { peer: from, nonce: challenge.nonce }) {
            return;
        }
        match self.prove(now, run, challenge, rng) {
            Err(error) => self.fail(error),
            Ok((proving, step)) => {
                let offer = proving.keypair.as_ref().map(RunKeypair::offer);
                let kem = offer.map(|(term, key)| KemOffer::Key { set: term.set(), key: key.to_vec() });
                self.stage = ApplicantStage::Proving(Box::new(proving));
                // §A4.2: everything was checked before this leaves.
                self.shown = true;
                let (nonce, cookie) = (run.nonce, challenge.cookie);
                let proof = AdmissionMessage::Proof(AdmissionProof { nonce, cookie, step, kem });
                self.out.send(&self.config.deployment, from, &proof.into());
            }
        }
    }

    /// Begins the exchange, if this leader may demand that policy.
    fn prove(
        &self,
        now: Now,
        run: ApplicantRun,
        challenge: &AdmissionChallenge<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<(Proving<S>, Vec<u8>), AdmissionError> {
        let ApplicantConfig { deployment, group, authority, credential, .. } = &self.config;
        let leader = &challenge.leader;
        // §24.6: nothing is asked of a leader of another set, or of none.
        let (own, others) = (self.config.kem, challenge.kem.map(|term| term.set()).into());
        if own != others {
            return Err(AdmissionError::OtherKem { own, leader: others });
        }
        // §A4.2: it leads this group, has not expired, and is not revoked.
        match &leader.identity.role {
            Role::Leader { group: led, .. } if led == group => {}
            _ => return Err(AdmissionError::Leader("it does not lead this group")),
        }
        if now.unix >= leader.identity.not_after {
            return Err(AdmissionError::Leader("its identity has expired"));
        }
        if self.config.revocations.names(leader) {
            return Err(AdmissionError::Leader("it is revoked"));
        }
        let certified = Certified::of(authority).map_err(AdmissionPolicyError::from)?;
        // §A4.2: the credential is of this period.
        if certified.period_at(now.unix) != self.config.period {
            return Err(AdmissionError::Expired);
        }
        // §A4.2: policies that the KGC signed are public, and compiling one takes long: a leader has to stand
        // by it.
        let demand = super::demand(group, &challenge.policy);
        if challenge.signature.verify(deployment, leader, Label::Admission, &demand).is_err() {
            return Err(AdmissionError::Leader("it did not sign what it demands"));
        }
        // §A4.2: the KGC signed the policy, for this group and about the fields of its authority.
        let policy = SignedPolicy::decode(&challenge.policy).and_then(|policy| policy.verify(deployment));
        let policy = policy.map_err(AdmissionPolicyError::from)?;
        // §A4.2: only then the policy is compiled and the key unlinked.
        let program = policy.exchangeable(group, authority, now.unix)?;
        // §A4.2: policy, leader, nonce ‖ c: what is relayed to another leader, or moved, ends at the
        // signature.
        let keypair = challenge.kem.map(|term| RunKeypair::generate(term, rng));
        let offer = keypair.as_ref().map(RunKeypair::offer);
        let channel = channel(&challenge.nonce, &challenge.cookie, offer);
        let server = leader.encode();
        let terms = ExchangeTerms { policy: policy.id(), server: &server, channel: &channel };
        let (client, hello) = Client::start(&terms, Arc::clone(&program), credential.unlink(rng), rng)?;
        Ok((Proving { run, client, leader: leader.clone(), channel, keypair }, hello))
    }

    fn step(&mut self, from: Peer, message: &AdmissionStep, rng: &mut dyn CryptoRngCore) {
        let run = match &self.stage {
            ApplicantStage::Proving(proving) => proving.run,
            ApplicantStage::Evaluating(run, ..)
            | ApplicantStage::Committed(run, _)
            | ApplicantStage::Opened(run, _) => *run,
            _ => return,
        };
        if run != (ApplicantRun { peer: from, nonce: message.nonce }) {
            return;
        }
        // §A4.3: a ciphertext comes with the offer, or not at all.
        if !message.ciphertext.is_empty() && !matches!(self.stage, ApplicantStage::Proving(_)) {
            return self.fail(AdmissionError::OutOfTurn("a ciphertext without an offer"));
        }
        let stage = core::mem::replace(&mut self.stage, ApplicantStage::Over);
        let advanced = match stage {
            ApplicantStage::Proving(proving) => self.offered(*proving, message, rng),
            ApplicantStage::Evaluating(_, evaluating, pieces) => {
                self.evaluate(run, *evaluating, pieces, &message.step, rng)
            }
            ApplicantStage::Committed(_, committed) => self.open(run, *committed, &message.step, rng),
            ApplicantStage::Opened(_, opened) => self.confirm(run, opened, &message.step),
            ApplicantStage::Waiting | ApplicantStage::Greeting(_) | ApplicantStage::Over => Ok(()),
        };
        if let Err(error) = advanced {
            self.fail(error);
        }
    }

    fn offered(
        &mut self,
        proving: Proving<S>,
        message: &AdmissionStep,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<(), AdmissionError> {
        let Proving { run, client, leader, channel, keypair } = proving;
        let ApplicantConfig { deployment, group, .. } = &self.config;
        let ciphertext = &message.ciphertext[..];
        if keypair.is_some() == ciphertext.is_empty() {
            return Err(AdmissionError::OutOfTurn("an offer with another second factor than the run's"));
        }
        // §A4.1: the offer is signed `abke` over the context of this run, and the ciphertext with it.
        let evaluating = client.offer(&message.step, |context, signature| {
            let signed = statement(context, ciphertext);
            let signature = Signature::decode(signature);
            signature.is_ok_and(|it| it.verify(deployment, &leader, Label::Abke, &signed).is_ok())
        })?;
        if let Some(keypair) = keypair {
            let parties = RunParties { deployment, group, leader: &leader.handle(), channel: &channel };
            self.kem = Some(keypair.decapsulate(&parties, ciphertext)?);
        }
        // §A4.2: it is the leader, and it will learn a bit. Counted, durably, before the commitment.
        let authority = self.config.authority.fingerprint();
        let (period, most) = (self.config.period, self.config.most);
        self.config.ledger.take(authority, &leader.identity.serial, period, most)?;
        self.out.persist(self.config.ledger.clone());
        self.go_on(run, evaluating, 0, rng)
    }

    fn evaluate(
        &mut self,
        run: ApplicantRun,
        mut evaluating: Evaluating,
        pieces: usize,
        tables: &[u8],
        rng: &mut dyn CryptoRngCore,
    ) -> Result<(), AdmissionError> {
        if tables.is_empty() {
            return Err(AdmissionError::OutOfTurn("tables without a byte"));
        }
        evaluating.tables(tables)?;
        self.go_on(run, evaluating, pieces + 1, rng)
    }

    /// Takes more tables, or commits if these were all.
    fn go_on(
        &mut self,
        run: ApplicantRun,
        evaluating: Evaluating,
        pieces: usize,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<(), AdmissionError> {
        if evaluating.remaining() == 0 {
            // §A4.1: all tables are evaluated: commits to the result before the seeds are shown.
            let (committed, commitment) = evaluating.commit(rng)?;
            self.send(run, commitment);
            self.stage = ApplicantStage::Committed(run, Box::new(committed));
            return Ok(());
        }
        // §A4.1: four pieces, then more when the drone asks with an empty step.
        let asked = pieces >= WINDOW;
        if asked {
            self.send(run, Vec::new());
        }
        self.stage = ApplicantStage::Evaluating(run, Box::new(evaluating), if asked { 0 } else { pieces });
        Ok(())
    }

    fn open(
        &mut self,
        run: ApplicantRun,
        committed: Committed,
        seeds: &[u8],
        rng: &mut dyn CryptoRngCore,
    ) -> Result<(), AdmissionError> {
        // §A4.1: the seeds prove that the tables are the policy's; only then the opening leaves.
        let (opened, opening) = committed.open(seeds, rng)?;
        self.send(run, opening);
        self.stage = ApplicantStage::Opened(run, opened);
        Ok(())
    }

    fn confirm(
        &mut self,
        run: ApplicantRun,
        opened: OpenedClient,
        confirmation: &[u8],
    ) -> Result<(), AdmissionError> {
        // §A4.2: a key, a pseudonym of this run, and W.
        let session = opened.confirm(confirmation)?;
        self.deadline = None;
        let pseudonym = session.pseudonym();
        self.session = Some((run, session));
        self.out.event(ApplicantEvent::Admitted { pseudonym });
        Ok(())
    }

    fn send(&mut self, run: ApplicantRun, step: Vec<u8>) {
        let step = AdmissionStep { nonce: run.nonce, step, ciphertext: Vec::new() };
        self.out.send(&self.config.deployment, run.peer, &AdmissionMessage::Step(step).into());
    }

    /// Ends the run. The leader gets no message: it notices the silence.
    fn fail(&mut self, error: AdmissionError) {
        (self.stage, self.deadline, self.kem) = (ApplicantStage::Over, None, None);
        self.out.event(ApplicantEvent::Failed(error));
    }

    /// A refusal is not authenticated, but without the leader the run cannot continue.
    pub(super) fn refused(&mut self, from: Peer, refusal: &Refusal) {
        let run = match &self.stage {
            ApplicantStage::Proving(proving) => proving.run,
            ApplicantStage::Greeting(run)
            | ApplicantStage::Evaluating(run, ..)
            | ApplicantStage::Committed(run, _)
            | ApplicantStage::Opened(run, _) => *run,
            ApplicantStage::Waiting | ApplicantStage::Over => return,
        };
        if run.peer == from && refusal.reference == run.nonce {
            // §A4.2: all refusals are alike; a negative result of the drone's own evaluation explains it.
            let unsatisfied = matches!(&self.stage, ApplicantStage::Opened(_, opened) if !opened.satisfied());
            self.fail(match unsatisfied {
                true => AdmissionError::Exchange(quiver_abke::Error::Unsatisfied),
                false => AdmissionError::Refused(refusal.reason),
            });
        }
    }

    fn received(&mut self, now: Now, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        match Message::decode(&self.config.deployment, bytes) {
            Err(error) => self.out.event(ApplicantEvent::Blamed { peer: from, offence: error.into() }),
            Ok(message) => self.receive(now, from, &message, rng),
        }
    }

    /// Takes a message that is already decoded.
    pub fn receive(&mut self, now: Now, from: Peer, message: &Message<S>, rng: &mut dyn CryptoRngCore) {
        let offence = match message {
            Message::Refusal(refusal) => return self.refused(from, refusal),
            // §A5.3: leaders send a new list to all their connections; an anonymous drone takes none from
            // them.
            Message::RevocationList(_) => return,
            message => match message.extension() {
                Some(Ok(message)) => return self.exchange(now, from, &message, rng),
                Some(Err(error)) => error.into(),
                None => Offence::out_of_place(message, "message to an applicant"),
            },
        };
        self.out.event(ApplicantEvent::Blamed { peer: from, offence });
    }

    /// Takes a message of the exchange that is already decoded.
    pub fn exchange(
        &mut self,
        now: Now,
        from: Peer,
        message: &AdmissionMessage<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        match message {
            AdmissionMessage::Challenge(challenge) => self.challenged(now, from, challenge, rng),
            AdmissionMessage::Step(step) => self.step(from, step, rng),
            AdmissionMessage::Hello(_) | AdmissionMessage::Proof(_) | AdmissionMessage::Leave(_) => {
                let offence = Offence::OutOfPlace("message to an applicant");
                self.out.event(ApplicantEvent::Blamed { peer: from, offence });
            }
        }
    }

    fn disconnected(&mut self, peer: Peer) {
        let with = match &self.stage {
            ApplicantStage::Proving(proving) => proving.run.peer,
            ApplicantStage::Greeting(run)
            | ApplicantStage::Evaluating(run, ..)
            | ApplicantStage::Committed(run, _)
            | ApplicantStage::Opened(run, _) => run.peer,
            ApplicantStage::Waiting | ApplicantStage::Over => return,
        };
        if with == peer {
            self.fail(AdmissionError::Silent);
        }
    }
}

impl<S: Suite> Machine for Applicant<S> {
    type Command = core::convert::Infallible;
    type Event = ApplicantEvent;
    type Record = Ledger;

    fn handle_input(&mut self, now: Now, input: Input<'_, Self::Command>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Connected { peer, route: Route::Leader }
                if matches!(self.stage, ApplicantStage::Waiting) =>
            {
                self.greet(now, peer, rng);
            }
            Input::Timeout | Input::Connected { .. } | Input::Resumed => {}
            Input::Disconnected { peer } => self.disconnected(peer),
            Input::Received { from, bytes, .. } => self.received(now, from, bytes, rng),
            Input::Command(never) => match never {},
        }
        if due(self.deadline, now.monotonic) {
            self.fail(AdmissionError::Silent);
        }
    }

    fn poll_output(&mut self) -> Output<ApplicantEvent, Ledger> {
        self.out.poll(self.deadline)
    }
}
