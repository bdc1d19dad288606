//! Elliptic-curve arithmetic on vector lanes, eight points at once (AVX-512 IFMA) or four (AVX2 and FMA, X25519
//! alone); which processor has them is asked at run time.
//!
//! | module | what it computes | without the vector unit |
//! |---|---|---|
//! | [`x25519`] | one secret scalar times thousands of points of Curve25519 | curve25519-dalek, or `salty` on Cortex-M |
//! | `bls12_381` (x86-64) | products and sums of points of G1, Miller loops | nothing; `quiver-pairing` computes it |
//!
//! Below both: `ifma` and `avx2`, each the detection and one `unsafe` call, and `words`, loading, storing and
//! multiply-add.
//!
//! # Features
//! | feature | what it adds |
//! |---|---|
//! | `std` (default) | looks for the vector unit at run time; without it, it is used only if the build's target has it |
//! | `bls12-381` (default) | the module `bls12_381`, on x86-64 |
//! | `x25519` (default) | the module `x25519` |
//! | `salty` | single points of `x25519` by `salty`, in assembly on Cortex-M4, M7 and M33 |
#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]
#![doc = include_str!("../REVIEW.md")]

extern crate alloc;

#[cfg(all(target_arch = "x86_64", feature = "x25519"))]
mod avx2;
#[cfg(all(target_arch = "x86_64", feature = "bls12-381"))]
pub mod bls12_381;
#[cfg(all(target_arch = "x86_64", any(feature = "bls12-381", feature = "x25519")))]
mod ifma;
#[cfg(all(target_arch = "x86_64", any(feature = "bls12-381", feature = "x25519")))]
mod words;
#[cfg(feature = "x25519")]
pub mod x25519;
