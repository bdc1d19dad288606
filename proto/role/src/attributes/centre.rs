//! A KGC and the attribute authorities beside it as one machine, for one driver and one node in the network.

use quiver_ainq::{Deployment, Suite};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use super::office::{KeyIssued, Office, OfficeCommand, OfficeEvent};
use crate::{Input, Kgc, KgcCommand, KgcEvent, KgcRecord, Machine, Now, Output, Peer};

/// A KGC and its office. Each keeps to its own messages; the office is told of every revocation list that the KGC signs
/// before it takes another input.
#[derive(Debug)]
pub struct KeyCentre<S: Suite> {
    deployment: Deployment<S>,
    kgc: Kgc<S>,
    office: Office<S>,
}

/// A command to either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CentreCommand {
    /// To the KGC.
    Kgc(KgcCommand),
    /// To the office.
    Office(OfficeCommand),
}

/// An event of either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CentreEvent {
    /// Of the KGC.
    Kgc(KgcEvent),
    /// Of the office.
    Office(OfficeEvent),
}

/// A record of either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CentreRecord {
    /// Of the KGC.
    Kgc(KgcRecord),
    /// Of the office.
    KeyIssued(KeyIssued),
}

impl<S: Suite> KeyCentre<S> {
    /// Puts the two together. Both are of `deployment`.
    #[must_use]
    pub fn new(deployment: Deployment<S>, kgc: Kgc<S>, office: Office<S>) -> Self {
        let mut centre = Self { deployment, kgc, office };
        centre.tell_of_revocations();
        centre
    }

    /// The KGC.
    #[must_use]
    pub const fn kgc(&self) -> &Kgc<S> {
        &self.kgc
    }

    /// The office.
    #[must_use]
    pub const fn office(&self) -> &Office<S> {
        &self.office
    }

    fn received(&mut self, now: Now, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        match Message::decode(&self.deployment, bytes) {
            Err(error) => self.kgc.blame(from, error.into()),
            Ok(message) => {
                if !self.office.hear(now, from, &message, rng) {
                    self.kgc.hear(now, from, message, rng);
                }
            }
        }
    }

    /// A drone that is revoked gets no key from the very next request on.
    fn tell_of_revocations(&mut self) {
        if self.kgc.revocation_number() <= self.office.revocation_number() {
            return;
        }
        if let Some(list) = self.kgc.signed_revocations() {
            // The KGC has just signed or checked it.
            let _ = self.office.offer_revocations(list);
        }
    }
}

impl<S: Suite> Machine for KeyCentre<S> {
    type Command = CentreCommand;
    type Event = CentreEvent;
    type Record = CentreRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, CentreCommand>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Timeout => self.kgc.handle_input(now, Input::Timeout, rng),
            Input::Connected { peer, route } => {
                self.kgc.handle_input(now, Input::Connected { peer, route }, rng);
            }
            Input::Disconnected { peer } => self.kgc.handle_input(now, Input::Disconnected { peer }, rng),
            Input::Received { from, bytes } => {
                self.received(now, from, bytes, rng);
                self.kgc.wake(now, rng);
            }
            Input::Command(CentreCommand::Kgc(command)) => {
                self.kgc.handle_input(now, Input::Command(command), rng);
            }
            Input::Command(CentreCommand::Office(command)) => self.office.command(command),
        }
        self.tell_of_revocations();
    }

    fn poll_output(&mut self) -> Output<CentreEvent, CentreRecord> {
        // The office is always asked first: it has no deadlines, so that the KGC's is that of both.
        match self.office.poll() {
            Output::Persist(record) => Output::Persist(CentreRecord::KeyIssued(record)),
            Output::Transmit { to, payload } => Output::Transmit { to, payload },
            Output::Event(event) => Output::Event(CentreEvent::Office(event)),
            Output::Block(peer) => Output::Block(peer),
            Output::Timeout(_) => match self.kgc.poll_output() {
                Output::Persist(record) => Output::Persist(CentreRecord::Kgc(record)),
                Output::Transmit { to, payload } => Output::Transmit { to, payload },
                Output::Event(event) => Output::Event(CentreEvent::Kgc(event)),
                Output::Block(peer) => Output::Block(peer),
                Output::Timeout(deadline) => Output::Timeout(deadline),
            },
        }
    }
}
