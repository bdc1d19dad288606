//! Quorums of KGCs: any t of n key generation centres issue keys, fewer than t can do nothing.
//!
//! Source: FROST, RFC 9591, and the key generation of Komlo, Goldberg, *FROST: Flexible Round-Optimized
//! Schnorr Threshold Signatures*, SAC 2020. The audited crate `frost-core` computes; this one binds it to
//! AinQ, whose partial keys are Schnorr signatures with FROST's challenge, and adds what a protocol between
//! strangers needs: bounds, encodings, versions, an echo round, and a name to blame for whatever goes wrong.
//!
//! Mathematics only: no I/O, no clock, no logging. Randomness is an argument.
//!
//! | module | what it has |
//! |---|---|
//! | [`suite`] | which of AinQ's groups a quorum can work over, and how to add one |
//! | [`parameters`] | n and t |
//! | [`share`], [`public`] | a KGC's secret share; what everybody knows |
//! | [`signing`] | partial keys and statements, by t KGCs and a coordinator whom nobody trusts |
//! | [`dkg`] | making the master secret together, and refreshing its shares |
//! | [`repair`] | giving a KGC its lost share again |
//! | [`dealer`] | shares from one who knows the secret |
//!
//! | symbol | here |
//! |---|---|
//! | x, P_pub = x·P | the master secret, which exists nowhere; [`PublicShares::master`] |
//! | x_j, Y_j = x_j·P | [`SecretShare`]; [`PublicShares::share`] |
//! | (d_j, e_j), (D_j, E_j) | [`SigningNonces`], [`Commitment`] |
//! | z_j | [`SignatureShare`] |
//! | (s_i, R_i) | [`UnverifiedPartialKey`](quiver_ainq::UnverifiedPartialKey) |
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod dealer;
pub mod dkg;
pub mod error;
pub mod parameters;
pub mod public;
pub mod repair;
pub mod share;
pub mod signing;
pub mod suite;

pub use error::{Error, RefusedStep};
pub use parameters::{MAX_MEMBERS, QuorumParameters};
pub use public::PublicShares;
pub use share::SecretShare;
pub use signing::{Commitment, SignatureShare, SigningNonces, SigningPackage};
pub use suite::QuorumSuite;
