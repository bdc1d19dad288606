//! Access trees: policies as threshold trees over conditions.

use alloc::vec::Vec;

use crate::arena::Arena;
use crate::{AttributeName, AttributeSet, Condition, Formula, PolicyError, PolicyNode, Schema, text};

mod builder;
mod display;
mod encoding;
mod satisfiable;

pub use builder::Builder;

/// A policy that was parsed, built or decoded, and with it checked: at most [`MAX_LEAVES`](crate::MAX_LEAVES)
/// leaves once its comparisons are formulas over bits, at most [`MAX_DEPTH`](crate::MAX_DEPTH) gates on a
/// path, every threshold between 1 and the number of children, no leaf twice under one gate, one kind per
/// name.
///
/// [`Display`](core::fmt::Display) prints text that parses to the same tree under any schema that declares
/// its integers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessTree(Arena<Condition>);

impl AccessTree {
    /// Parses a policy.
    ///
    /// # Errors
    /// A [`PolicyError`] with its place, whatever is wrong.
    pub fn parse(policy: &str, schema: &Schema) -> Result<Self, PolicyError> {
        text::policy(policy, schema)
    }

    /// Parses a policy that somebody writes: one that was written is read by [`parse`](Self::parse), and nobody may
    /// be able to satisfy it.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and [`Fault::Contradiction`](crate::Fault::Contradiction) if comparisons of one integer
    /// contradict each other.
    pub fn parse_new(policy: &str, schema: &Schema) -> Result<Self, PolicyError> {
        let tree = Self::parse(policy, schema)?;
        satisfiable::check(&tree)?;
        Ok(tree)
    }

    /// Starts a tree.
    #[must_use]
    pub const fn builder() -> Builder {
        Builder::new()
    }

    /// The nodes in post-order: children before parents, the root last. There is at least one.
    #[must_use]
    pub fn nodes(&self) -> &[PolicyNode] {
        self.0.nodes()
    }

    /// The leaves, from left to right.
    #[must_use]
    pub fn leaves(&self) -> &[Condition] {
        self.0.leaves()
    }

    /// Returns true if a holder of `set` satisfies the policy, evaluated as it is written, without its bits.
    #[must_use]
    pub fn satisfied_by(&self, set: &AttributeSet) -> bool {
        self.0.satisfied(|condition| set.fulfils(condition))
    }

    /// The formula over atoms that comparisons come down to.
    #[must_use]
    pub fn formula(&self) -> Formula {
        Formula::of(&self.0)
    }

    /// The integers that the policy compares, as a schema with which its text parses.
    #[must_use]
    pub fn schema(&self) -> Schema {
        let mut schema = Schema::new();
        for condition in self.leaves() {
            if let Some(kind) = condition.kind() {
                // Declared before means declared alike: one name has one kind in a tree.
                let _ = schema.declare_integer(condition.name().clone(), kind);
            }
        }
        schema
    }

    /// The names of its attributes, sorted, each once.
    #[must_use]
    pub fn names(&self) -> Vec<&AttributeName> {
        let mut names: Vec<_> = self.leaves().iter().map(Condition::name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
