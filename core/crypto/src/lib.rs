//! Symmetric cryptography of Quiver: erased secrets, domain-separated hashing and key derivation,
//! authenticated encryption, and the canonical encoding of what is hashed, signed or stored.
//!
//! | module | what it has |
//! |---|---|
//! | [`canonical`] | the one byte encoding behind hashes, signatures and files, written and read strictly |
//! | [`aead`] | ChaCha20-Poly1305 |
//! | [`sha256`] | SHA-256: by the crate `sha2`, on a Cortex-M4 in assembly |
//! | (root) | [`Secret`], [`Hasher`] (SHA-256), [`Sha512`], [`prf`] (HMAC-SHA-256), [`extract`] (HKDF), [`expand_message`] (RFC 9380), [`ct_eq`], [`erase`], [`erasing_stack`] |
//!
//! `lp(x)` means a four-byte big-endian length followed by x. No input shares a hash with another by
//! accident: every hash starts with its domain, every chained key comes from a labelled PRF.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod aead;
pub mod canonical;

mod expand_message;
mod hash;
mod hex;
mod kdf;
mod secret;
mod sha512;
mod stack_wipe;

pub use expand_message::expand_message;
pub use hash::{Digest, Hasher};
pub use hex::Hex;
pub use kdf::{PrfKey, extract, prf, prf_each};
/// SHA-256: by the crate `sha2`, on a Cortex-M4 in assembly.
pub use quiver_sha256 as sha256;
pub use quiver_sha256::erase;
pub use secret::{Secret, WrongLength, ct_eq};
pub use sha512::{Sha512, hmac_sha512};
pub use stack_wipe::erasing_stack;
/// Bytes that are overwritten when dropped.
pub use zeroize::Zeroizing;
