//! Attributes, policies over them, and the threshold formulas that attribute-based encryption works on.
//!
//! A *policy* is text, [`AccessTree`] is its parsed form, and [`Formula`] is the form in which every
//! comparison has become a formula over the bits of the integer it compares (Bethencourt, Sahai, Waters,
//! *Ciphertext-Policy Attribute-Based Encryption*, IEEE S&P 2007, section 4.3, with the bits' width bound
//! into the attribute).
//!
//! | module | what it has |
//! |---|---|
//! | [`name`], [`integer_type`], [`schema`] | names; what integers there are and how wide; what a deployment declares |
//! | [`attribute`], [`set`] | one atom of a scheme; what somebody or something has |
//! | [`condition`], [`tree`] | leaves of a policy; policies |
//! | [`formula`], [`selection`] | monotone threshold formulas over atoms; their cheapest satisfying subsets |
//! | [`arena`] | trees without pointers: nodes in post-order, walked by loops |
//! | [`error`] | what can be wrong, and at which column |
//!
//! ```
//! use quiver_policy::{AccessTree, AttributeSet, IntegerType, Schema};
//!
//! let schema = Schema::new().with_integer("altitude", IntegerType::unsigned(16)?)?;
//! let tree = AccessTree::parse("(scout and altitude >= 120) or 2 of (thermal, lidar, radar)", &schema)?;
//! let formula = tree.formula();
//!
//! let scout = AttributeSet::parse("scout, altitude = 150", &schema)?;
//! assert!(formula.satisfied_by(&scout));
//! assert!(!formula.satisfied_by(&AttributeSet::parse("scout, altitude = 119", &schema)?));
//! # Ok::<(), quiver_policy::PolicyError>(())
//! ```
//!
//! The language: `and` binds tighter than `or`, `k of (…, …)` is a threshold, parentheses group; integers and
//! dates are compared with `>= > <= < = !=`. There is no negation: what a drone lacks cannot be proved by a
//! key. A name that is not made of `A-Z a-z 0-9 _ . : - /` alone, or that is a keyword, stands in quotation
//! marks.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod arena;
pub mod attribute;
pub mod condition;
pub mod error;
pub mod formula;
pub mod integer_type;
pub mod name;
pub mod schema;
pub mod selection;
#[cfg(feature = "serde")]
mod serde;
pub mod set;
mod text;
pub mod tree;

pub use arena::{PolicyNode, ThresholdGate};
pub use attribute::Attribute;
pub use condition::{Comparison, Condition, Operator};
pub use error::{Fault, PolicyError, TextPosition};
pub use formula::{Formula, Leaf};
pub use integer_type::IntegerType;
pub use name::AttributeName;
pub use schema::Schema;
pub use selection::{SelectedGate, Selection};
pub use set::{AttributeSet, Value};
pub use tree::{AccessTree, Builder};

/// Bytes a policy or a list of attributes may have as text.
pub const MAX_TEXT: usize = 65_536;
/// Leaves a policy may have once its comparisons are formulas over bits.
pub const MAX_LEAVES: usize = 1_024;
/// Gates above a leaf, and parentheses around it, that a policy may have.
pub const MAX_DEPTH: usize = 64;
/// Nodes, gates and leaves together, that a policy may have.
pub const MAX_NODES: usize = 4_096;
/// Atoms an attribute set may have: one per plain attribute, as many as it has bits per integer.
pub const MAX_ATOMS: usize = 1_024;
/// Entries a schema may have, integers and plain attributes together.
pub const MAX_DECLARED: usize = 1_024;
