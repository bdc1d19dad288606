//! Admission by policies over certified fields: what the KGC allows a group's leaders to ask, and how often.
//!
//! A policy is text over the fields of a certification authority ([`certifying`]). A leader that asks "is bit j
//! set?" for every j learns a drone's identity; so drones answer only policies that the KGC signed for the
//! leader's group ([`policy`]), and each leader a limited number of times in a period.
//!
//! | module | what it has |
//! |---|---|
//! | [`certifying`] | the certification of fields, by periods: [`CertificationTerms`](certifying::CertificationTerms), [`Certifier`](certifying::Certifier) |
//! | [`policy`] | policies, as the KGC signs them: [`SignedPolicy`] |
//! | [`message`] | messages between leaders and drones that join without a name: [`AdmissionMessage`] |
//! | `gate` and others | the exchange: leaders that demand a policy, drones that satisfy it; with the feature `exchange` |
#![doc = concat!(
    "\nWithout sockets, on the deterministic testbed:\n\n```\n",
    include_str!("../examples/admission.rs"),
    "```"
)]
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod certifying;
#[cfg(feature = "exchange")]
mod exchange;
pub mod message;
pub mod policy;

#[cfg(feature = "exchange")]
pub use exchange::*;
pub use message::{
    AdmissionChallenge, AdmissionHello, AdmissionLeave, AdmissionMessage, AdmissionProof, AdmissionStep,
    MAX_ADMISSION_POLICY_LEN, MAX_ADMISSION_STEP_LEN,
};
pub use policy::{AdmissionPolicyError, PolicyStatement, SignedPolicy, VerifiedPolicy};
