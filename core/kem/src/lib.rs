//! ML-KEM (FIPS 203) by its parameter sets: names, sizes, and a seam over one implementation.
//!
//! | module | what it has |
//! |---|---|
//! | [`setting`] | [`KemSetting`], what a deployment says; [`KemSet`], the parameter sets, with sizes in bytes |
//! | `ml_kem` | key generation, encapsulation and decapsulation out of given randomness |
//! | `library` (feature `ml-kem`) | the implementation for hosts, by a crate |
//! | `in_place` (without it) | the implementation for boards, in 5 KB of stack |
//!
//! No I/O, no clock, no randomness of its own. See the README for why there are two implementations, and for
//! what they do not promise.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

#[allow(dead_code, reason = "hosts have the crate's")]
mod in_place;
#[cfg_attr(not(feature = "ml-kem"), path = "library/absent.rs")]
mod library;
mod ml_kem;
pub mod setting;

pub use self::ml_kem::{DecapsulationKey, KemError, encapsulate};
pub use self::setting::{KemSet, KemSetting};

/// Bytes of the randomness that a key pair is made of: d ‖ z of FIPS 203, 7.1.
pub const SEED_LEN: usize = 64;
/// Bytes of the randomness of an encapsulation: m of FIPS 203, 7.2.
pub const MESSAGE_LEN: usize = 32;
/// Bytes of the secret that both sides come by.
pub const SHARED_LEN: usize = 32;
