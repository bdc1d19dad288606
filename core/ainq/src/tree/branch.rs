//! Changes of the nodes above one leaf in an epoch.

use super::node::{KeyTreeNode, MAX_HEIGHT};
use crate::slots::Slot;

/// Change of a node in an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeChange {
    /// True if it is in R: gets a key from a seed. Of a leaf: whether its member is removed.
    pub(crate) refreshed: bool,
    /// True if it is in A: above a newcomer. Of a leaf: whether its member is new.
    pub(crate) added: bool,
}

impl NodeChange {
    /// Returns true if anything changes at the node or beneath.
    pub(crate) const fn any(self) -> bool {
        self.refreshed || self.added
    }
}

/// Changes of a leaf and the nodes above it in an epoch, with the wraps under their keys. By level.
#[derive(Debug)]
pub(crate) struct Branch<'a, W> {
    slot: Slot,
    height: u8,
    changes: [NodeChange; MAX_HEIGHT as usize + 1],
    wraps: [Option<&'a W>; MAX_HEIGHT as usize],
}

impl<'a, W> Branch<'a, W> {
    /// A branch on which nothing changes, in a tree of this height.
    pub(crate) const fn new(slot: Slot, height: u8) -> Self {
        let (changes, wraps) = ([NodeChange { refreshed: false, added: false }; _], [None; _]);
        Self { slot, height, changes, wraps }
    }

    pub(crate) const fn height(&self) -> u8 {
        self.height
    }

    /// The node of the branch on a level.
    pub(crate) const fn node(&self, level: u8) -> KeyTreeNode {
        KeyTreeNode::above(self.slot, level)
    }

    pub(crate) fn change(&self, level: u8) -> NodeChange {
        self.changes.get(usize::from(level)).copied().unwrap_or_default()
    }

    /// The seed of the node above this level, under the key of the node on it.
    pub(crate) fn wrap(&self, level: u8) -> Option<&'a W> {
        *self.wraps.get(usize::from(level))?
    }

    /// Returns true if the member on it stays in the tree: the lowest of its nodes in R has a wrap for the
    /// child on the branch. A member that leaves has none, since all nodes above its leaf are in R, or those
    /// that anybody else remains beneath.
    pub(crate) fn remains(&self) -> bool {
        // Of the child's level, one below.
        let lowest = self.changes.iter().skip(1).position(|change| change.refreshed);
        lowest.is_none_or(|child| self.wraps.get(child).is_some_and(Option::is_some))
    }

    pub(crate) fn set(&mut self, level: u8, change: NodeChange, wrap: Option<&'a W>) {
        if let Some(place) = self.changes.get_mut(usize::from(level)) {
            *place = change;
        }
        if let Some(place) = self.wraps.get_mut(usize::from(level)) {
            *place = wrap;
        }
    }
}
