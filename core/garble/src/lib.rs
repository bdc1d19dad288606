//! Policies over integers as Boolean circuits, and garbling of circuits.
//!
//! | module | what it has |
//! |---|---|
//! | [`circuit`] | circuits of XOR, AND and NOT in topological order; evaluation in the clear; statistics |
//! | [`builder`] | making circuits: constants folded, equal gates shared |
//! | [`number`] | integers of growing width over a builder: sums, products, squares, comparisons, never an overflow |
//! | [`policy`] | fields, policy text, and policies compiled to circuits |
//! | [`bristol`] | circuits as files in Bristol Fashion |
//! | [`program`] | a circuit ordered for garbling, its wires in as few slots as are live at once |
//! | [`label`], [`garbler`], [`evaluator`], [`scheme`] | garbling with half gates, with and without privacy |
//!
//! Garbling follows Zahur, Rosulek, Evans, *Two Halves Make a Whole* (Eurocrypt 2015, eprint 2014/756): free
//! XOR, two ciphertexts per AND, or one where the evaluator knows all inputs ([`PrivacyFree`]). The hash is
//! the tweakable one of Guo, Katz, Wang, Yu, *Efficient and Secure Multiparty Computation from Fixed-Key
//! Block Ciphers* (S&P 2020, eprint 2019/074) over AES-128, with a key of each run's own that changes every
//! 4,096 gates, as Guo, Katz, Wang, Weng, Yu (Crypto 2020, eprint 2019/1168) ask for when many circuits are
//! garbled.
//!
//! ```
//! use quiver_garble::policy::{Policy, Schema};
//!
//! let schema = Schema::parse("x: i64, y: i64, battery: u8")?;
//! let policy = Policy::compile("(x - 1200)^2 + (y + 300)^2 < 500^2 and battery >= 20", &schema)?;
//! let drone = schema.encode(&[("x", 1000), ("y", -100), ("battery", 80)])?;
//! assert_eq!(policy.circuit().evaluate(&drone)?, [true]);
//! # Ok::<(), quiver_garble::Error>(())
//! ```
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

mod block;
pub mod bristol;
pub mod builder;
pub mod circuit;
pub mod error;
pub mod evaluator;
pub mod garbler;
mod hash;
pub mod label;
pub mod number;
pub mod policy;
pub mod program;
pub mod scheme;
mod sum;
mod walk;

pub use builder::{Bit, Builder};
pub use circuit::{Circuit, Gate, Statistics, Wire};
pub use error::{Error, Result};
pub use evaluator::Evaluator;
pub use garbler::Garbler;
pub use label::{Label, LabelPair};
pub use number::Number;
pub use program::{GarblingProgram, Operand, ScheduledGate};
pub use scheme::{GarblingScheme, HalfGates, PrivacyFree};

/// Gates a circuit may have, free ones and outputs included.
pub const MAX_GATES: usize = 1 << 24;
/// Input bits a circuit may have.
pub const MAX_INPUTS: usize = 1 << 16;
/// Output bits a circuit may have.
pub const MAX_OUTPUTS: usize = 1 << 16;
