//! Monotone threshold formulas over atoms, over which schemes share a secret.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::arena::Arena;
use crate::{Attribute, AttributeSet, Condition, PolicyNode, Selection};

mod lowering;

pub(crate) use lowering::leaves_of;

/// A leaf of a formula.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leaf {
    attribute: Attribute,
    use_number: usize,
}

impl Leaf {
    /// The atom.
    #[must_use]
    pub const fn attribute(&self) -> &Attribute {
        &self.attribute
    }

    /// Number of leaves to the left with the same atom.
    #[must_use]
    pub const fn use_number(&self) -> usize {
        self.use_number
    }
}

/// A monotone threshold formula over atoms, with at most [`MAX_LEAVES`](crate::MAX_LEAVES) leaves.
///
/// To share a secret, walk [`nodes`](Self::nodes) from the back: the root is the last, and every gate comes
/// before its children.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Formula {
    arena: Arena<Leaf>,
    uses: usize,
}

impl Formula {
    pub(crate) fn of(tree: &Arena<Condition>) -> Self {
        let mut counts = BTreeMap::new();
        let arena = lowering::lower(tree, |attribute| {
            let count: &mut usize = counts.entry(attribute.clone()).or_default();
            let use_number = *count;
            *count = count.saturating_add(1);
            Leaf { attribute, use_number }
        });
        Self { uses: counts.values().copied().max().unwrap_or(0), arena }
    }

    /// The nodes in post-order: children before parents, the root last. There is at least one.
    #[must_use]
    pub fn nodes(&self) -> &[PolicyNode] {
        self.arena.nodes()
    }

    /// The leaves, from left to right; a [`PolicyNode::Leaf`] holds a place in here.
    #[must_use]
    pub fn leaves(&self) -> &[Leaf] {
        self.arena.leaves()
    }

    /// Number of uses of the atom that is used most: 1 if every leaf has an atom of its own.
    #[must_use]
    pub const fn uses(&self) -> usize {
        self.uses
    }

    /// Returns true if the atoms of `set` satisfy it.
    #[must_use]
    pub fn satisfied_by(&self, set: &AttributeSet) -> bool {
        self.arena.satisfied(|leaf| set.contains(&leaf.attribute))
    }

    /// The cheapest satisfying subset of leaves whose atoms are in `set`, if `set` satisfies the formula.
    /// `cost` gives the cost of a leaf from its atom and its use number; among equals, leaves further left
    /// are taken.
    ///
    /// No leaf of it can be left out.
    #[must_use]
    pub fn select(&self, set: &AttributeSet, cost: impl Fn(&Attribute, usize) -> u32) -> Option<Selection> {
        Selection::of(&self.arena, |leaf| {
            set.contains(&leaf.attribute).then(|| cost(&leaf.attribute, leaf.use_number))
        })
    }

    /// The atoms, each once, sorted.
    #[must_use]
    pub fn atoms(&self) -> Vec<&Attribute> {
        let mut atoms: Vec<_> = self.leaves().iter().map(Leaf::attribute).collect();
        atoms.sort_unstable();
        atoms.dedup();
        atoms
    }
}
