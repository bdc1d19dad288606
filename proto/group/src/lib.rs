//! The group: [`Leader`] and [`Edge`] as deterministic state machines.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod edge;
#[cfg(feature = "services")]
pub mod leader;
mod refused;
mod speech;
mod statements;

pub use edge::{Edge, EdgeCommand, EdgeConfig, EdgeEvent};
#[cfg(feature = "services")]
pub use leader::{Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord};
pub use speech::Source;
