//! What a KGC hands to one drone on request: attribute keys, certified fields, shares of condition keys.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

#[cfg(any(feature = "abe", feature = "abke"))]
pub mod attributes;
#[cfg(feature = "ibe")]
pub mod release;
