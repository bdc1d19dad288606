//! Sends and receives a member's datagrams: the machine.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Deployment, EpochKeys, Handle, Name, Signature, Slot, Suite};
use rand_core::CryptoRngCore;

use crate::{Config, Counters, Event, Payload, Refusal};

/// A sender of datagrams, as a receiver knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderStatus {
    /// Its slot, or [`LEADER_SLOT`](quiver_ainq::LEADER_SLOT).
    pub slot: Slot,
    /// Its name, if it signed its announcement and may.
    pub name: Option<Name>,
    /// Time of its last datagram in this epoch.
    pub heard: Option<Duration>,
    /// Number of datagrams received from it in this epoch.
    pub received: u64,
}

/// Sends and receives a member's datagrams.
#[derive(Debug)]
pub struct Datagrams<S: Suite> {
    config: Config,
    deployment: Deployment<S>,
    counters: Counters,
}

impl<S: Suite> Datagrams<S> {
    /// Closed: nothing passes before the first epoch is [set](Self::set_epoch).
    #[must_use]
    pub fn new(config: Config, deployment: Deployment<S>) -> Self {
        Self { config, deployment, counters: Counters::default() }
    }

    /// Takes an epoch into use. The one in use again, under the same start, changes nothing.
    pub fn set_epoch(&mut self, _now: Duration, _keys: EpochKeys<S>, _rng: &mut dyn CryptoRngCore) {}

    /// There is no valid key: nothing passes, and all secrets are erased.
    pub fn close(&mut self) {}

    /// Whether there is a valid key.
    #[must_use]
    pub fn is_open(&self) -> bool {
        false
    }

    /// Takes a payload to be sent.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn send(&mut self, _now: Duration, _payload: Payload) -> Result<(), Refusal> {
        Err(Refusal::Closed)
    }

    /// The next datagram for the carrier, if its bit rate allows one.
    pub fn poll_datagram(&mut self, _now: Duration) -> Option<Vec<u8>> {
        None
    }

    /// Takes what the carrier received. What is wrong with it is counted, and never answered.
    pub fn handle_datagram(&mut self, _now: Duration, _datagram: &[u8]) {}

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event<S>> {
        None
    }

    /// Answers an [`Event::SignatureWanted`].
    pub fn provide_signature(&mut self, _now: Duration, _id: u64, _signature: &Signature<S>) {}

    /// Answers an [`Event::SignerAnnounced`]: the drone with this key may sign datagrams from this slot.
    pub fn allow_signer(&mut self, _now: Duration, _slot: Slot, _handle: &Handle) {}

    /// The drone with this key may sign datagrams no longer, for instance because it was revoked.
    pub fn forbid_signer(&mut self, _handle: &Handle) {}

    /// Says which drone has this slot, as far as that is known from the roster or a signed table: nobody
    /// else's announcement is accepted for it. It holds until it is said otherwise, or the machine is gone.
    pub fn assign_slot(&mut self, _slot: Slot, _name: Option<Name>) {}

    /// Time of the next [`handle_timeout`](Self::handle_timeout), or of the next datagram that may leave.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, _now: Duration) {}

    /// What became of datagrams and payloads since the start.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The senders known in this epoch.
    pub fn senders(&self) -> impl Iterator<Item = SenderStatus> {
        let _ = (&self.config, &self.deployment);
        core::iter::empty()
    }
}
