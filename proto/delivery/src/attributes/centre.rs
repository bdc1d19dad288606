//! A KGC, the attribute authorities beside it and its release of key shares as one machine, for one driver and one node in
//! the network.

use quiver_ainq::{Deployment, Suite};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use super::office::{KeyIssued, Office, OfficeCommand, OfficeEvent};
#[cfg(feature = "ibe")]
use crate::release::{ReleaseCommand, ReleaseEvent, ReleaseOffice, ShareReleased};
use quiver_enrolment::{Kgc, KgcCommand, KgcEvent, KgcRecord, MasterShare};
use quiver_machine::{Input, Machine, Now, Output, Peer};

/// A KGC and its offices. Each keeps to its own messages; the offices are told of every revocation list that the KGC signs
/// before they take another input.
#[derive(Debug)]
pub struct KeyCentre<S: Suite> {
    deployment: Deployment<S>,
    kgc: Kgc<S>,
    office: Office<S>,
    #[cfg(feature = "ibe")]
    release: Option<ReleaseOffice<S>>,
}

/// A command to any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CentreCommand {
    /// To the KGC.
    Kgc(KgcCommand),
    /// To the office.
    Office(OfficeCommand),
    /// To the release office.
    #[cfg(feature = "ibe")]
    Release(ReleaseCommand),
}

/// An event of any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CentreEvent {
    /// Of the KGC.
    Kgc(KgcEvent),
    /// Of the office.
    Office(OfficeEvent),
    /// Of the release office.
    #[cfg(feature = "ibe")]
    Release(ReleaseEvent),
}

/// A record of any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CentreRecord {
    /// Of the KGC.
    Kgc(KgcRecord),
    /// Of the office.
    KeyIssued(KeyIssued),
    /// Of the release office.
    #[cfg(feature = "ibe")]
    ShareReleased(ShareReleased),
}

impl<S: Suite> KeyCentre<S> {
    /// Puts the two together. Both are of `deployment`.
    #[must_use]
    pub fn new(deployment: Deployment<S>, kgc: Kgc<S>, office: Office<S>) -> Self {
        let mut centre = Self {
            deployment,
            kgc,
            office,
            #[cfg(feature = "ibe")]
            release: None,
        };
        centre.tell_of_revocations();
        centre
    }

    /// The same with a release office of the same deployment.
    #[cfg(feature = "ibe")]
    #[must_use]
    pub fn with_release(mut self, release: ReleaseOffice<S>) -> Self {
        self.release = Some(release);
        self.tell_of_revocations();
        self
    }

    /// The release office, if there is one.
    #[cfg(feature = "ibe")]
    #[must_use]
    pub const fn release(&self) -> Option<&ReleaseOffice<S>> {
        self.release.as_ref()
    }

    /// The same, to be given another share to hold.
    #[cfg(feature = "ibe")]
    #[must_use]
    pub const fn release_mut(&mut self) -> Option<&mut ReleaseOffice<S>> {
        self.release.as_mut()
    }

    /// The KGC.
    #[must_use]
    pub const fn kgc(&self) -> &Kgc<S> {
        &self.kgc
    }

    /// The KGC signs with this from now on: see [`Kgc::replace_share`].
    ///
    /// # Errors
    /// As there.
    pub fn replace_share(&mut self, share: MasterShare<S>) -> Result<(), quiver_ainq::Error> {
        self.kgc.replace_share(share)
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
                let heard = self.office.hear(now, from, &message, rng);
                #[cfg(feature = "ibe")]
                let heard = heard
                    || self.release.as_mut().is_some_and(|office| office.hear(now, from, &message, rng));
                if !heard {
                    self.kgc.hear(now, from, message, rng);
                }
            }
        }
    }

    /// A drone that is revoked gets no key from the very next request on.
    fn tell_of_revocations(&mut self) {
        let (number, Some(list)) = (self.kgc.revocation_number(), self.kgc.signed_revocations()) else {
            return;
        };
        // The KGC has just signed or checked it.
        if number > self.office.revocation_number() {
            let _ = self.office.offer_revocations(list);
        }
        #[cfg(feature = "ibe")]
        if let Some(office) = self.release.as_mut().filter(|office| number > office.revocation_number()) {
            let _ = office.offer_revocations(list);
        }
    }

    /// What the offices want done.
    fn poll_offices(&mut self) -> Option<Output<CentreEvent, CentreRecord>> {
        let output = self.office.poll().map(CentreEvent::Office, CentreRecord::KeyIssued);
        if !matches!(output, Output::Timeout(_)) {
            return Some(output);
        }
        #[cfg(feature = "ibe")]
        if let Some(release) = &mut self.release {
            let output = release.poll().map(CentreEvent::Release, CentreRecord::ShareReleased);
            return Some(output).filter(|output| !matches!(output, Output::Timeout(_)));
        }
        None
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
            Input::Received { from, bytes, .. } => {
                self.received(now, from, bytes, rng);
                self.kgc.wake(now, rng);
            }
            Input::Resumed => self.kgc.handle_input(now, Input::Resumed, rng),
            Input::Command(CentreCommand::Kgc(command)) => {
                self.kgc.handle_input(now, Input::Command(command), rng);
            }
            Input::Command(CentreCommand::Office(command)) => self.office.command(command),
            #[cfg(feature = "ibe")]
            Input::Command(CentreCommand::Release(command)) => {
                if let Some(release) = &mut self.release {
                    release.command(command);
                }
            }
        }
        self.tell_of_revocations();
    }

    fn poll_output(&mut self) -> Output<CentreEvent, CentreRecord> {
        // The offices are always asked first: they have no deadlines, so that the KGC's is that of all.
        match self.poll_offices() {
            Some(output) => output,
            None => self.kgc.poll_output().map(CentreEvent::Kgc, CentreRecord::Kgc),
        }
    }
}
