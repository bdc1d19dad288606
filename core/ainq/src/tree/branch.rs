//! What an epoch does to the nodes above one leaf.

use super::node::{MAX_HEIGHT, Node};
use crate::slots::Slot;

/// What an epoch does to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Whether it is in R: gets a key from a seed. Of a leaf: whether its member is removed.
    pub(crate) refreshed: bool,
    /// Whether it is in A: above a newcomer. Of a leaf: whether its member is new.
    pub(crate) added: bool,
}

impl Change {
    /// Whether anything changes at the node or beneath.
    pub(crate) const fn any(self) -> bool {
        self.refreshed || self.added
    }
}

/// What an epoch does to a leaf and the nodes above it, with the wraps under their keys. By level.
#[derive(Debug)]
pub(crate) struct Branch<'a, W> {
    slot: Slot,
    height: u8,
    changes: [Change; MAX_HEIGHT as usize + 1],
    wraps: [Option<&'a W>; MAX_HEIGHT as usize],
}

impl<'a, W> Branch<'a, W> {
    /// A branch on which nothing changes, in a tree of this height.
    pub(crate) const fn new(slot: Slot, height: u8) -> Self {
        let (changes, wraps) = ([Change { refreshed: false, added: false }; _], [None; _]);
        Self { slot, height, changes, wraps }
    }

    pub(crate) const fn height(&self) -> u8 {
        self.height
    }

    /// The node of the branch on a level.
    pub(crate) const fn node(&self, level: u8) -> Node {
        Node::above(self.slot, level)
    }

    pub(crate) fn change(&self, level: u8) -> Change {
        self.changes.get(usize::from(level)).copied().unwrap_or_default()
    }

    /// The seed of the node above this level, under the key of the node on it.
    pub(crate) fn wrap(&self, level: u8) -> Option<&'a W> {
        *self.wraps.get(usize::from(level))?
    }

    pub(crate) fn set(&mut self, level: u8, change: Change, wrap: Option<&'a W>) {
        if let Some(place) = self.changes.get_mut(usize::from(level)) {
            *place = change;
        }
        if let Some(place) = self.wraps.get_mut(usize::from(level)) {
            *place = wrap;
        }
    }
}
