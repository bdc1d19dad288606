//! The key tree at a member: the keys above its own leaf.

use alloc::vec::Vec;

use quiver_crypto::Digest;

use super::algebra::{Algebra, Chain, Place};
use super::node::{Node, Touched};
use crate::Error;
use crate::slots::Slot;

/// The keys above one leaf, bottom-up.
pub(crate) struct Path<A: Algebra> {
    keys: Vec<A::Key>,
}

impl<A: Algebra> Path<A> {
    /// The keys in order, from level 1 to the root.
    pub(crate) const fn new(keys: Vec<A::Key>) -> Self {
        Self { keys }
    }

    pub(crate) fn height(&self) -> u8 {
        // At most 20.
        self.keys.len() as u8
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> &[A::Key] {
        &self.keys
    }

    /// The root's key.
    pub(crate) fn root(&self) -> Option<&A::Key> {
        self.keys.last()
    }

    /// The path after an epoch, to whose counter the leaf's chain was brought. `find` gives the wrap of a
    /// parent under a child. The old path is as it was: if the epoch turns out not to hold, nothing has
    /// happened.
    pub(crate) fn follow(
        &self,
        slot: Slot,
        leaf: &A::Leaf,
        touched: &Touched,
        d0: &Digest,
        find: &dyn Fn(Node, Node) -> Option<A::Wrap>,
    ) -> Result<Self, Error> {
        let mut keys: Vec<A::Key> = Vec::with_capacity(touched.height().into());
        for level in 1..=touched.height() {
            let (node, child) = (Node::above(slot, level), Node::above(slot, level - 1));
            if !touched.refreshes(node) {
                let kept = self.keys.get(usize::from(level) - 1).ok_or(Error::Malformed("height"))?;
                keys.push(kept.clone());
                continue;
            }
            // §8.4: v ∈ R: unwrap with the child's key before that child's step; ...
            let wrap = find(node, child).ok_or(Error::MissingEntry)?;
            let place = Place { d0, parent: node, child };
            let star = match keys.last_mut() {
                Some(key) if A::RULES.step_after_use => {
                    let (star, stepped) = A::unwrap(&place, key, &wrap);
                    *key = stepped;
                    star
                }
                Some(key) => A::open(&place, key, &wrap),
                None => A::open(&place, leaf.key(), &wrap),
            };
            keys.push(star);
        }
        // ... then the steps of those that did not wrap but are above newcomers.
        for (level, key) in (1..).zip(&mut keys) {
            let node = Node::above(slot, level);
            let wrapped = level < touched.height() && touched.refreshes(node.parent());
            if A::RULES.step_on_join && !wrapped && touched.adds_beneath(node) {
                *key = A::step(node, key);
            }
        }
        Ok(Self { keys })
    }
}
