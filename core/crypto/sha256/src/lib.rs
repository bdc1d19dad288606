//! SHA-256 (FIPS 180-4), HMAC-SHA-256 (RFC 2104), and the erasure of their inputs.
//!
//! The hash is that of the crate `sha2`, by the same traits, but on a Cortex-M4: there it is 1 KB of assembly
//! in place of 7 KB of compiled code, and takes a quarter fewer instructions. That both give the same, and
//! what is erased, is tested in emulation (`embedded/emulation/tests/assembly.rs`).
//!
//! A crate of its own within `quiver-crypto`, which exports it as `quiver_crypto::sha256`: boards compile
//! this for speed and the rest for size.

#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

#[cfg(all(target_arch = "arm", target_os = "none"))]
mod cortex_m;
mod hmac;
#[cfg(not(all(target_arch = "arm", target_os = "none")))]
mod host;
mod padded;

#[cfg(all(target_arch = "arm", target_os = "none"))]
use cortex_m as backend;
#[cfg(not(all(target_arch = "arm", target_os = "none")))]
use host as backend;

pub use backend::{Sha256, erase};
pub use hmac::Hmac;
pub use sha2::digest::Digest;
