//! The `tree` strategy at the leader: see [`tree`](crate::tree).
//!
//! A term opens as if every node above a member were above a leaver: all get keys from seeds, and the lowest
//! seeds are wrapped under the members' chains, which are all new. Over a medium that all share, members follow
//! by the wraps. Over links of their own, an entry with the key, and a path message afterwards, are less.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Secret};
use rand_core::CryptoRngCore;

use super::{MembershipChange, SealedEpoch, Strategy};
use crate::pairwise::Ratchet;
use crate::slots::Slot;
use crate::tree::{
    Algebra, Hierarchy, HmacXor, KeyTreeNode, PathMessage, PathNonce, Touched, WrapTree, group_key,
    height_for,
};
use crate::{Entry, EpochKind, Error, GroupKey, StrategyKind, Suite};

/// The tree of one term.
pub(crate) struct Tree<S: Suite> {
    nodes: Hierarchy<HmacXor<S>>,
}

impl<S: Suite> Tree<S> {
    pub(crate) fn new() -> Self {
        Self { nodes: Hierarchy::new(&[]) }
    }

    /// Makes the epoch's keys and wraps. The changes to the tree are in `touched`.
    fn rekey(
        &mut self,
        touched: &Touched,
        change: &MembershipChange<'_, S>,
        d0: &Digest,
        rng: &mut dyn CryptoRngCore,
    ) -> SealedEpoch {
        let fresh = &mut |_| Secret::random(rng);
        // §8.2, 6: of an opening all members have wraps, and nobody needs a path.
        let newcomers = if change.kind == EpochKind::Open { &[] } else { change.newcomers.as_slice() };
        // §8.2, 2 to 4: fresh keys, wraps, steps.
        let wraps = self.nodes.rekey(touched, change.removed, newcomers, d0, fresh);
        let wraps = WrapTree::pack(touched, &wraps);
        let root = KeyTreeNode { level: touched.height(), index: 0 };
        // §8.2, 5: K_g = PRF(n_root, "group key", D0). In an empty group the key has no holder.
        let key = match self.nodes.key(root) {
            Some(root) => group_key::<S>(root, d0),
            None => GroupKey::new(S::ID, fresh(root)),
        };
        // §8.3: entries_root, of the whole and of every part.
        let entries_root = wraps.root();
        SealedEpoch { key, entries: Vec::new(), wraps: Some(wraps), entries_root }
    }

    /// The key under each member's pad, for those that are not sent the wraps of an opening.
    fn entries(&self, change: &MembershipChange<'_, S>, key: &GroupKey, d0: &Digest) -> Vec<Entry> {
        let members = change.newcomers.iter();
        // §9.1: C_i = K_g ⊕ PRF(W_i[1], "wrap", D0 ‖ slot)
        let wrap = |slot, ratchet: &Ratchet<S>| key.wrap(&ratchet.pad(d0, slot));
        members.map(|(slot, ratchet)| Entry { slot: *slot, q: None, wrap: wrap(*slot, ratchet) }).collect()
    }
}

impl<S: Suite> Strategy<S> for Tree<S> {
    fn kind(&self) -> StrategyKind {
        StrategyKind::Tree
    }

    fn height_after(&self, change: &MembershipChange<'_, S>) -> u8 {
        // A tree of one leaf would have no root to take a key from.
        let before = self.nodes.height().max(1);
        // §8.1: a tree never shrinks within a term.
        change.highest.map_or(before, |slot| before.max(height_for(slot)))
    }

    fn seal(
        &mut self,
        mut change: MembershipChange<'_, S>,
        d0: &Digest,
        rng: &mut dyn CryptoRngCore,
    ) -> SealedEpoch {
        let height = self.height_after(&change);
        // §8.1: the key of a leaf is W[c] of the epoch with counter c.
        change.newcomers.iter_mut().for_each(|(_, ratchet)| ratchet.count_from(change.counter));
        if change.kind == EpochKind::Open {
            // §8.2, 1: all nodes above members are of R.
            let members = change.newcomers.iter().map(|(slot, _)| *slot).collect();
            self.nodes = Hierarchy::new(&change.newcomers);
            let sealed = self.rekey(&Touched::opening(height, &members), &change, d0, rng);
            return SealedEpoch { entries: self.entries(&change, &sealed.key, d0), ..sealed };
        }
        let rules = HmacXor::<S>::RULES;
        // §8.2, 1: R and A.
        let (before, MembershipChange { removed, added, .. }) = (self.nodes.height(), &change);
        let touched = if change.newcomers_follow {
            Touched::joining(before, height, removed, added)
        } else {
            Touched::new(before, height, removed, added, rules)
        };
        self.rekey(&touched, &change, d0, rng)
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
