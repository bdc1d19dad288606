//! Encryption to conditions in the programs of edges and leaders: files that open when a condition is met, and the
//! keys of conditions, which a drone collects from the KGCs.
//!
//! A program lists [`ConditionFeature`] among its features; nothing else of it names this crate.
//!
//! | module | what it has |
//! |---|---|
//! | [`feature`] | the hook into a program: its subcommand, and the answers of a running service |
//! | [`ibe`] | files |
//! | [`release`] | keys of conditions: collected, kept, handed to subcommands |

mod error;
pub mod feature;
pub mod ibe;
pub mod release;

pub use error::{Error, Result};
pub use feature::ConditionFeature;
