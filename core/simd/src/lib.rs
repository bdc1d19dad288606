//! Arithmetic for certain processors, which is asked for at run time: elliptic curves on vector lanes, eight
//! points at once (AVX-512 IFMA) or four (AVX2 and FMA, X25519 alone).
//!
//! | module | what it computes | without the vector unit |
//! |---|---|---|
//! | [`x25519`] | one secret scalar times thousands of points of Curve25519 | curve25519-dalek, or `salty` on Cortex-M |
//! | `bls12_381` (x86-64) | products and sums of points of G1, Miller loops | nothing; `quiver-pairing` computes it |
//!
//! Below both: `ifma` and `avx2`, each the detection and one `unsafe` call, and `words`, loading, storing and
//! multiply-add.
//!
//! # Choosing instruction sets
//! With the feature `std`, the environment variable `QUIVER_SIMD` forbids what newer kinds of processors have,
//! so that all paths can be tested and measured on one machine. It is read once; other values are ignored. All
//! paths compute the same in constant time: the variable changes a process's speed alone.
//!
//! | `QUIVER_SIMD` | allows | as on |
//! |---|---|---|
//! | not set | all | |
//! | `avx2` | AVX2, FMA | Zen 3, Skylake |
//! | `serial` | nothing of this crate's own: the libraries, which ask the processor themselves | |
//!
//! # Time
//! `cargo test -p quiver-simd --test timing --release -- --ignored --test-threads 1` measures whether it depends on
//! scalars; "Measured time" below has what was found, which for BLS12-381 is a difference.
//!
//! # Features
//! | feature | what it adds |
//! |---|---|
//! | `std` (default) | looks for the vector unit at run time; without it, it is used only if the build's target has it |
//! | `bls12-381` (default) | the module `bls12_381`, on x86-64 |
//! | `x25519` (default) | the module `x25519` |
//! | `salty` | single points of `x25519` by `salty`, in assembly on Cortex-M4, M7 and M33 |
#![cfg_attr(not(test), no_std)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]
#![doc = include_str!("../REVIEW.md")]

extern crate alloc;

#[allow(dead_code, unused_imports, reason = "not every feature needs every kind of processor")]
mod allowed;
#[cfg(target_arch = "x86_64")]
#[allow(dead_code, reason = "one feature needs them")]
mod avx2;
#[cfg(all(target_arch = "x86_64", feature = "bls12-381"))]
pub mod bls12_381;
#[cfg_attr(not(feature = "std"), path = "detection/target.rs")]
#[allow(dead_code, reason = "not every feature needs every kind of processor")]
mod detection;
#[cfg(target_arch = "x86_64")]
#[allow(dead_code, reason = "without both features nothing needs it")]
mod ifma;
#[cfg(target_arch = "x86_64")]
#[allow(dead_code, reason = "not every feature needs every operation")]
mod words;
#[cfg(feature = "x25519")]
pub mod x25519;
