//! The bench shell: the same benchmarks, with the same output, on a board, in emulation and natively.
//!
//! A console hands a line to [`run`] together with what the target is ([`About`]), what it can do ([`BenchTarget`]:
//! a clock, and where there is one a counter of instructions) and somewhere to write. The output names board,
//! MCU and parameters, the number of iterations, and total, average, minimum and maximum in microseconds.
//!
//! ```text
//! > bench aes-cbc 1000 4
//! Board: nrf52840dk
//! MCU: nRF52840
//! Benchmark: aes-cbc
//! Parameters: 4 blocks
//! Iterations: 1000
//! Total: 189009.201 us
//! Average: 189.009 us
//! Minimum: 188.120 us
//! Maximum: 196.313 us
//! ```
//!
//! The shape, and the commands `aes-ecb`, `aes-cbc` and `rsa`, are those of a shell for RIOT whose published
//! figures `cargo lab reproduce board` sets beside these. `bench` alone says what there is.
//!
//! | module | what it has |
//! |---|---|
//! | [`shell`] | a line in, its benchmark's output out |
//! | [`ainq`] | what an edge computes, and the scripts that it hears |
//! | [`host`] | what a target provides |
//! | `large` | pairings, attribute-based encryption with random access trees, RSA; behind the feature `large` |
//! | [`transcript`], [`figures`] | the output read again; recorded figures beside new ones |
//! | `native` | the shell on a host, behind the feature `std` |
//! | [`estimate`] | milliseconds at 64 MHz from counted instructions |
//! | [`error`] | why there is no figure |
//!
//! All keys and messages come from a fixed seed, so that every run computes the same and no figure depends on
//! luck; nothing here touches a drone's own keys. Iterations and sizes are bounded, a benchmark ends after
//! ten minutes at the latest, and whatever would not fit into the heap is refused beforehand.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod ainq;
mod arguments;
mod datagrams;
pub mod error;
pub mod estimate;
pub mod figures;
pub mod host;
mod kem;
#[cfg_attr(not(feature = "large"), path = "large/absent.rs")]
pub mod large;
#[cfg(feature = "std")]
pub mod native;
mod runner;
pub mod shell;
mod statistics;
mod symmetric;
pub mod transcript;

pub use error::BenchError;
pub use host::{About, BenchTarget, Peaks};
pub use shell::run;
