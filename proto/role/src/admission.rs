//! Admission by policies over certified fields: what the KGC allows a group's leaders to ask, and how often.
//!
//! A policy is text over the fields of a certification authority ([`certifying`](crate::attributes::certifying)). A leader that asks
//! "is bit j set?" for every j has asked who somebody is; so drones answer only policies that the KGC signed for the leader's group
//! ([`policy`]), and each leader so often in a period ([`ledger`]).

pub mod ledger;
pub mod policy;

pub use ledger::{Exhausted, Ledger};
pub use policy::{PolicyError, PolicyStatement, SignedPolicy, VerifiedPolicy};
