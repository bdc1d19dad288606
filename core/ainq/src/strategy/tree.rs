//! The `tree` strategy at the leader: see [`tree`](crate::tree).
//!
//! A term opens flat, because every chain is new anyway: K_g is random and wrapped for each member. The keys
//! of the nodes are drawn with it; members get them by path messages afterwards, or when they first miss
//! them.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Secret};
use rand_core::CryptoRngCore;

use super::{Change, Sealed, Strategy};
use crate::pairwise::Ratchet;
use crate::slots::Slot;
use crate::tree::{
    Algebra, Hierarchy, HmacXor, Node, PathMessage, PathNonce, Touched, WrapTree, group_key, height_for,
};
use crate::{Entry, Error, GroupKey, Kind, StrategyKind, Suite};

/// The counter of the epoch that opens a term.
const OPENING: u64 = 1;

/// The tree of one term.
pub(crate) struct Tree<S: Suite> {
    nodes: Hierarchy<HmacXor<S>>,
}

impl<S: Suite> Tree<S> {
    pub(crate) fn new() -> Self {
        Self { nodes: Hierarchy::new(1, &[], &mut |_| Secret::new([0; 32])) }
    }

    fn open(&mut self, change: Change<'_, S>, d0: &Digest, rng: &mut dyn CryptoRngCore) -> Sealed {
        let height = self.height_after(&change);
        // §7.1: every opening of a term wraps a random K_g flat.
        let key = GroupKey::new(S::ID, Secret::random(rng));
        let mut newcomers = change.newcomers;
        let mut entries = Vec::with_capacity(newcomers.len());
        for (slot, ratchet) in &mut newcomers {
            ratchet.count_from(OPENING);
            // §8.4: C_i = K_g ⊕ PRF(W_i[1], "wrap", D0 ‖ slot)
            entries.push(Entry { slot: *slot, q: None, wrap: key.wrap(&ratchet.pad(d0, *slot)) });
        }
        // §8.1: a fresh key for every node with a member beneath.
        self.nodes = Hierarchy::new(height, &newcomers, &mut |_| Secret::random(rng));
        Sealed { key, entries, wraps: None, entries_root: [0; 32] }
    }
}

impl<S: Suite> Strategy<S> for Tree<S> {
    fn kind(&self) -> StrategyKind {
        StrategyKind::Tree
    }

    fn height_after(&self, change: &Change<'_, S>) -> u8 {
        let before = match change.kind {
            Kind::Open => 1,
            Kind::Rekey => self.nodes.height(),
        };
        // §8.1: a tree never shrinks within a term.
        change.highest.map_or(before, |slot| before.max(height_for(slot)))
    }

    fn seal(&mut self, mut change: Change<'_, S>, d0: &Digest, rng: &mut dyn CryptoRngCore) -> Sealed {
        if change.kind == Kind::Open {
            return self.open(change, d0, rng);
        }
        let height = self.height_after(&change);
        // §8.1: the key of a leaf is W[c] of the epoch with counter c.
        change.newcomers.iter_mut().for_each(|(_, ratchet)| ratchet.count_from(change.counter));
        let rules = HmacXor::<S>::RULES;
        // §8.2, 1: R and A.
        let touched = Touched::new(self.nodes.height(), height, change.removed, change.added, rules);
        let fresh = &mut |_| Secret::random(rng);
        // §8.2, 2 to 4: fresh keys, wraps, steps.
        let wraps = self.nodes.rekey(&touched, change.removed, &change.newcomers, d0, fresh);
        let wraps = WrapTree::pack(&touched, &wraps);
        let root = Node { level: height, index: 0 };
        // §8.2, 5: K_g = PRF(n_root, "group key", D0). In an empty group the key has no holder.
        let key = match self.nodes.key(root) {
            Some(root) => group_key::<S>(root, d0),
            None => GroupKey::new(S::ID, fresh(root)),
        };
        // §8.3: entries_root, of the whole and of every part.
        let entries_root = wraps.root();
        Sealed { key, entries: Vec::new(), wraps: Some(wraps), entries_root }
    }

    fn settle(&mut self) {}

    fn auth_key(&self, slot: Slot) -> Option<&Secret<32>> {
        self.nodes.leaf(slot).map(Ratchet::auth)
    }

    fn path(
        &mut self,
        slot: Slot,
        digest: &Digest,
        r: &PathNonce,
        key: &GroupKey,
    ) -> Result<PathMessage, Error> {
        let (leaf, path) = self.nodes.leaf_and_path(slot).ok_or(Error::WrongSlot)?;
        // §8.2, 6: the keys of the path bottom-up and K_g.
        Ok(PathMessage::seal(slot, leaf, digest, r, path, key))
    }
}
