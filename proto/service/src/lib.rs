//! Foundation of the Quiver services: encrypted state files, the secrets that open them, layered
//! configuration, logging, shutdown, the local socket through which a command line talks to the running
//! process, and the HTTP endpoint of metrics and health.
//!
//! Nothing in here knows a role's machine or a message. Randomness comes from the operating system: this
//! crate is on the driver's side of the line.

pub mod arguments;
pub mod armour;
pub mod clock;
pub mod config;
pub mod control;
pub mod deployment_file;
#[cfg(feature = "drone")]
pub mod drone;
pub mod duration;
mod error;
pub mod exit;
pub mod keyring;
pub mod line_output;
pub mod logging;
pub mod monitoring;
pub mod node_state;
pub mod operator_key;
pub mod own_memory;
pub mod private_file;
pub mod secrets;
pub mod shutdown;
pub mod state_file;
pub mod suite;
pub mod terminal;
pub mod token_directory;
pub mod token_file;

pub use error::{Error, Result};
pub use exit::Exit;
