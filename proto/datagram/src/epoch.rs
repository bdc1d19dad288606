//! An epoch of the datagrams: its keys, this member's numbers in it, the senders heard. §20.2.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::traffic::{Start, TrafficKey};
use quiver_ainq::{DronePublicKey, Epoch, EpochKeys, Handle, LEADER_SLOT, Slot, Suite};
use quiver_crypto::{Digest, Secret};

use crate::body::Hash;
use crate::header::Hint;
use crate::senders::Senders;

/// An epoch.
pub(crate) struct DatagramEpoch<S: Suite> {
    pub(crate) epoch: Epoch,
    pub(crate) digest: Digest,
    pub(crate) leader: Handle,
    slots: Slot,
    /// `None` if the epoch is closed: what was received stays known, so that nothing is received twice if the
    /// same epoch opens again.
    pub(crate) keys: Option<Keys>,
    pub(crate) own: OwnNumbers<S>,
    pub(crate) senders: Senders<S>,
    /// Number of tags that did not hold.
    pub(crate) forged: u64,
}

/// The secrets of an epoch.
pub(crate) struct Keys {
    pub(crate) traffic: TrafficKey,
    /// Key of this member's datagrams.
    pub(crate) own: Secret<16>,
    /// Key of this member's announcements.
    pub(crate) announcements: Secret<16>,
}

impl Keys {
    fn new(traffic: TrafficKey, start: &Start) -> Self {
        let (own, announcements) = (traffic.datagram_key(start), traffic.announcement_key(start));
        Self { traffic, own, announcements }
    }
}

/// Numbers of its start in the epoch that this member has used up.
pub(crate) struct OwnNumbers<S: Suite> {
    pub(crate) start: Start,
    /// The next unsigned datagram, the next signed one, the next announcement.
    unsigned: u32,
    signed: u32,
    announcements: u32,
    pub(crate) signer: Option<DronePublicKey<S>>,
    /// Key and signature of its announcements, once they are signed; and the number of a signed datagram that they are
    /// for, or 0.
    pub(crate) signed_part: Option<Vec<u8>>,
    pub(crate) signed_for: u32,
    /// Hashes of what was sent unsigned since the last manifest; the first is under this number.
    pub(crate) hashes: Vec<Hash>,
    pub(crate) hashes_from: u32,
    /// Time at which the next manifest is due.
    pub(crate) manifest: Option<Duration>,
    /// Time at which the next announcement is due, if there is anything to send.
    pub(crate) announce: Duration,
    /// True if the next announcement is to be with the key, or others asked for any.
    pub(crate) key_due: bool,
    pub(crate) asked: bool,
    pub(crate) last_announcement: Option<Duration>,
}

impl<S: Suite> OwnNumbers<S> {
    fn new(start: Start, signer: Option<DronePublicKey<S>>, announce: Duration, key_due: bool) -> Self {
        Self {
            start,
            unsigned: 0,
            signed: 0,
            announcements: 0,
            signer,
            signed_part: None,
            signed_for: 0,
            hashes: Vec::new(),
            hashes_from: 0,
            manifest: None,
            announce,
            key_due,
            asked: false,
            last_announcement: None,
        }
    }

    /// The next number; never the same twice. `None` when they are used up.
    pub(crate) fn take(&mut self, signed: bool) -> Option<u32> {
        take(if signed { &mut self.signed } else { &mut self.unsigned })
    }

    pub(crate) fn take_announcement(&mut self) -> Option<u32> {
        take(&mut self.announcements)
    }

    /// The number of the next datagram.
    pub(crate) fn next(&self, signed: bool) -> u32 {
        if signed { self.signed } else { self.unsigned }
    }

    /// Number of announcements made.
    pub(crate) fn announced(&self) -> u32 {
        self.announcements
    }
}

/// Counted before it is used: whatever happens then, it does not come again.
fn take(next: &mut u32) -> Option<u32> {
    let taken = *next;
    // §20.2: the last number there is stays unused.
    *next = taken.checked_add(1)?;
    Some(taken)
}

impl<S: Suite> DatagramEpoch<S> {
    /// `announce` is when the first announcement is due; `key_due` whether with the key.
    pub(crate) fn new(
        keys: EpochKeys<S>,
        start: Start,
        senders: Senders<S>,
        (announce, key_due): (Duration, bool),
    ) -> Self {
        Self {
            epoch: keys.epoch,
            digest: keys.digest,
            leader: keys.leader,
            slots: keys.slots,
            keys: Some(Keys::new(keys.traffic, &start)),
            own: OwnNumbers::new(start, keys.signer, announce, key_due),
            senders,
            forged: 0,
        }
    }

    /// Opens the same epoch again, perhaps under another start.
    pub(crate) fn reopen(&mut self, keys: EpochKeys<S>, start: Start, now: Duration) {
        self.senders.set_keys(Some(&keys.traffic));
        self.keys = Some(Keys::new(keys.traffic, &start));
        // §20.2: under the same start, numbers go on where they were, so that no nonce repeats.
        if self.own.start != start {
            self.own = OwnNumbers::new(start, keys.signer, now, true);
        }
    }

    /// Erases all secrets.
    pub(crate) fn close(&mut self) {
        self.keys = None;
        // The senders' windows stay, so that an epoch which opens again receives nothing twice.
        self.senders.set_keys(None);
    }

    pub(crate) fn hint(&self) -> Hint {
        Hint::of(&self.epoch)
    }

    /// Returns true if a member, or the leader, can have this slot.
    pub(crate) fn has_slot(&self, slot: Slot) -> bool {
        slot == LEADER_SLOT || slot < self.slots
    }
}
