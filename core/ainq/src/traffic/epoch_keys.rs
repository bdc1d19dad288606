//! An epoch as the group's datagrams need it: its traffic key, and under what the member sends (§20.2).

use core::time::Duration;

use quiver_crypto::Digest;

use super::TrafficKey;
use crate::slots::Slot;
use crate::{DronePublicKey, Epoch, Handle, Suite};

/// The key of an epoch that a member holds and knows to be current. Erased when dropped.
#[derive(Clone, Debug)]
pub struct EpochKeys<S: Suite> {
    /// The epoch.
    pub epoch: Epoch,
    /// D of that epoch.
    pub digest: Digest,
    /// K_tr.
    pub traffic: TrafficKey,
    /// The slot that the member sends from, or [`LEADER_SLOT`](crate::LEADER_SLOT).
    pub slot: Slot,
    /// The member's start, durable already.
    pub boot_no: u32,
    /// The leader of the term.
    pub leader: Handle,
    /// No member has this slot or one above.
    pub slots: Slot,
    /// The key that the member can sign with; `None` for an anonymous one.
    pub signer: Option<DronePublicKey<S>>,
    /// D of the epoch before, if its key may go on receiving for a while: this one is of the same term and
    /// removed nobody (§13.10).
    pub continues: Option<Digest>,
    /// Time until the key is no longer valid.
    pub valid_for: Duration,
}
