//! SHA-256 (FIPS 180-4), HMAC on it (RFC 2104), and erasing what they were fed with.
//!
//! The hash is that of the crate `sha2`, by the same traits, but on microcontrollers with Thumb-2: there it is 1 KB of assembly in place of 7 KB
//! that a compiler makes, and takes a fifth less instructions. That both give the same, and what is erased, is tested in emulation
//! (`embedded/emulation/tests/assembly.rs`).
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

#[cfg(all(target_arch = "arm", target_os = "none"))]
mod cortex_m;
mod hmac;

#[cfg(all(target_arch = "arm", target_os = "none"))]
pub use cortex_m::{Sha256, Sha256Core, erase};
pub use hmac::Hmac;
#[cfg(not(all(target_arch = "arm", target_os = "none")))]
pub use sha2::Sha256;
pub use sha2::digest::Digest;

/// Overwrites a secret with zeros, which no compiler leaves out.
#[cfg(not(all(target_arch = "arm", target_os = "none")))]
pub fn erase(bytes: &mut [u8]) {
    zeroize::Zeroize::zeroize(bytes);
}
