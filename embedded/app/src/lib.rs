//! The edge role on a board: everything of the firmware that does not depend on which board it is.
//!
//! An image brings the [`Board`]: a link to a gateway ([`DatagramTransport`]), a console, flash, randomness,
//! [`Hooks`], and a driver for `embassy-time`; [`run`] does the rest. It drives the machine of `quiver-group`
//! as a service does: what the gateway says goes in, what comes out is made durable in flash ([`storage`]),
//! sent, or printed.
//!
//! | module | what it has |
//! |---|---|
//! | `run` | the loop over link, console, button and time |
//! | `node` | the machine with state, session, time and randomness |
//! | `parts` | what an image has beside that: envelopes, datagrams, broadcasts, quorums |
//! | [`storage`] | the state in flash |
//! | `randomness`, `clock` | what the board cannot take for granted |
//! | `console` | lines and commands |
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

mod board;
mod clock;
mod console;
mod datagrams;
mod error;
mod hooks;
mod node;
mod parts;
mod randomness;
mod run;
mod serial_line;
pub mod storage;
mod stored_state;

pub use board::{About, Board, ResetCause};
pub use datagrams::{DatagramTransport, FrameErrors, RadioAddress};
pub use error::StorageError;
pub use hooks::{FaultCounters, Hooks, IndicatorState, Memory};
pub use parts::is_heard;
pub use run::run;
pub use serial_line::SerialLine;
