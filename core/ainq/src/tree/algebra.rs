//! The tree's operations on keys, generic over what a key is.
//!
//! The tree's own code decides who gets which key; the representation of a key and of its wrap is that of an
//! [`Algebra`]. The protocol has one, [`HmacXor`]. Tests have another, of symbols, and so explore by the
//! thousand what the very code that runs in production gives away; see the tests of this module.

use core::marker::PhantomData;

use quiver_crypto::{Digest, PrfKey, Secret, prf, prf_each};

use super::KeyTreeNode;
use crate::Suite;
use crate::pairwise::Ratchet;

/// The rules whose necessity the tests show by dropping one at a time. The protocol keeps them all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A node's key that wrapped is stepped.
    pub(crate) step_after_use: bool,
    /// A leaf's key is of one epoch alone.
    pub(crate) step_per_epoch: bool,
    /// Keys above a newcomer are stepped before it gets them.
    pub(crate) step_on_join: bool,
    /// A leaver's whole path is refreshed, down to the node just above its leaf.
    pub(crate) refresh_above_leaves: bool,
    /// A seed follows from a seed, not from the key that is made of it and kept.
    pub(crate) seeds_apart: bool,
}

impl Rules {
    pub(crate) const ALL: Self = Self {
        step_after_use: true,
        step_per_epoch: true,
        step_on_join: true,
        refresh_above_leaves: true,
        seeds_apart: true,
    };
}

/// Position of a wrap: under D0, to `child`, which gets `parent`'s seed from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrapPosition<'a> {
    pub(crate) d0: &'a Digest,
    pub(crate) parent: KeyTreeNode,
    pub(crate) child: KeyTreeNode,
}

/// Keys of nodes and of leaves, seeds that live for one epoch's making, and what is done with them.
pub(crate) trait Algebra {
    /// A node's key, or its seed as it is drawn and wrapped.
    type Key: Clone;
    /// A seed from which keys and seeds are to follow.
    type Seed;
    /// A member's chain: the key of an epoch.
    type Leaf: LeafKeyChain<Key = Self::Key>;
    /// A seed under a key.
    type Wrap;

    const RULES: Rules = Rules::ALL;

    /// `seed` under `under`, and what `under` becomes by it.
    fn wrap(place: &WrapPosition<'_>, under: &Self::Key, seed: &Self::Key) -> (Self::Wrap, Self::Key);
    /// Inverse of [`wrap`](Self::wrap), and the step of `under`. The seed is not verified yet.
    fn unwrap(place: &WrapPosition<'_>, under: &Self::Key, wrap: &Self::Wrap) -> (Self::Key, Self::Key);
    /// Opens a wrap as [`unwrap`](Self::unwrap) does, without the step of `under`: a leaf's key is stepped by
    /// its chain.
    fn open(place: &WrapPosition<'_>, under: &Self::Key, wrap: &Self::Wrap) -> Self::Key {
        Self::unwrap(place, under, wrap).0
    }
    /// A seed, ready for what follows from it.
    fn seed(seed: &Self::Key) -> Self::Seed;
    /// s_v = PRF(s_c, "up", v): the seed of a node from its child's.
    fn raise(node: KeyTreeNode, seed: &Self::Seed) -> Self::Key;
    /// n* = PRF(s, "node", v): the key of a node from its seed.
    fn key_of(node: KeyTreeNode, seed: &Self::Seed) -> Self::Key;
    /// n⁺ = PRF(n, "step", node).
    fn step(node: KeyTreeNode, key: &Self::Key) -> Self::Key;
}

/// A leaf's key, which goes forward only, with the counter of the epochs.
pub(crate) trait LeafKeyChain: Clone {
    type Key;
    fn key(&self) -> &Self::Key;
    /// The key of the epoch of this counter, however far that is. Never back.
    fn catch_up_with(&mut self, counter: u64);
}

/// Keys of 32 bytes, HMAC-SHA-256 and ⊕.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HmacXor<S>(PhantomData<S>);

const WRAP: &str = "wrap node";
const UP: &str = "up";
const KEY: &str = "node";
const STEP: &str = "step";

impl<S: Suite> HmacXor<S> {
    /// PRF(k_c, "wrap node", D0 ‖ v ‖ c) and PRF(k_c, "step", c).
    fn pad_and_step(place: &WrapPosition<'_>, under: &Secret<32>) -> [Secret<32>; 2] {
        // §8.2, 3 and 4: the pad of the wrap, and the step of the key that wraps.
        let (parent, child) = (place.parent.encode(), place.child.encode());
        prf_each(under, S::ID, [(WRAP, &[place.d0, &parent, &child]), (STEP, &[&child])])
    }
}

impl<S: Suite> Algebra for HmacXor<S> {
    type Key = Secret<32>;
    /// Hashed once for both that follow from it.
    type Seed = PrfKey;
    type Leaf = Ratchet<S>;
    type Wrap = [u8; 32];

    fn wrap(place: &WrapPosition<'_>, under: &Secret<32>, seed: &Secret<32>) -> ([u8; 32], Secret<32>) {
        // §8.2, 3: wrap(v,c) = s_v ⊕ PRF(k_c, "wrap node", D0 ‖ v ‖ c)
        let [pad, stepped] = Self::pad_and_step(place, under);
        (seed.xor(&pad), stepped)
    }

    fn unwrap(place: &WrapPosition<'_>, under: &Secret<32>, wrap: &[u8; 32]) -> (Secret<32>, Secret<32>) {
        let [pad, stepped] = Self::pad_and_step(place, under);
        (pad.unmask(wrap), stepped)
    }

    fn open(place: &WrapPosition<'_>, under: &Secret<32>, wrap: &[u8; 32]) -> Secret<32> {
        let (parent, child) = (place.parent.encode(), place.child.encode());
        // §8.2, 4: leaves do not step here.
        prf(under, S::ID, WRAP, &[place.d0, &parent, &child]).unmask(wrap)
    }

    fn seed(seed: &Secret<32>) -> PrfKey {
        PrfKey::new(seed)
    }

    fn raise(node: KeyTreeNode, seed: &PrfKey) -> Secret<32> {
        // §8.2, 2: s_v = PRF(s_c, "up", v).
        seed.prf(S::ID, UP, &[&node.encode()])
    }

    fn key_of(node: KeyTreeNode, seed: &PrfKey) -> Secret<32> {
        // §8.2, 2: n_v* = PRF(s_v, "node", v).
        seed.prf(S::ID, KEY, &[&node.encode()])
    }

    fn step(node: KeyTreeNode, key: &Secret<32>) -> Secret<32> {
        // §8.2, 4: n = PRF(n*, "step", node).
        prf(key, S::ID, STEP, &[&node.encode()])
    }
}

impl<S: Suite> LeafKeyChain for Ratchet<S> {
    type Key = Secret<32>;

    fn key(&self) -> &Secret<32> {
        self.chain()
    }

    fn catch_up_with(&mut self, counter: u64) {
        Self::catch_up_with(self, counter);
    }
}
