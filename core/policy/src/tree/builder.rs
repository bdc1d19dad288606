//! Builds access trees node by node, with the checks of the parser.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use super::AccessTree;
use crate::arena::Arena;
use crate::formula::leaves_of;
use crate::{
    AttributeName, Condition, Fault, IntegerType, MAX_DEPTH, MAX_LEAVES, MAX_NODES, PolicyNode, ThresholdGate,
};

/// Makes an [`AccessTree`] from the leaves up. Nodes are known by the number that [`leaf`](Self::leaf) and
/// [`gate`](Self::gate) return.
#[derive(Clone, Debug)]
pub struct Builder {
    /// Nodes as they came: children before parents, but siblings in any order.
    arena: Arena<Condition>,
    /// Number of gates on each node's longest path down, itself included; `None` once it is under a gate.
    heights: Vec<Option<usize>>,
    /// Type with which each name was used.
    kinds: BTreeMap<AttributeName, Option<IntegerType>>,
    /// Leaves once comparisons are formulas.
    lowered: usize,
}

impl Builder {
    pub(super) const fn new() -> Self {
        Self { arena: Arena::new(), heights: Vec::new(), kinds: BTreeMap::new(), lowered: 0 }
    }

    /// Adds a leaf.
    ///
    /// # Errors
    /// [`Fault::TooManyLeaves`], [`Fault::TooManyNodes`], [`Fault::ConflictingKinds`].
    pub fn leaf(&mut self, condition: Condition) -> Result<usize, Fault> {
        self.check_room()?;
        let lowered = self.lowered.saturating_add(leaves_of(&condition));
        if lowered > MAX_LEAVES {
            return Err(Fault::TooManyLeaves);
        }
        let (name, kind) = (condition.name(), condition.kind());
        match self.kinds.get(name) {
            Some(known) if *known != kind => {
                return Err(Fault::ConflictingKinds { name: name.as_str().into() });
            }
            Some(_) => {}
            None => {
                self.kinds.insert(name.clone(), kind);
            }
        }
        self.lowered = lowered;
        self.heights.push(Some(0));
        Ok(self.arena.push_leaf(condition))
    }

    /// Adds a gate over nodes that are under no gate yet: `threshold` of `children`.
    ///
    /// # Errors
    /// [`Fault::ThresholdZero`], [`Fault::ThresholdAboveChildren`], [`Fault::RepeatedLeaf`],
    /// [`Fault::TooDeep`], [`Fault::TooManyNodes`], and [`Fault::Builder`] if a child does not exist or is
    /// taken.
    pub fn gate(&mut self, threshold: usize, children: Vec<usize>) -> Result<usize, Fault> {
        self.check_room()?;
        let gate = ThresholdGate::new(threshold, children)?;
        let (mut highest, mut seen) = (0, BTreeSet::new());
        for child in gate.children() {
            highest = highest.max(self.height(*child)?);
            if !seen.insert(child) {
                return Err(Fault::Builder("a node stands under a gate twice"));
            }
        }
        let height = highest.saturating_add(1);
        if height > MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        if self.repeated(gate.children()).is_some() {
            return Err(Fault::RepeatedLeaf);
        }
        // Every check is behind: a builder that refuses something is as it was.
        for &child in gate.children() {
            if let Some(height) = self.heights.get_mut(child) {
                *height = None;
            }
        }
        self.heights.push(Some(height));
        Ok(self.arena.push_gate(gate))
    }

    /// Ends building: `root` is the one node that is under no gate.
    ///
    /// # Errors
    /// [`Fault::Builder`] if it is not.
    pub fn finish(self, root: usize) -> Result<AccessTree, Fault> {
        self.height(root)?;
        if self.heights.iter().filter(|height| height.is_some()).count() > 1 {
            return Err(Fault::Builder("a node stands under no gate"));
        }
        Ok(AccessTree(self.in_post_order(root)))
    }

    /// The place in `children` of the second of two equal leaves.
    pub(crate) fn repeated(&self, children: &[usize]) -> Option<usize> {
        let mut seen = BTreeSet::new();
        children.iter().position(|&child| match self.arena.nodes().get(child) {
            Some(PolicyNode::Leaf(number)) => {
                self.arena.leaves().get(*number).is_some_and(|condition| !seen.insert(condition))
            }
            _ => false,
        })
    }

    fn check_room(&self) -> Result<(), Fault> {
        if self.heights.len() < MAX_NODES { Ok(()) } else { Err(Fault::TooManyNodes) }
    }

    fn height(&self, node: usize) -> Result<usize, Fault> {
        match self.heights.get(node) {
            Some(Some(height)) => Ok(*height),
            Some(None) => Err(Fault::Builder("a node stands under a gate already")),
            None => Err(Fault::Builder("no node of this number")),
        }
    }

    fn in_post_order(&self, root: usize) -> Arena<Condition> {
        // A node is visited on the way down and a gate again on the way up, when its children are at the end
        // of `done`.
        let (mut ordered, mut done, mut visits) = (Arena::new(), Vec::new(), vec![(root, false)]);
        while let Some((node, back)) = visits.pop() {
            match self.arena.nodes().get(node) {
                Some(PolicyNode::Leaf(number)) => {
                    let leaf = self.arena.leaves().get(*number);
                    done.extend(leaf.map(|condition| ordered.push_leaf(condition.clone())));
                }
                Some(PolicyNode::Gate(gate)) if back => {
                    let first = done.len().saturating_sub(gate.children().len());
                    let gate = gate.over(done.split_off(first));
                    done.push(ordered.push_gate(gate));
                }
                Some(PolicyNode::Gate(gate)) => {
                    visits.push((node, true));
                    visits.extend(gate.children().iter().rev().map(|&child| (child, false)));
                }
                None => {}
            }
        }
        ordered
    }
}
