//! BLS12-381: two groups, the pairing between them, hashing to them, and one encoding for each element, over
//! arkworks or blst.
//!
//! All groups have the prime order r, 255 bits long, and are written additively, the target group too.
//!
//! | type | what it is | encoded |
//! |---|---|---|
//! | [`Scalar`] | an integer modulo r | 32 bytes, big-endian |
//! | [`G1`] | a point over Fp | 48 bytes, compressed |
//! | [`G2`] | a point over Fp² | 96 bytes, compressed |
//! | [`Gt`] | what a pairing gives, in Fp¹² | 576 bytes |
//!
//! Points are encoded as Zcash does it; a decoded value is checked to be the one encoding of an element of
//! order r. Hashing follows RFC 9380 with SHA-256 (`BLS12381G1_XMD:SHA-256_SSWU_RO_` and the like of G2).
//!
//! ```
//! use quiver_pairing::{G1, G2, Group, Scalar, pairing, product_is_one};
//!
//! // A signature of Boneh, Lynn and Shacham: e(signature, g2) = e(H(message), key).
//! let secret = Scalar::from(12345_u64);
//! let key = G2::generator() * secret;
//! let hashed = G1::hash("EXAMPLE_XMD:SHA-256_SSWU_RO_", &[b"message"]);
//! let signature = G1::decode((hashed * secret).encode().as_ref())?;
//! assert!(product_is_one(&[(signature, -G2::generator()), (hashed, key)]));
//! assert_eq!(pairing(&hashed, &key), pairing(&hashed, &G2::generator()) * secret);
//! # Ok::<(), quiver_pairing::PairingError>(())
//! ```
//!
//! # Time
//! On [`backend::Active`] = `Blst`, multiplying a point by a scalar is constant-time, G1's generator too, and
//! so is encoding the result. Nothing else is, on any back end: not combinations of many points, tables of a
//! fixed base, powers in the target group; and over arkworks nothing at all.
//!
//! # Features
//! * `std` (default): a host, which means `blst`.
//! * `blst`: arithmetic by blst on x86-64 and aarch64, which takes a C compiler to build. Elsewhere it
//!   changes nothing.
//! * `armv7em`: for images that run on a Cortex-M4 or above: the same arkworks code over a multiplication in
//!   assembly, in two thirds of the time. Elsewhere it computes the same in the same time. The image chooses
//!   it; no C compiler.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]
#![doc = include_str!("../REVIEW.md")]

extern crate alloc;

pub mod backend;

mod curve;
mod curve_point;
mod encoding;
mod error;
mod fixed_base;
mod group;
mod gt;
mod interleaved;
mod many;
mod pairing;
mod parameters;
mod point;
mod prepared;
mod recoding;
mod scalar;

pub use curve::{Curve, G1Curve, G2Curve};
pub use curve_point::{CurvePoint, G1_COFACTOR, UNCOMPRESSED_LEN};
pub use error::PairingError;
pub use fixed_base::FixedBase;
pub use group::Group;
pub use gt::Gt;
pub use pairing::{pairing, pairing_product, product_is_one};
pub use point::{G1, G2, Point};
pub use prepared::Prepared;
pub use scalar::{
    SCALAR_LEN, Scalar, hash_to_scalar, scalar_decode, scalar_encode, scalar_from_wide, scalar_random,
};
