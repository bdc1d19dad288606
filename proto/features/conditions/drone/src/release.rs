//! Keys of conditions: collected from the KGCs, kept in the drone's state file, and handed to the subcommands
//! that need them.
//!
//! | module | what it has |
//! |---|---|
//! | [`identity_keys`] | the keys and the statement about the master key in the drone's state file |
//! | [`collection`] | one collection: a node of its own, a [`Collector`](quiver_key_release::Collector), what is kept |
//! | [`key_call`] | what subcommands ask of a running service, and the answers |
//! | [`arguments`] | the subcommands `ibe key`, `ibe list` and `ibe authority` |

pub mod arguments;
pub mod collection;
pub mod identity_keys;
pub mod key_call;
#[cfg(test)]
mod tests;

pub use arguments::{IbeCommand, IbeOptions, KeyArgs, read_authority};
pub use identity_keys::IdentityKeys;
pub use key_call::{KeyCall, KeyLine, KeyReport};

/// Name of the subcommand, and of its requests.
pub(crate) const NAME: &str = "ibe";
