//! Threshold secret sharing: any t of n holders recover the secret, fewer learn nothing.
//!
//! Source: Shamir, *How to Share a Secret*, CACM 1979; Feldman, *A Practical Scheme for Non-interactive
//! Verifiable Secret Sharing*, FOCS 1987. Mathematics only: no I/O, randomness is an argument. Generic over a
//! prime [`Field`], and for commitments over a [`PrimeOrderGroup`] of its order.
//!
//! | symbol | here |
//! |---|---|
//! | q(x), of degree t − 1, q(0) the secret | [`Polynomial`] |
//! | i, q(i) | [`SecretShare`]: index 1 or above, and value |
//! | λ_i | [`lagrange_at_zero`] in the field, [`rational_lagrange`] as fractions of small integers |
//! | g^a_0, …, g^a_(t−1) | [`PolynomialCommitment`] |
//!
//! Additions and multiplications over ristretto255 take constant time; arkworks' over BLS12-381 do not.
//! Indices, thresholds and commitments are public.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

mod batch;
#[cfg(feature = "bls12-381")]
mod bls12381;
pub mod commitment;
pub mod error;
pub mod field;
pub mod group;
pub mod lagrange;
#[cfg(feature = "pairing")]
mod pairing;
pub mod polynomial;
#[cfg(feature = "ristretto255")]
mod ristretto255;
pub mod share;

pub use commitment::PolynomialCommitment;
pub use error::{Error, InvalidShares};
pub use field::Field;
pub use group::PrimeOrderGroup;
pub use lagrange::{Rational, lagrange_at_zero, rational_lagrange};
pub use polynomial::Polynomial;
pub use share::{SecretShare, UnverifiedShare, combine, split};

/// Shares that a secret may have, and coefficients that a polynomial may have.
pub const MAX_SHARES: usize = 1_024;
