//! How a term carries its group keys: the seam between leadership and what it leads by.
//!
//! An epoch is made in two halves, because every wrap is bound to D0 and D0 to what the epoch changes:
//!
//! 1. [`Strategy::plan`] looks at the change and says what the header must know and how many fresh secrets are needed.
//! 2. The leader writes the core and hashes it to D0.
//! 3. [`Strategy::seal`] applies the change, wraps under D0, steps every chain that wrapped, and yields the group key.
//!
//! [`Flat`] is the paper's: a fresh K_g wrapped for every member. A key hierarchy fits the same two halves: its fresh
//! secrets are the refreshed nodes, its wraps hang on nodes and are bound by `entries_root`, its K_g is derived from the
//! root, and the leaf keys are the very ratchets that come in here.

mod flat;

use alloc::vec::Vec;

use quiver_crypto::{Digest, Secret};

pub(crate) use self::flat::Flat;
use crate::pairwise::Ratchet;
use crate::slots::{Slot, SlotSet};
use crate::{Entry, Error, GroupKey, StrategyKind};

/// What an epoch changes. Removal comes first: a freed slot may be filled again at once.
pub(crate) struct Change<'a> {
    pub(crate) removed: &'a SlotSet,
    /// By ascending slot, each with its chain at u = 0.
    pub(crate) newcomers: Vec<(Slot, Ratchet)>,
}

/// What an epoch needs to know before D0 is.
pub(crate) struct Plan {
    /// The tree's height after the change; 0 for flat.
    pub(crate) height: u8,
    /// How many fresh random secrets [`Strategy::seal`] wants.
    pub(crate) fresh: usize,
}

/// An epoch's key and how the members get it.
pub(crate) struct Sealed {
    pub(crate) key: GroupKey,
    /// By ascending slot.
    pub(crate) entries: Vec<Entry>,
    pub(crate) entries_root: Digest,
}

/// The leader's half of a re-key strategy. It owns the members' ratchets.
pub(crate) trait Strategy: Send + Sync {
    /// What headers call it.
    fn kind(&self) -> StrategyKind;

    /// Plans an epoch. Changes nothing.
    fn plan(&self, change: &Change<'_>) -> Plan;

    /// Makes the planned epoch. On an error nothing has changed.
    fn seal(&mut self, change: Change<'_>, fresh: Vec<Secret<32>>, d0: &Digest) -> Result<Sealed, Error>;

    /// A of the member in a slot.
    fn auth_key(&self, slot: Slot) -> Option<&Secret<32>>;
}
