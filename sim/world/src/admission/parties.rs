//! Both sides' machines, and what came of a run.

use std::convert::Infallible;
use std::fmt;

use quiver_ainq::Suite;
use quiver_crypto::Secret;
use quiver_role::admission::applicant::{Applicant, ApplicantEvent};
use quiver_role::admission::gate::{Gate, GateCommand, GateEvent};
use quiver_role::admission::{AdmissionError, Ledger};
use quiver_role::{Input, Machine, Now, Offence, Output};
use rand_core::CryptoRngCore;

/// What both sides have of a run that let somebody in: its name, and the secret that takes the place of the pairwise one.
#[derive(Clone)]
pub struct Shown {
    /// Of this run alone.
    pub pseudonym: [u8; 16],
    /// W.
    pub secret: Secret<32>,
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").field("pseudonym", &self.pseudonym).finish_non_exhaustive()
    }
}

/// How a run ended for the drone.
pub type Outcome = Result<Shown, AdmissionError>;

/// A run, seen by the drone.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Whose.
    pub drone: u32,
    /// The how manyeth of this drone, from 0.
    pub run: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// All that the leader saw of it: every message that the drone sent, and what else the leader had to tell it by.
    pub seen: Vec<Vec<u8>>,
}

/// The leader's gate, which takes its sessions.
#[derive(Debug)]
pub struct Guard<S: Suite>(Gate<S>);

/// What a guard reports.
#[derive(Debug)]
pub enum GuardEvent {
    /// Somebody is in.
    Admitted(Shown),
    /// Somebody is not.
    Denied(AdmissionError),
    /// Somebody did something wrong.
    Blamed(Offence),
}

impl<S: Suite> Guard<S> {
    pub(super) const fn new(gate: Gate<S>) -> Self {
        Self(gate)
    }

    fn told(&mut self, event: GateEvent) -> Option<GuardEvent> {
        Some(match event {
            GateEvent::Admitted { peer, pseudonym, .. } => match self.0.take_session(peer) {
                Some(session) => GuardEvent::Admitted(Shown { pseudonym, secret: session.pairwise() }),
                None => GuardEvent::Denied(AdmissionError::OutOfTurn("admitted without a session")),
            },
            GateEvent::Denied { why, .. } => GuardEvent::Denied(why),
            GateEvent::Blamed { offence, .. } => GuardEvent::Blamed(offence),
            _ => return None,
        })
    }
}

impl<S: Suite> Machine for Guard<S> {
    type Command = GateCommand;
    type Event = GuardEvent;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, GateCommand>, rng: &mut dyn CryptoRngCore) {
        self.0.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<GuardEvent, Infallible> {
        loop {
            return match self.0.poll_output() {
                Output::Event(event) => match self.told(event) {
                    Some(event) => Output::Event(event),
                    None => continue,
                },
                Output::Persist(never) => match never {},
                Output::Transmit { to, payload } => Output::Transmit { to, payload },
                Output::Block(peer) => Output::Block(peer),
                Output::Timeout(deadline) => Output::Timeout(deadline),
            };
        }
    }
}

/// A drone that wants in, and all that it says.
#[derive(Debug)]
pub struct Visitor<S: Suite> {
    applicant: Applicant<S>,
    said: Vec<Vec<u8>>,
}

/// What a visitor reports.
#[derive(Debug)]
pub enum VisitorEvent {
    /// The run is over, and this is what was said in it.
    Over(Outcome, Vec<Vec<u8>>),
    /// Somebody did something wrong.
    Blamed(Offence),
}

impl<S: Suite> Visitor<S> {
    pub(super) const fn new(applicant: Applicant<S>) -> Self {
        Self { applicant, said: Vec::new() }
    }

    fn told(&mut self, event: ApplicantEvent) -> Option<VisitorEvent> {
        let outcome = match event {
            ApplicantEvent::Admitted { pseudonym } => match self.applicant.take_session() {
                Some(session) => Ok(Shown { pseudonym, secret: session.pairwise() }),
                None => Err(AdmissionError::OutOfTurn("admitted without a session")),
            },
            ApplicantEvent::Failed(why) => Err(why),
            ApplicantEvent::Blamed { offence, .. } => return Some(VisitorEvent::Blamed(offence)),
            _ => return None,
        };
        Some(VisitorEvent::Over(outcome, std::mem::take(&mut self.said)))
    }
}

impl<S: Suite> Machine for Visitor<S> {
    type Command = Infallible;
    type Event = VisitorEvent;
    type Record = Ledger;

    fn handle_input(&mut self, now: Now, input: Input<'_, Infallible>, rng: &mut dyn CryptoRngCore) {
        self.applicant.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<VisitorEvent, Ledger> {
        loop {
            return match self.applicant.poll_output() {
                Output::Event(event) => match self.told(event) {
                    Some(event) => Output::Event(event),
                    None => continue,
                },
                Output::Transmit { to, payload } => {
                    self.said.push(payload.clone());
                    Output::Transmit { to, payload }
                }
                Output::Persist(ledger) => Output::Persist(ledger),
                Output::Block(peer) => Output::Block(peer),
                Output::Timeout(deadline) => Output::Timeout(deadline),
            };
        }
    }
}
