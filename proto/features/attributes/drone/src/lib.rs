//! Attributes in the programs of edges and leaders: attribute keys as shown, and envelopes as files and as messages of
//! the group.
//!
//! A program lists [`AttributeFeature`] among its features; nothing else of it names this crate.
//!
//! | module | what it has |
//! |---|---|
//! | [`feature`] | the hooks into a program: subcommands, their answers, and the part of its machine |
//! | [`abe`] | attribute keys as shown |
//! | [`envelope`] | envelopes sealed and opened: [`Holder`](envelope::Holder) |
//! | [`arguments`], [`job`] | what the subcommand `envelope` is given, and asks of the running service |
//! | [`event_line`] | envelopes of the group, as printed |

pub mod abe;
pub mod arguments;
mod authority;
pub mod envelope;
mod error;
pub mod event_line;
pub mod feature;
mod files;
pub mod job;

pub use error::{Error, Result};
pub use feature::AttributeFeature;
