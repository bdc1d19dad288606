//! Re-key strategies: how a leader delivers a new group key, `Flat` (one wrap per member) or `Tree` (LKH, RFC
//! 2627).
//!
//! An epoch is made in two halves, because every wrap is bound to D0 and D0 to what the epoch changes:
//!
//! 1. [`Strategy::height_after`] says what the header must know of the change.
//! 2. The leader writes the core and hashes it to D0.
//! 3. [`Strategy::seal`] applies the change, draws what has to be fresh, wraps under D0, and yields the group
//!    key.
//!
//! [`Flat`] is the paper's: a fresh K_g wrapped for every member. [`Tree`] is a key hierarchy: its fresh
//! secrets are the refreshed nodes, its wraps hang on nodes and are bound by `entries_root`, its K_g is
//! derived from the root.

mod flat;
mod tree;

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_crypto::{Digest, Secret};
use rand_core::CryptoRngCore;

pub(crate) use self::flat::Flat;
pub(crate) use self::tree::Tree;
use crate::pairwise::Ratchet;
use crate::slots::{Slot, SlotSet};
use crate::tree::{PathMessage, PathNonce, WrapTree};
use crate::{Entry, EpochKind, Error, GroupKey, StrategyKind, Suite};

/// Changes of an epoch. Removal comes first: a freed slot may be filled again at once.
pub(crate) struct MembershipChange<'a, S: Suite> {
    pub(crate) kind: EpochKind,
    pub(crate) counter: u64,
    pub(crate) removed: &'a SlotSet,
    pub(crate) added: &'a SlotSet,
    /// The highest slot that is held after the change, by a member with or without a pairwise key.
    pub(crate) highest: Option<Slot>,
    /// Newcomers by ascending slot, each with the start of its chain.
    pub(crate) newcomers: Vec<(Slot, Ratchet<S>)>,
    /// True if they are to follow by wraps, under tree. No slot is both removed and added then.
    pub(crate) newcomers_follow: bool,
}

/// An epoch's key and how the members get it.
pub(crate) struct SealedEpoch {
    pub(crate) key: GroupKey,
    /// Entries by ascending slot. Under tree only when a term opens.
    pub(crate) entries: Vec<Entry>,
    /// Wraps of all nodes, under tree.
    pub(crate) wraps: Option<WrapTree>,
    pub(crate) entries_root: Digest,
}

/// The leader's half of a re-key strategy. It owns the members' ratchets.
pub(crate) trait Strategy<S: Suite>: Send + Sync {
    /// Name of the strategy in headers.
    fn kind(&self) -> StrategyKind;

    /// The tree's height after a change; 0 for flat.
    fn height_after(&self, change: &MembershipChange<'_, S>) -> u8;

    /// Makes the epoch.
    fn seal(
        &mut self,
        change: MembershipChange<'_, S>,
        d0: &Digest,
        rng: &mut dyn CryptoRngCore,
    ) -> SealedEpoch;

    /// Does the work that [`seal`](Self::seal) left for after the epoch is sent.
    fn settle(&mut self);

    /// A of the member in a slot.
    fn auth_key(&self, slot: Slot) -> Option<&Secret<32>>;

    /// The path message of a member in the epoch with header digest D, sealed under its chain at this epoch.
    ///
    /// # Errors
    /// [`Error::UnsupportedStrategy`] where there are no paths; [`Error::WrongSlot`] if the member has no
    /// key.
    fn path(
        &mut self,
        slot: Slot,
        digest: &Digest,
        r: &PathNonce,
        key: &GroupKey,
    ) -> Result<PathMessage, Error>;
}

/// The strategy of a kind, without members.
pub(crate) fn new<S: Suite>(kind: StrategyKind) -> Box<dyn Strategy<S>> {
    match kind {
        StrategyKind::Flat => Box::new(Flat::new()),
        StrategyKind::Tree => Box::new(Tree::new()),
    }
}
