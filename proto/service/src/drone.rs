//! What the programs of edges and leaders share beyond files: attribute keys, fetched from the KGC and kept, and
//! what is sealed and opened with them.
//!
//! | module | what it has |
//! |---|---|
//! | [`abke`] | fields that are certified; the subcommands `abke fetch` and `abke status` |
//! | [`keys`] | the keyring in the drone's state file, shared by the tasks of one process |
//! | [`fetch`] | one fetch: a node of its own, a [`Fetcher`](quiver_role::attributes::Fetcher), the keyring |
//! | [`envelope`] | sealing and opening files; the subcommands `envelope seal`, `open` and `send` |
//! | [`ibe`] | files encrypted to conditions; the subcommands `ibe encrypt`, `decrypt`, `identity` and `recipient` |
//! | [`subcommands`] | the subcommand `ibe` of a program: its running service is asked, or the command collects by itself |
//! | [`release`] | keys of conditions, collected from the KGCs; the subcommands `ibe key`, `list` and `authority` |
//! | [`health`] | how the running service is doing, for the endpoint of metrics and health |
//! | [`abe`] | the subcommands `abe fetch` and `abe list` |

pub mod abke;

pub mod abe;
mod atomic_file;
pub mod envelope;
mod error;
pub mod fetch;
pub mod health;
pub mod ibe;
pub mod keys;
pub mod release;
pub mod running;
pub mod subcommands;

pub use error::{Error, Result};
