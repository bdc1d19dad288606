//! The `tree` strategy: a logical key hierarchy (RFC 2627) over the slots, so that a leave costs O(log N).
//!
//! Every node with a member beneath has a key n; a member's leaf key is the chain W it shares with the
//! leader, and a member holds the keys above its own leaf and no other. K_g comes from the root's. An epoch
//! does this:
//!
//! | rule | code |
//! |---|---|
//! | R: ancestors of removed slots and new roots; the root if nothing changed. A: ancestors of added slots | `Touched` |
//! | s_v = PRF(s_c*, "up", v) for v ∈ R, if there is a first child c* ∈ R with a remaining member beneath, else fresh | `Hierarchy::rekey` |
//! | n_v* = PRF(s_v, "node", v) for v ∈ R; fresh for other nodes without a key | the same |
//! | wrap(v, c) = s_v ⊕ PRF(k_c, "wrap node", D0 ‖ v ‖ c) for each other child of v with a remaining member beneath | `HmacXor` |
//! | n⁺ = PRF(n*, "step", node) for what wrapped and for A | the same |
//! | K_g = PRF(n_root⁺, "group key", D0); wraps to everybody, or to each member those on its path, bound by entries_root | [`WrapTree`], [`Delta`] |
//! | n⁺ of its path and K_g to each newcomer and to who catches up, under its W of the epoch | [`PathMessage`] |
//!
//! W is stepped once per epoch, used or not: by a member when it accepts the epoch, by the leader when it
//! uses the leaf, and in the epoch after that.
//!
//! Removed members know only stars of nodes that are all in R; newcomers get keys only after a step; a key
//! that wrapped is stepped, so that what is stored opens nothing recorded; and no key is a function of *stored*
//! keys beneath it, so that none leads upwards but by a wrap: seeds are erased once the epoch is made or
//! accepted. (Seeds spare half of the wraps: Canetti et al., INFOCOM 1999; the path secrets of MLS, RFC 9420,
//! are of the same kind.)

mod algebra;
mod branch;
mod delta;
mod hierarchy;
mod message;
mod node;
mod path;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod symbolic;
#[cfg(test)]
mod vectors;
mod wrap_tree;

pub(crate) use self::algebra::{Algebra, HmacXor};
pub use self::delta::Delta;
pub(crate) use self::hierarchy::Hierarchy;
pub use self::message::{PathMessage, PathNonce};
pub(crate) use self::node::{KeyTreeNode, MAX_HEIGHT, Touched, height_for};
pub(crate) use self::path::Path;
pub use self::wrap_tree::WrapTree;
use quiver_crypto::{Digest, Secret, prf};

use crate::{Entry, GroupKey, Suite};

/// Part of an epoch for a member, beside the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EpochPart {
    /// The group key under the member's own pad.
    Entry(Entry),
    /// Wraps of the epoch: all of them, or a part in which the member's are.
    Delta(Delta),
    /// The member's path and the group key.
    Path(PathMessage),
}

/// K_g = PRF(n_root⁺, "group key", D0).
pub(crate) fn group_key<S: Suite>(root: &Secret<32>, d0: &Digest) -> GroupKey {
    GroupKey::new(S::ID, prf(root, S::ID, "group key", &[d0]))
}
