//! Nodes of the tree, and those that an epoch refreshes (§8.1).

use alloc::vec::Vec;

use super::algebra::Rules;
use super::branch::NodeChange;
use crate::slots::{Runs, Slot, SlotRun, SlotSet, append_halved};

/// The greatest height a tree may have: one leaf for each of [`MAX_SLOTS`](crate::MAX_SLOTS).
pub(crate) const MAX_HEIGHT: u8 = 20;

/// A node: leaves are on level 0 and have their slot as index; the root is alone on its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyTreeNode {
    pub(crate) level: u8,
    pub(crate) index: u32,
}

impl KeyTreeNode {
    /// Bytes of [`encode`](Self::encode).
    pub(crate) const LEN: usize = 5;

    /// The node on `level` that is `slot`'s leaf or above it.
    pub(crate) const fn above(slot: Slot, level: u8) -> Self {
        Self { level, index: slot >> level }
    }

    pub(crate) const fn parent(self) -> Self {
        Self { level: self.level + 1, index: self.index / 2 }
    }

    /// The left child, 0, or the right one, 1. Not for leaves.
    pub(crate) const fn child(self, side: usize) -> Self {
        Self { level: self.level - 1, index: 2 * self.index + side as u32 }
    }

    /// Not for leaves.
    pub(crate) const fn children(self) -> [Self; 2] {
        [self.child(0), self.child(1)]
    }

    /// level (1 byte) ‖ index (4 bytes).
    pub(crate) const fn encode(self) -> [u8; Self::LEN] {
        let [a, b, c, d] = self.index.to_be_bytes();
        [self.level, a, b, c, d]
    }
}

/// The least height of a tree that has a leaf for `slot`.
pub(crate) const fn height_for(slot: Slot) -> u8 {
    // A slot has 20 bits; a tree of one leaf would have no root to take a key from.
    let bits = Slot::BITS - slot.leading_zeros();
    if bits < 1 { 1 } else { bits as u8 }
}

/// Nodes that an epoch changes, computed alike by the leader and by every member from the signed header: R,
/// the nodes that get a fresh key, and A, the nodes above newcomers.
pub(crate) struct Touched {
    refreshed: Levels,
    added: Levels,
    /// True if newcomers follow by wraps, as if they had been members before.
    newcomers_follow: bool,
}

impl Touched {
    /// Finds the nodes that an epoch changes in a tree whose height grows from `before` to `height`.
    pub(crate) fn new(before: u8, height: u8, removed: &SlotSet, added: &SlotSet, rules: Rules) -> Self {
        // §8.2, 1: R = ancestors of removed slots, and every new root level; ...
        let mut refreshed = Levels::above(removed, height);
        if !rules.refresh_above_leaves {
            refreshed.clear(1);
        }
        // ... if nothing was removed or added, R = {root}.
        let nothing = removed.is_empty() && added.is_empty();
        refreshed.crown(if nothing { before.min(height.saturating_sub(1)) } else { before });
        // §8.2, 1: A = all ancestors of added slots.
        Self { refreshed, added: Levels::above(added, height), newcomers_follow: false }
    }

    /// Finds the nodes that an epoch changes in a tree whose height grows from `before` to `height`, and
    /// whose newcomers follow by wraps: the nodes above them are of R, none of A. There are newcomers, and no
    /// slot is both removed and added.
    pub(crate) fn joining(before: u8, height: u8, removed: &SlotSet, added: &SlotSet) -> Self {
        // §8.2, 1: new roots are above the first slot, whose other ancestors come with them.
        let first = (height > before).then_some(0);
        let changed: SlotSet = removed.iter().chain(added.iter()).chain(first).collect();
        let mut refreshed = Levels::above(&changed, height);
        refreshed.set_leaves(removed);
        Self { refreshed, added: Levels::above(&SlotSet::new(), height), newcomers_follow: true }
    }

    /// Finds the nodes of a tree with which a term opens for the members in these slots: all nodes above them
    /// are of R, none of A.
    pub(crate) fn opening(height: u8, members: &SlotSet) -> Self {
        let mut refreshed = Levels::above(members, height);
        // Of a leaf it would say that its member is removed.
        refreshed.set_leaves(&SlotSet::new());
        Self { refreshed, added: Levels::above(&SlotSet::new(), height), newcomers_follow: true }
    }

    /// Returns true if newcomers count among those who remain: they follow by wraps.
    pub(crate) const fn newcomers_follow(&self) -> bool {
        self.newcomers_follow
    }

    pub(crate) const fn height(&self) -> u8 {
        self.refreshed.height
    }

    /// The indices of R on a level.
    pub(crate) fn refreshed(&self, level: u8) -> Runs<'_> {
        self.refreshed.on(level)
    }

    /// The indices of A on a level.
    pub(crate) fn added(&self, level: u8) -> Runs<'_> {
        self.added.on(level)
    }

    pub(crate) fn refreshes(&self, node: KeyTreeNode) -> bool {
        self.refreshed(node.level).contains(node.index)
    }

    pub(crate) fn adds_beneath(&self, node: KeyTreeNode) -> bool {
        self.added(node.level).contains(node.index)
    }

    /// Change of a node; of a leaf, true if its member is removed or new.
    pub(crate) fn change(&self, node: KeyTreeNode) -> NodeChange {
        NodeChange { refreshed: self.refreshed.holds(node), added: self.added.holds(node) }
    }

    /// Returns true if newcomers fill all slots beneath a node, so that no earlier member needs its wraps.
    pub(crate) fn is_new(&self, node: KeyTreeNode) -> bool {
        let first = node.index << node.level;
        self.added.leaves().covers(&SlotRun { start: first, len: 1 << node.level })
    }

    /// Number of nodes of R.
    pub(crate) fn refreshed_len(&self) -> usize {
        (1..=self.height()).map(|level| self.refreshed(level).len()).sum()
    }
}

/// Sets of nodes, by level from 1 on.
struct Levels {
    height: u8,
    /// The indices of the leaves and of each level, one after the other.
    runs: Vec<SlotRun>,
    /// Number of runs up to each level, the leaves' first.
    ends: [u32; MAX_HEIGHT as usize + 1],
}

impl Levels {
    /// The ancestors of a set of leaves.
    fn above(leaves: &SlotSet, height: u8) -> Self {
        let leaves = leaves.runs();
        if leaves.is_empty() {
            return Self { height, runs: Vec::new(), ends: [0; _] };
        }
        let mut runs = Vec::with_capacity(leaves.len() + usize::from(height));
        runs.extend_from_slice(leaves);
        let (mut from, mut ends) = (0, [0; _]);
        for (level, end) in (0..=height).zip(&mut ends) {
            if level > 0 {
                // The parents of the level beneath.
                let beneath = core::mem::replace(&mut from, runs.len());
                append_halved(&mut runs, beneath);
            }
            *end = runs.len() as u32;
        }
        Self { height, runs, ends }
    }

    /// Makes it one node, the first, on every level above this one.
    fn crown(&mut self, level: u8) {
        self.runs.truncate(self.end(level));
        for end in self.ends.iter_mut().take(usize::from(self.height) + 1).skip(usize::from(level) + 1) {
            self.runs.push(SlotRun { start: 0, len: 1 });
            *end = self.runs.len() as u32;
        }
    }

    /// Takes out the nodes of a level.
    fn clear(&mut self, level: u8) {
        let all = level.checked_sub(1).map_or(0, |beneath| self.end(beneath))..self.end(level);
        let cleared = all.len() as u32;
        self.runs.drain(all);
        self.ends.iter_mut().skip(level.into()).for_each(|end| *end = end.saturating_sub(cleared));
    }

    /// Puts other leaves in the place of those that the nodes are above.
    fn set_leaves(&mut self, leaves: &SlotSet) {
        self.clear(0);
        self.runs.splice(0..0, leaves.runs().iter().copied());
        let set = leaves.runs().len() as u32;
        self.ends.iter_mut().for_each(|end| *end = end.saturating_add(set));
    }

    /// Number of runs up to a level.
    fn end(&self, level: u8) -> usize {
        self.ends.get(usize::from(level.min(self.height))).map_or(0, |end| *end as usize)
    }

    /// The runs of a level from 1 on.
    fn on(&self, level: u8) -> Runs<'_> {
        Runs(self.runs.get(self.end(level.saturating_sub(1))..self.end(level)).unwrap_or_default())
    }

    /// Returns true if a node is of the set, a leaf too.
    fn holds(&self, node: KeyTreeNode) -> bool {
        let runs = if node.level > 0 { self.on(node.level) } else { self.leaves() };
        runs.contains(node.index)
    }

    fn leaves(&self) -> Runs<'_> {
        Runs(self.runs.get(..self.end(0)).unwrap_or_default())
    }
}
