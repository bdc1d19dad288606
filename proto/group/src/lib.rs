//! The group: [`Leader`] and [`Edge`] as deterministic state machines.
//!
//! A leader opens a term, admits edges, makes a new group key at every join, leave and eviction, and
//! distributes it; edges follow, and send messages under the key of the epoch. Other leaders of the group
//! stand by. docs/protocol.md, sections 6 to 13.
#![doc = concat!(
    "\nWithout sockets, on the deterministic testbed:\n\n```\n",
    include_str!("../examples/group.rs"),
    "```"
)]
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod edge;
mod group_channel;
#[cfg(feature = "services")]
pub mod leader;
mod refused;
mod statements;

/// Age of κ from which on a join renews it (§24.5): a disk that was stolen earlier is of no use against what
/// follows.
pub const KEM_LIFETIME: core::time::Duration = core::time::Duration::from_secs(30 * 86_400);

/// State of κ (§24), the second factor that a drone shares with a leader. Nothing of it is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KemState {
    /// Parameter set, and g: the number of the leader's terms to which it was stepped.
    pub term: quiver_ainq::KemTerm,
    /// Time of the exchange that it comes from, by the clock of whoever says it.
    pub made: quiver_ainq::UnixTime,
}

pub use edge::{Edge, EdgeCommand, EdgeConfig, EdgeEvent};
pub use group_channel::MessageOrigin;
#[cfg(feature = "services")]
pub use leader::{AnonymousLeave, Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord};
