//! The ladder of salty, with field arithmetic in assembly on Cortex-M4, M7 and M33.

pub(super) use salty::agreement::x25519 as multiply;
