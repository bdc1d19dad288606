//! The roles of Quiver as deterministic state machines: [`Kgc`], [`Leader`] and [`Edge`].
//!
//! Each is a [`Machine`]: time and randomness are arguments, bytes go in, bytes and [`Output`]s come out. The same
//! code runs in the services over libp2p, in the simulator with thousands of drones, on a microcontroller and in
//! tests on a virtual clock. Collections iterate in a fixed order, so that one seed gives one trace.
//!
//! What a peer gets wrong becomes an event that blames it ([`Offence`]); it never stops a machine and never panics.
#![cfg_attr(
    any(feature = "abe", feature = "abke"),
    doc = "\nThe attribute authorities beside a KGC, and how drones fetch their keys, are in [`attributes`]."
)]
#![cfg_attr(
    feature = "ibe",
    doc = "\nThe release of identity keys by KGCs, and how drones collect them, are in [`release`]."
)]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

#[cfg(feature = "abke")]
pub mod admission;
#[cfg(any(feature = "abe", feature = "abke"))]
pub mod attributes;
mod backoff;
#[cfg(feature = "services")]
mod cookie;
pub mod edge;
mod enrollee;
mod envelope_event;
#[cfg(feature = "abe")]
mod envelopes;
mod job;
#[cfg(feature = "services")]
pub mod kgc;
mod kgcs;
#[cfg(feature = "services")]
pub mod leader;
pub mod machine;
#[cfg(feature = "services")]
mod misdeeds;
mod offence;
mod outbox;
#[cfg(feature = "quorum")]
pub mod quorum;
mod refused;
#[cfg(feature = "ibe")]
pub mod release;
mod revocations;
mod snapshot;
mod speech;
mod statements;
#[cfg(feature = "threshold")]
pub mod threshold;
#[cfg(feature = "services")]
mod token_bucket;
#[cfg(feature = "services")]
mod voucher;

pub use edge::{Edge, EdgeCommand, EdgeConfig, EdgeEvent};
pub use enrollee::EnrolmentTrouble;
pub use envelope_event::{Author, EnvelopeEvent};
#[cfg(feature = "abe")]
pub use envelopes::{
    AttributeAccess, AttributeKeys, DroneSigner, DroneVerifier, EnvelopeCommand, EnvelopeLimits,
};
pub use job::{Finished, Job};
#[cfg(feature = "services")]
pub use kgc::{Kgc, KgcCommand, KgcConfig, KgcEvent, KgcRecord, RevocationUsage};
pub use kgcs::Kgcs;
#[cfg(feature = "services")]
pub use leader::{Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord};
pub use machine::{
    CLOCK_TOLERANCE, Destination, Input, MAX_MESSAGE_LEN, Machine, Misdeed, Now, Output, Peer, Route, Via,
};
pub use offence::Offence;
pub use quiver_message::Reason;
#[cfg(feature = "quorum")]
pub use quorum::{QuorumCommand, QuorumConfig, QuorumEvent, QuorumNode, QuorumRecord};
pub use snapshot::Snapshot;
pub use speech::Source;
#[cfg(feature = "threshold")]
pub use threshold::QuorumSuite;
#[cfg(feature = "services")]
pub use threshold::{Master, MasterShare};

/// How encryption to conditions calls itself in statements.
#[cfg(any(feature = "ibe", feature = "quorum"))]
pub(crate) const IBE_SCHEME: &str = "bf-fullident-bls12381";
