//! The key tree at the leader: all node keys and all members' chains.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use quiver_crypto::Digest;

use super::algebra::{Algebra, LeafKeyChain, WrapPosition};
use super::node::{KeyTreeNode, Touched};
use crate::slab::Slab;
use crate::slots::{Slot, SlotSet};

/// A wrap of an epoch, in the order level, index, child.
pub(crate) struct Wrapped<W> {
    pub(crate) parent: KeyTreeNode,
    pub(crate) child: KeyTreeNode,
    pub(crate) wrap: W,
}

/// All keys of the tree. Nodes with no member beneath have none.
///
/// A chain is at the epoch in which it was last used, or at the one after: what was used is stepped with the
/// next epoch, so that the leader's memory opens nothing older; what was not waits until it is.
pub(crate) struct Hierarchy<A: Algebra> {
    leaves: Slab<A::Leaf>,
    /// Slots whose chains were used in the current epoch.
    used: BTreeSet<Slot>,
    /// The current epoch's counter.
    counter: u64,
    /// Keys by level, from 1 on.
    levels: Vec<Slab<A::Key>>,
}

impl<A: Algebra> Hierarchy<A> {
    /// A tree of these members before its term opens: no node has a key. The first
    /// [`rekey`](Self::rekey), of [`Touched::opening`], gives one to each node above them.
    pub(crate) fn new(members: &[(Slot, A::Leaf)]) -> Self {
        let mut leaves = Slab::new();
        // Copied, so that the caller's vector erases its content; moving out of one leaves a copy in its
        // memory.
        for (slot, leaf) in members {
            leaves.set(*slot, leaf.clone());
        }
        Self { leaves, used: BTreeSet::new(), counter: 0, levels: Vec::new() }
    }

    pub(crate) fn height(&self) -> u8 {
        // At most 20.
        self.levels.len() as u8
    }

    pub(crate) fn leaf(&self, slot: Slot) -> Option<&A::Leaf> {
        self.leaves.get(slot)
    }

    pub(crate) fn key(&self, node: KeyTreeNode) -> Option<&A::Key> {
        self.levels.get(usize::from(node.level).checked_sub(1)?)?.get(node.index)
    }

    /// A member's chain in this epoch and the keys above it, bottom-up; none of these is missing above a
    /// member.
    pub(crate) fn leaf_and_path(&mut self, slot: Slot) -> Option<(&A::Leaf, impl Iterator<Item = &A::Key>)> {
        let leaf = use_leaf::<A>(&mut self.leaves, &mut self.used, self.counter, slot)?;
        let levels = (1..).zip(&self.levels);
        Some((leaf, levels.filter_map(move |(level, keys)| keys.get(KeyTreeNode::above(slot, level).index))))
    }

    /// Makes the next epoch of the change that `touched` was computed from. `fresh` gives seeds of nodes of R,
    /// and keys of nodes that have none. Old keys, stars and seeds are erased on the way.
    pub(crate) fn rekey(
        &mut self,
        touched: &Touched,
        removed: &SlotSet,
        newcomers: &[(Slot, A::Leaf)],
        d0: &Digest,
        fresh: &mut dyn FnMut(KeyTreeNode) -> A::Key,
    ) -> Vec<Wrapped<A::Wrap>> {
        // §8.1: a new root; its left child is the old one.
        while self.height() < touched.height() {
            self.levels.push(Slab::new());
        }
        removed.iter().for_each(|slot| self.leaves.clear(slot));
        self.counter = self.counter.saturating_add(1);
        // §8.4: a leaf that was used steps once more with the next epoch.
        for slot in core::mem::take(&mut self.used) {
            if let Some(leaf) = self.leaves.get_mut(slot).filter(|_| A::RULES.step_per_epoch) {
                leaf.catch_up_with(self.counter);
            }
        }
        // §8.2, 1: newcomers that follow by wraps count as remaining members.
        let (before, after) =
            if touched.newcomers_follow() { (newcomers, &[][..]) } else { (&[][..], newcomers) };
        self.place(before);
        // §8.2, 3: from the lowest level up, so that children hold their n* when they wrap.
        let mut wraps = Vec::with_capacity(touched.refreshed_len());
        // Of the level beneath, by index.
        let mut beneath: Vec<(u32, A::Seed)> = Vec::new();
        for level in 1..=touched.height() {
            let mut seeds = Vec::with_capacity(touched.refreshed(level).len());
            let mut rest = beneath.as_slice();
            for index in touched.refreshed(level).iter() {
                let node = KeyTreeNode { level, index };
                // Two at most.
                let behind = rest.iter().take_while(|(child, _)| child / 2 <= index).count();
                let (children, after) = rest.split_at_checked(behind).unwrap_or_default();
                rest = after;
                // §8.2, 2: c* is the first child of R with a remaining member beneath.
                let seed = match children.first() {
                    Some((child, seed)) => {
                        Some(self.refresh_from(node, *child, seed, touched, d0, &mut wraps))
                    }
                    None => self.refresh(node, d0, fresh, &mut wraps),
                };
                seeds.extend(seed.map(|seed| (index, seed)));
            }
            beneath = seeds;
        }
        // §8.2, 6: the others get path messages, no wraps.
        self.place(after);
        // §8.2, 4: the nodes of A step before newcomers get them.
        for level in 1..=touched.height() {
            for index in touched.added(level).iter() {
                self.make_room(KeyTreeNode { level, index }, touched, fresh);
            }
        }
        wraps
    }

    fn place(&mut self, newcomers: &[(Slot, A::Leaf)]) {
        for (slot, leaf) in newcomers {
            self.leaves.set(*slot, leaf.clone());
        }
    }

    /// Refreshes a node of R of whose children none is: a fresh seed, wrapped under the key of each child with
    /// a remaining member beneath. Gives the seed, unless nobody is beneath.
    fn refresh(
        &mut self,
        node: KeyTreeNode,
        d0: &Digest,
        fresh: &mut dyn FnMut(KeyTreeNode) -> A::Key,
        wraps: &mut Vec<Wrapped<A::Wrap>>,
    ) -> Option<A::Seed> {
        // §8.2, 2: 32 random bytes where there is no c*.
        let seed = fresh(node);
        let before = wraps.len();
        for child in node.children() {
            wraps.extend(self.spend(&WrapPosition { d0, parent: node, child }, &seed));
        }
        // §8.2, 2: without a remaining member beneath, no node holds a key.
        let seed = (wraps.len() > before).then(|| A::seed(&seed));
        self.put(node, seed.as_ref().map(|seed| A::key_of(node, seed)));
        seed
    }

    /// Refreshes a node of R from the seed of its child c*, and wraps for the other child.
    fn refresh_from(
        &mut self,
        node: KeyTreeNode,
        chained: u32,
        beneath: &A::Seed,
        touched: &Touched,
        d0: &Digest,
        wraps: &mut Vec<Wrapped<A::Wrap>>,
    ) -> A::Seed {
        let seed =
            raise::<A>(node, KeyTreeNode { level: node.level.saturating_sub(1), index: chained }, beneath);
        for child in node.children() {
            if child.index != chained {
                wraps.extend(self.spend(&WrapPosition { d0, parent: node, child }, &seed));
            } else if A::RULES.step_on_join && touched.adds_beneath(child) {
                // §8.2, 4: it wrapped nothing, but is of A.
                let stepped = self.key(child).map(|key| A::step(child, key));
                self.put(child, stepped);
            }
        }
        let seed = A::seed(&seed);
        self.put(node, Some(A::key_of(node, &seed)));
        seed
    }

    /// Wraps under a child's key, and steps it unless it is a leaf's; nothing if the child has no remaining
    /// member. Children on a lower level are done, so their keys are the stars; nothing else uses these any
    /// more.
    fn spend(&mut self, place: &WrapPosition<'_>, seed: &A::Key) -> Option<Wrapped<A::Wrap>> {
        let WrapPosition { parent, child, .. } = *place;
        if child.level == 0 {
            let leaf = use_leaf::<A>(&mut self.leaves, &mut self.used, self.counter, child.index)?;
            // §8.2, 4: a leaf's key belongs to the epoch and does not step here.
            let (wrap, _) = A::wrap(place, leaf.key(), seed);
            return Some(Wrapped { parent, child, wrap });
        }
        let (wrap, stepped) = A::wrap(place, self.key(child)?, seed);
        // §8.2, 4: a key that wrapped takes a step.
        if A::RULES.step_after_use {
            self.put(child, Some(stepped));
        }
        Some(Wrapped { parent, child, wrap })
    }

    /// A node of A: a key if it has none yet, and a step before newcomers get it, unless it has had it.
    fn make_room(
        &mut self,
        node: KeyTreeNode,
        touched: &Touched,
        fresh: &mut dyn FnMut(KeyTreeNode) -> A::Key,
    ) {
        let former = self.key(node);
        // §8.2, 4: a node beneath one of R wrapped or is its c*, and has stepped already.
        let done = former.is_some() && node.level < touched.height() && touched.refreshes(node.parent());
        // §8.2, 2: a fresh key for a node that had none.
        let key = former.cloned().unwrap_or_else(|| fresh(node));
        let key = if A::RULES.step_on_join && !done { A::step(node, &key) } else { key };
        self.put(node, Some(key));
    }

    fn put(&mut self, node: KeyTreeNode, key: Option<A::Key>) {
        let level = usize::from(node.level).saturating_sub(1);
        let Some(keys) = self.levels.get_mut(level) else { return };
        match key {
            Some(key) => keys.set(node.index, key),
            None => keys.clear(node.index),
        }
    }
}

/// The seed of a node from its child's.
pub(super) fn raise<A: Algebra>(node: KeyTreeNode, child: KeyTreeNode, seed: &A::Seed) -> A::Key {
    // §8.2, 2: s_v = PRF(s_c*, "up", v); never from n_c*, which is kept.
    if A::RULES.seeds_apart {
        A::raise(node, seed)
    } else {
        A::raise(node, &A::seed(&A::key_of(child, seed)))
    }
}

/// A member's chain, at this epoch. It is stepped with the next one.
fn use_leaf<'a, A: Algebra>(
    leaves: &'a mut Slab<A::Leaf>,
    used: &mut BTreeSet<Slot>,
    counter: u64,
    slot: Slot,
) -> Option<&'a A::Leaf> {
    let leaf = leaves.get_mut(slot)?;
    used.insert(slot);
    // §8.4: the leader steps a leaf when it uses it, as far as needed.
    if A::RULES.step_per_epoch {
        leaf.catch_up_with(counter);
    }
    Some(leaf)
}
