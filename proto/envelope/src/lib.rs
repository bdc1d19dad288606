//! Envelopes beside group messages: sealed to policies or attributes, read by whoever's key fits, member or not.
//!
//! What is sealed to the same policy shares a session, so that only its first message carries an encapsulated key. Who has
//! missed that asks for it, and whoever sealed it says it again, as identical bytes. Sessions live in memory alone.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

mod budget;
mod drone;
mod event;
mod keys;
mod limits;
mod receiving;
mod sending;

use alloc::vec::Vec;
use core::time::Duration;

use quiver_abe::envelope::{EnvelopeError, SessionId, Target};

use self::budget::Budget;
pub use self::drone::{DroneSigner, DroneVerifier};
pub use self::event::{Author, EnvelopeEvent};
pub use self::keys::{AttributeAccess, AttributeKeys};
pub use self::limits::EnvelopeLimits;
use self::receiving::Receiving;
pub use self::sending::Order;
use self::sending::Sending;
use quiver_machine::Now;
use quiver_machine::due;

/// How often sessions whose time is over are looked for, while there are any.
const TIDYING: Duration = Duration::from_secs(60);
/// How often an opening is asked for or said again at most.
const REPEAT: Duration = Duration::from_secs(1);

/// What the application asks of a drone's envelopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeCommand {
    /// Use these parameters and keys from now on, in place of those before.
    Keys(AttributeKeys),
    /// Seal something and send it to the group.
    Seal {
        /// Under whose parameters: the authority's fingerprint.
        authority: [u8; 32],
        /// To whom.
        target: Target,
        /// At most 65,536 bytes.
        data: Vec<u8>,
        /// Whether to sign it. What is not signed is shown as unauthenticated.
        signed: bool,
    },
}

/// What came of a message, before it is told.
#[derive(Debug)]
pub enum Heard {
    /// It opened.
    Opened(EnvelopeEvent),
    /// It is for others.
    NotSatisfied(SessionId),
    /// Its encapsulated key is longer than this drone opens.
    TooLarge(SessionId),
    /// Its session's opening is missing.
    Ask(SessionId),
    /// It is wrong.
    Wrong(EnvelopeError),
}

/// The envelopes of one drone. Made when it gets parameters or keys.
#[derive(Debug)]
pub struct Envelopes {
    keys: AttributeKeys,
    sending: Sending,
    /// Openings said again, of all sessions together.
    repeats: Budget,
    receiving: Receiving,
    tidying: Option<Duration>,
}

impl Envelopes {
    /// Envelopes opened with these keys, within these limits.
    pub fn new(keys: AttributeKeys, limits: EnvelopeLimits) -> Self {
        Self {
            keys,
            sending: Sending::new(limits),
            repeats: Budget::of_broadcasts(),
            receiving: Receiving::new(limits),
            tidying: None,
        }
    }

    /// Other keys from now on. What did not fit may fit now.
    pub fn exchange(&mut self, keys: AttributeKeys) {
        self.keys = keys;
        self.receiving.reconsider();
    }

    /// When to [`tick`](Self::tick).
    pub fn deadline(&self) -> Option<Duration> {
        self.tidying
    }

    /// Erases the keys of sessions whose time is over.
    pub fn tick(&mut self, now: Now) {
        if due(self.tidying, now.monotonic) {
            self.sending.forget_old(now.unix);
            self.receiving.forget_old(now);
            self.tidying = None;
        }
        if self.tidying.is_none() && !(self.sending.is_empty() && self.receiving.is_empty()) {
            self.tidying = Some(now.monotonic.saturating_add(TIDYING));
        }
    }
}
