//! The key tree at a member: the keys above its own leaf.

use alloc::vec::Vec;

use quiver_crypto::Digest;

use super::algebra::{Algebra, LeafKeyChain, WrapPosition};
use super::branch::Branch;
use super::hierarchy::raise;
use crate::Error;

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

    /// The path after an epoch, to whose counter the leaf's chain was brought. The old path is as it was: if
    /// the epoch turns out not to hold, nothing has happened.
    pub(crate) fn follow(
        &self,
        leaf: &A::Leaf,
        branch: &Branch<'_, A::Wrap>,
        d0: &Digest,
    ) -> Result<Self, Error> {
        let mut keys: Vec<A::Key> = Vec::with_capacity(branch.height().into());
        // Of the node beneath, if that is of R.
        let mut seed: Option<A::Seed> = None;
        for level in 1..=branch.height() {
            let (node, child) = (branch.node(level), branch.node(level - 1));
            let refreshed = branch.change(level).refreshed;
            // §8.4: v ∈ R: unwrap with the child's key before that child's step, ...
            let place = WrapPosition { d0, parent: node, child };
            let wrap = branch.wrap(level - 1).filter(|_| refreshed);
            let opened = wrap.map(|wrap| open::<A>(&place, &mut keys, leaf, wrap));
            // ... and step the child if it wrapped nothing but is above newcomers.
            let steps = A::RULES.step_on_join && branch.change(level - 1).added;
            if let Some(key) = keys.last_mut().filter(|_| opened.is_none() && steps) {
                *key = A::step(child, key);
            }
            if !refreshed {
                let kept = self.keys.get(usize::from(level) - 1).ok_or(Error::Malformed("height"))?;
                keys.push(kept.clone());
                seed = None;
                continue;
            }
            // §8.4: without a wrap for the child, the child is c*; or this is the lowest node of R, and nobody
            // remains beneath the child.
            let raised = || seed.as_ref().map(|seed| raise::<A>(node, child, seed));
            let own = A::seed(&opened.or_else(raised).ok_or(Error::Removed)?);
            keys.push(A::key_of(node, &own));
            seed = Some(own);
        }
        let root = branch.height();
        let steps = A::RULES.step_on_join && branch.change(root).added;
        if let Some(key) = keys.last_mut().filter(|_| steps) {
            *key = A::step(branch.node(root), key);
        }
        Ok(Self { keys })
    }
}

/// The seed in a wrap under the newest of the keys, which steps, or under the leaf's, which does not.
fn open<A: Algebra>(place: &WrapPosition<'_>, keys: &mut [A::Key], leaf: &A::Leaf, wrap: &A::Wrap) -> A::Key {
    match keys.last_mut() {
        Some(key) if A::RULES.step_after_use => {
            let (seed, stepped) = A::unwrap(place, key, wrap);
            *key = stepped;
            seed
        }
        Some(key) => A::open(place, key, wrap),
        None => A::open(place, leaf.key(), wrap),
    }
}
