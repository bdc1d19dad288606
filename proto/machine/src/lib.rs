//! The contract between Quiver's roles and whatever drives them, and what the roles share.
//!
//! Each role is a [`Machine`]: time and randomness are arguments, bytes go in, bytes and [`Output`]s come
//! out. The same code runs in the services over libp2p, in the simulator with thousands of drones, on a
//! microcontroller and in tests on a virtual clock. Collections iterate in a fixed order, so that one seed
//! gives one trace.
//!
//! A peer's error becomes an event that blames it ([`Offence`]); it never stops a machine and never panics.
#![doc = concat!(
    "\nWithout sockets, on the deterministic testbed:\n\n```\n",
    include_str!("../examples/machine.rs"),
    "```"
)]
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

mod backoff;
mod cookie;
mod either;
#[doc(hidden)]
pub mod forwarding;
mod job;
mod machine;
mod misdeeds;
mod node;
mod offence;
mod outbox;
mod part;
mod revocations;
mod snapshot;
mod token_bucket;
mod voucher;

pub use backoff::{Backoff, due, earlier};
pub use cookie::{COOKIE_LIFETIME, CookieJar};
pub use either::Either;
pub use job::{FinishedJob, Job};
pub use machine::{
    CLOCK_TOLERANCE, Destination, Input, KgcId, MAX_MESSAGE_LEN, Machine, Misdeed, Now, Output, Peer,
    RelayedBroadcast, Route, Via,
};
pub use misdeeds::Misdeeds;
pub use node::{Node, Primary, SharedRoleState};
pub use offence::Offence;
pub use outbox::Outbox;
pub use part::{Context, Handled, MachinePart};
pub use quiver_message::RefusalReason;
pub use revocations::{REVOCATION_LIST_RATE, Revocations};
pub use snapshot::{RestoreError, Snapshot};
pub use token_bucket::{Rate, TokenBucket, TokenBuckets};
pub use voucher::{vouch, vouched};
