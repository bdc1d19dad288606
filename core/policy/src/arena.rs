//! Threshold trees stored in an array, without pointers.
//!
//! Nodes are in post-order: every child before its parent, siblings from left to right, the root last. So a
//! loop from the front evaluates a tree and a loop from the back shares a secret over it; nothing recurses,
//! and nothing is bounded by a stack. A tree has one post-order, so equal trees are equal arenas.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::Fault;

/// A gate: k of n children.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ThresholdGate {
    threshold: usize,
    children: Box<[usize]>,
}

impl ThresholdGate {
    pub(crate) fn new(threshold: usize, children: Vec<usize>) -> Result<Self, Fault> {
        if threshold == 0 {
            return Err(Fault::ThresholdZero);
        }
        if threshold > children.len() {
            return Err(Fault::ThresholdAboveChildren { children: children.len() });
        }
        Ok(Self { threshold, children: children.into_boxed_slice() })
    }

    /// All of these children, of which there is at least one.
    pub(crate) fn all(children: Vec<usize>) -> Self {
        Self { threshold: children.len(), children: children.into_boxed_slice() }
    }

    /// Any of these children, of which there is at least one.
    pub(crate) fn any(children: Vec<usize>) -> Self {
        Self { threshold: 1, children: children.into_boxed_slice() }
    }

    /// Copies this gate over as many other children.
    pub(crate) fn over(&self, children: Vec<usize>) -> Self {
        Self { threshold: self.threshold, children: children.into_boxed_slice() }
    }

    /// Number of children that must be satisfied: from 1 to all.
    #[must_use]
    pub const fn threshold(&self) -> usize {
        self.threshold
    }

    /// The children, from left to right, as numbers of nodes. At least one.
    #[must_use]
    pub const fn children(&self) -> &[usize] {
        &self.children
    }

    /// Returns true if the gate takes all children.
    #[must_use]
    pub const fn is_and(&self) -> bool {
        self.threshold == self.children.len()
    }

    /// Returns true if any child is enough.
    #[must_use]
    pub const fn is_or(&self) -> bool {
        self.threshold == 1
    }
}

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PolicyNode {
    /// The leaf of this number; leaves count from 0, from left to right.
    Leaf(usize),
    /// A gate.
    Gate(ThresholdGate),
}

/// A tree whose leaves are `L`: its nodes in post-order, and its leaves from left to right.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Arena<L> {
    nodes: Vec<PolicyNode>,
    leaves: Vec<L>,
}

impl<L> Arena<L> {
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), leaves: Vec::new() }
    }

    pub(crate) fn nodes(&self) -> &[PolicyNode] {
        &self.nodes
    }

    pub(crate) fn leaves(&self) -> &[L] {
        &self.leaves
    }

    /// Adds a leaf; its node's number.
    pub(crate) fn push_leaf(&mut self, leaf: L) -> usize {
        self.leaves.push(leaf);
        self.push(PolicyNode::Leaf(self.leaves.len().saturating_sub(1)))
    }

    /// Adds a gate over nodes of the arena; returns its node's number.
    pub(crate) fn push_gate(&mut self, gate: ThresholdGate) -> usize {
        self.push(PolicyNode::Gate(gate))
    }

    fn push(&mut self, node: PolicyNode) -> usize {
        self.nodes.push(node);
        self.nodes.len().saturating_sub(1)
    }

    /// Evaluates every node, children first: `leaf` gives the value of a leaf, `gate` that of a gate from the
    /// values of its children. Returns the values of all nodes.
    pub(crate) fn fold<'a, V>(
        &'a self,
        mut leaf: impl FnMut(usize, &'a L) -> V,
        mut gate: impl FnMut(&'a ThresholdGate, &mut dyn Iterator<Item = &V>) -> V,
    ) -> Vec<V> {
        let mut values: Vec<V> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let value = match node {
                PolicyNode::Leaf(number) => self.leaves.get(*number).map(|content| leaf(*number, content)),
                PolicyNode::Gate(at) => {
                    let mut children = at.children.iter().filter_map(|&child| values.get(child));
                    Some(gate(at, &mut children))
                }
            };
            values.extend(value);
        }
        values
    }

    /// Returns true if the tree is satisfied by leaves for which `leaf` is true.
    pub(crate) fn satisfied(&self, leaf: impl Fn(&L) -> bool) -> bool {
        let values = self.fold(
            |_, content| leaf(content),
            |gate, children| children.filter(|&&child| child).count() >= gate.threshold,
        );
        values.last().copied().unwrap_or(false)
    }
}
