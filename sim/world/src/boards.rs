//! Broadcasts as boards make them: coded if they take several frames, and repeated by members to those out of the
//! leader's range.
//!
//! Both are of `quiver-link`, which boards and gateways run.

mod erasure_code;
mod repeats;

pub use self::erasure_code::{Coding, ObservedLoss};
pub(crate) use self::repeats::Repeating;
pub use self::repeats::Repeats;
