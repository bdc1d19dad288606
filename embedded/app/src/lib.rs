//! The edge role on a board: everything of the firmware that does not depend on which board it is.
//!
//! An image brings the [`Board`]: a link to a gateway ([`Datagrams`]), a console, flash, randomness, [`Hooks`], and a
//! driver for `embassy-time`.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

mod board;
mod datagrams;
mod error;
mod hooks;
pub mod storage;

pub use board::{About, Board, ResetCause};
pub use datagrams::{Datagrams, LinkFaults, RadioAddress};
pub use error::StorageError;
pub use hooks::{Hooks, Memory, State};
