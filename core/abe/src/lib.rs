//! Attribute-based key encapsulation: a holder of attributes that satisfy the policy obtains a secret of 32
//! bytes.
//!
//! | scheme | source | policy in | attributes | opens with |
//! |---|---|---|---|---|
//! | [`Gpsw06`] | Goyal, Pandey, Sahai, Waters, CCS 2006, eprint 2006/309 | the key | a closed list | one pairing per leaf used |
//! | [`FabeoKp`] | Riepel, Wee, CCS 2022, eprint 2022/1415, figure 1 right | the key | any | two pairings |
//! | [`FabeoCp`] | the same, figure 1 left | the ciphertext | any | three pairings |
//!
//! All of them are [`Scheme`]s: one set of functions, one set of encodings, one suite of tests. `FabeoKp` is
//! for data that a sensor seals and `FabeoCp` for orders that are sealed to a role; `Gpsw06` is the reference
//! that others are measured by. A broken one, YCT14, is a crate of its own for measurements alone: `quiver-yct14`.
//!
//! | module | what it has |
//! |---|---|
//! | [`scheme`] | what every scheme is to its users |
//! | [`encoding`] | parameters, keys, ciphertexts, and what their encodings have in common |
//! | [`terms`], [`universe`], [`authority`] | what keys and ciphertexts say; which attributes there are; whose they are |
//! | [`gpsw06`], [`fabeo22`] | the schemes, with their algebra |
//! | [`scheme_algebra`] | the algebra that a scheme consists of, for schemes of other crates, too |
//! | [`envelope`] | messages and files on top of a scheme: tampering is noticed, senders sign, one key serves many messages |
//! | [`error`] | why something is refused |
//!
//! # Limits
//! The encapsulations resist chosen-plaintext attacks only, and a ciphertext without its policy or with
//! another one is not recognised as such but opens to another secret. Envelopes, which re-encapsulate and
//! compare, do recognise it.
//!
//! **Not constant-time**: the arithmetic of the pairing groups is not (see `quiver-pairing`), and policies
//! and attributes, which are public, decide which steps are taken.
//!
//! ```
//! use quiver_abe::{FabeoCp, Scheme, Universe};
//! use quiver_policy::{AccessTree, AttributeSet, Schema};
//! # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! # let mut rng = ChaCha20Rng::seed_from_u64(1);
//!
//! let schema = Schema::new();
//! let (parameters, master) = FabeoCp::setup(&Universe::Open, &mut rng)?;
//! let scout = FabeoCp::derive(&parameters, &master, &AttributeSet::parse("scout, sector:7", &schema)?, &mut rng)?;
//!
//! let policy = AccessTree::parse("scout and sector:7", &schema)?;
//! let (ciphertext, secret) = FabeoCp::encapsulate(&parameters, &policy, &mut rng)?;
//! assert_eq!(FabeoCp::decapsulate(&parameters, &scout, &ciphertext)?, secret);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod authority;
mod elements;
pub mod encoding;
pub mod envelope;
pub mod error;
pub mod fabeo22;
pub mod gpsw06;
pub mod scheme;
pub mod scheme_algebra;
mod shares;
pub mod terms;
pub mod universe;

/// True in images for boards, which lack flash more than time: there are fewer ways to the same results, and no tables.
const IS_SMALL: bool = cfg!(feature = "small");

pub use authority::AuthorityFingerprint;
pub use encoding::{Ciphertext, Key, MasterKey, Parameters};
pub use error::AbeError;
pub use fabeo22::{FabeoCp, FabeoKp};
pub use gpsw06::Gpsw06;
pub use scheme::{HasTerms, PublicEncoding, Scheme, SecretEncoding};
pub use terms::Terms;
pub use universe::{MAX_UNIVERSE, Universe};
