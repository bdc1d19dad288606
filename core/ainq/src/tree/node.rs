//! The nodes of the tree, and which of them an epoch touches.

use alloc::vec::Vec;

use super::algebra::Rules;
use crate::slots::{Slot, SlotSet};

/// The greatest height a tree may have: one leaf for each of [`MAX_SLOTS`](crate::MAX_SLOTS).
pub(crate) const MAX_HEIGHT: u8 = 20;

/// A node: leaves are on level 0 and have their slot as index; the root is alone on its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) level: u8,
    pub(crate) index: u32,
}

impl Node {
    /// Bytes of [`encode`](Self::encode).
    pub(crate) const LEN: usize = 5;

    /// The node on `level` that is `slot`'s leaf or above it.
    pub(crate) const fn above(slot: Slot, level: u8) -> Self {
        Self { level, index: slot >> level }
    }

    pub(crate) const fn parent(self) -> Self {
        Self { level: self.level + 1, index: self.index / 2 }
    }

    /// Not for leaves.
    pub(crate) const fn children(self) -> [Self; 2] {
        let (level, index) = (self.level - 1, 2 * self.index);
        [Self { level, index }, Self { level, index: index + 1 }]
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

/// What an epoch touches, computed alike by the leader and by every member from the signed header: R, the nodes that get
/// a fresh key, and A, the nodes above newcomers.
pub(crate) struct Touched {
    /// By level, from 1 on: the indices.
    refreshed: Vec<SlotSet>,
    added: Vec<SlotSet>,
}

static NONE: SlotSet = SlotSet::new();

impl Touched {
    /// For a tree that had the height `before` and has `height` now, which is no less.
    pub(crate) fn new(before: u8, height: u8, removed: &SlotSet, added: &SlotSet, rules: Rules) -> Self {
        // R = ancestors of removed slots, and every new root level; ...
        let mut refreshed = above(removed, height);
        if !rules.refresh_above_leaves
            && let Some(first) = refreshed.first_mut()
        {
            *first = SlotSet::new();
        }
        for level in refreshed.iter_mut().skip(usize::from(before)) {
            // Above the old root there is one node per level.
            *level = SlotSet::first_only();
        }
        // ... if nothing was removed or added, R = {root}.
        if removed.is_empty()
            && added.is_empty()
            && let Some(root) = refreshed.last_mut()
        {
            *root = SlotSet::first_only();
        }
        Self { refreshed, added: above(added, height) }
    }

    pub(crate) const fn height(&self) -> u8 {
        // At most `MAX_HEIGHT`.
        self.refreshed.len() as u8
    }

    /// The indices of R on a level.
    pub(crate) fn refreshed(&self, level: u8) -> &SlotSet {
        on(&self.refreshed, level)
    }

    /// The indices of A on a level.
    pub(crate) fn added(&self, level: u8) -> &SlotSet {
        on(&self.added, level)
    }

    pub(crate) fn refreshes(&self, node: Node) -> bool {
        self.refreshed(node.level).contains(node.index)
    }

    pub(crate) fn adds_beneath(&self, node: Node) -> bool {
        self.added(node.level).contains(node.index)
    }

    /// How many nodes R has.
    pub(crate) fn refreshed_len(&self) -> usize {
        self.refreshed.iter().map(SlotSet::len).sum()
    }

    /// How many nodes R has before `node`, in the order of level and index.
    pub(crate) fn rank(&self, node: Node) -> usize {
        let below = usize::from(node.level).saturating_sub(1);
        let lower: usize = self.refreshed.iter().take(below).map(SlotSet::len).sum();
        lower + self.refreshed(node.level).rank(node.index)
    }
}

fn on(levels: &[SlotSet], level: u8) -> &SlotSet {
    usize::from(level).checked_sub(1).and_then(|level| levels.get(level)).unwrap_or(&NONE)
}

/// The ancestors of a set of leaves, by level from 1 on.
fn above(slots: &SlotSet, height: u8) -> Vec<SlotSet> {
    let mut levels = Vec::with_capacity(height.into());
    for _ in 0..height {
        let next = levels.last().unwrap_or(slots).halved();
        levels.push(next);
    }
    levels
}
