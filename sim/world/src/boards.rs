//! Broadcasts as boards make them: coded if they take several frames.
//!
//! The code is of `quiver-link`, which boards and gateways run.

mod erasure_code;

pub use self::erasure_code::{Coding, ObservedLoss};
