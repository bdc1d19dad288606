//! Seals envelopes to policies or attributes, sends them to the group, and opens those of others that a key
//! fits: a [`MachinePart`](quiver_machine::MachinePart) of a drone, which need not be a member for it.
//!
//! Messages sealed to the same policy share a session, so that only its first message, the opening, carries
//! an encapsulated key. A reader that has missed it requests it, and its sender repeats it, as identical
//! bytes. Sessions live in memory alone.
//!
//! | message | from → to | answers | authenticated by |
//! |---|---|---|---|
//! | [`Envelope`] | anyone → group and others | – | seal; the sender's signature inside, if it signs |
//! | [`OpeningRequest`] | reader → group | `Envelope` | – (answered at most once per interval) |
#![doc = concat!(
    "\nWithout sockets, on the deterministic testbed:\n\n```\n",
    include_str!("../examples/envelope.rs"),
    "```"
)]
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

mod budget;
mod event;
mod keys;
mod limits;
pub mod message;
mod part;
mod receiver;
mod sender;
mod signature;

/// The types generated from the `.proto` of `quiver-message`, unvalidated.
#[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated from the .proto, which documents it")]
mod wire {
    include!("wire.rs");
}

use core::time::Duration;

use quiver_abe::envelope::EnvelopeError;
use quiver_machine::Offence;

pub use self::event::{Author, EnvelopeEvent};
pub use self::keys::{AttributeAccess, AttributeKeys};
pub use self::limits::EnvelopeLimits;
pub use self::message::{Envelope, EnvelopeMessage, MAX_ENVELOPE_LEN, OpeningRequest};
pub use self::part::{EnvelopeCommand, Envelopes};
pub use self::signature::{DroneSigner, DroneVerifier};

/// Name of this feature, in [`Offence::Feature`].
pub const FEATURE: &str = "envelopes";

/// Offence of a peer that sent an envelope which no honest sender made.
#[must_use]
pub fn offence(error: &EnvelopeError) -> Offence {
    Offence::of_feature(FEATURE, error)
}

/// Interval at which ended sessions are removed, while there are any.
const TIDYING: Duration = Duration::from_secs(60);
/// Least interval between requests or repetitions of an opening.
const REPEAT: Duration = Duration::from_secs(1);
