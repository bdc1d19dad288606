//! Enrolment: exchanges a drone's token for a partial key.
//!
//! [`Kgc`] issues, alone or as one of a quorum whose shares FROST combines; [`EnrolmentClient`] is the
//! drone's side, of which every edge and every leader has one until it has its key. See docs/protocol.md,
//! "Enrolment".
#![cfg_attr(
    all(feature = "std", feature = "services", feature = "threshold"),
    doc = concat!(
        "\nWithout sockets, on the deterministic testbed:\n\n```\n",
        include_str!("../examples/enrolment.rs"),
        "```"
    )
)]
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

mod client;
#[cfg(feature = "services")]
pub mod kgc;
mod kgcs;
#[cfg(feature = "threshold")]
pub mod threshold;

pub use client::{EnrolmentClient, EnrolmentStep, EnrolmentTrouble, Steps};
#[cfg(feature = "services")]
pub use kgc::{Kgc, KgcCommand, KgcConfig, KgcEvent, KgcRecord, KgcSigningKey, RevocationUsage};
pub use kgcs::Kgcs;
#[cfg(all(feature = "services", feature = "threshold"))]
pub use threshold::MasterShare;
