//! Keys of conditions: collected from the KGCs, kept in the drone's state file, and handed to the subcommands that need
//! them.
//!
//! | module | what it has |
//! |---|---|
//! | [`kept`] | the keys and the statement about the master key in the drone's state file |
//! | [`collecting`] | one collection: a node of its own, a [`Collector`](quiver_role::release::Collector), what is kept |
//! | [`call`] | what subcommands ask of a running service, and the answers |
//! | [`arguments`] | the subcommands `ibe key`, `ibe list` and `ibe authority` |

pub mod arguments;
pub mod call;
pub mod collecting;
pub mod kept;
#[cfg(test)]
mod tests;

pub use arguments::{IbeCommand, IbeOptions, KeyArgs, read_authority};
pub use call::{KeyCall, KeyLine, KeyReport};
pub use kept::IdentityKeys;
