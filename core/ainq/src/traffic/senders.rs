//! Replay state by sender, bounded: a window for recent senders, a floor for the others (§13.5).
//!
//! A holder of K_tr can claim any slot, so the number of senders is not bounded by the roster. A receiver
//! keeps full windows (some 200 bytes) for the senders heard last. Of a sender that it forgets it keeps a
//! floor (16 bytes): its start and its next number. Nothing below a floor is accepted again, so forgetting
//! lets no replay in; what it costs is messages of that sender that were overtaken by others. When the floors
//! are full as well, senders not heard before are refused until the next epoch: that fails closed.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_crypto::Secret;

use super::window::Window;
use super::{SALT_LEN, Start, TrafficKey};
use crate::slots::Slot;
use crate::{Error, Handle};

/// Default number of senders of unsigned messages, and of signed ones, whose windows a receiver keeps.
pub const MAX_SENDERS: u32 = 1 << 16;

/// Number of further senders, for each of those, whose start and next number are remembered.
pub const REMEMBERED_PER_SENDER: u32 = 8;

/// Distance between the ceilings of one sender.
const CEILING_STEP: u64 = 64;

/// Identifies the messages of one sender: by its signature, or else by the slot that it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SenderId {
    /// The leader of the term. It signs.
    Leader,
    /// The signer whose handle begins with this.
    Signer(u64),
    /// An unsigned sender that claims this slot.
    Slot(Slot),
}

impl SenderId {
    pub(super) fn signer(handle: &Handle) -> Self {
        Self::Signer(handle.as_bytes().first_chunk().map_or(0, |head| u64::from_be_bytes(*head)))
    }

    /// Number of the sender among its kind.
    fn number(self) -> u64 {
        match self {
            Self::Leader => 0,
            Self::Signer(handle) => handle,
            Self::Slot(slot) => u64::from(slot),
        }
    }
}

/// Bound that a receiver must make durable before it acts on a message, if it is to continue an epoch after a
/// restart: nothing of this sender's start below `counter` will be accepted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// The sender.
    pub sender: SenderId,
    /// The slot that it claims.
    pub slot: Slot,
    /// Boot number of the start.
    pub boot_no: u32,
    /// Salt of the start.
    pub salt: [u8; SALT_LEN],
    /// The lowest message number that a restored receiver accepts.
    pub counter: u64,
}

/// The newest start of a sender.
pub(super) struct SenderStart {
    start: Start,
    pub(super) key: Secret<32>,
    window: Window,
    ceiling: u64,
    /// True if the ceiling rose since it was last read.
    risen: bool,
}

impl SenderStart {
    pub(super) fn new(traffic: &TrafficKey, start: Start, floor: u64) -> Self {
        let key = traffic.sender(&start);
        Self { start, key, window: Window::from(floor), ceiling: floor, risen: false }
    }

    /// Returns true if it is this start's, so that its key opens it.
    pub(super) fn is(&self, start: &Start) -> bool {
        self.start == *start
    }

    /// A lower start, or the same with another salt or slot, is not accepted; nor is a number received
    /// before.
    pub(super) fn accepts(&self, start: &Start, counter: u64) -> bool {
        // §13.5: of the same start the window decides; a later start begins a new one.
        if self.is(start) { self.window.accepts(counter) } else { start.boot_no > self.start.boot_no }
    }

    /// Marks a message that is accepted.
    pub(super) fn mark(&mut self, counter: u64) {
        self.window.mark(counter);
        // A ceiling is raised in steps, so that few messages wait for the disk.
        if self.window.next() > self.ceiling {
            self.ceiling = self.window.next().next_multiple_of(CEILING_STEP);
            self.risen = true;
        }
    }

    pub(super) fn take_risen(&mut self, sender: SenderId) -> Option<Ceiling> {
        let Start { slot, boot_no, salt } = self.start;
        let risen = core::mem::take(&mut self.risen);
        risen.then_some(Ceiling { sender, slot, boot_no, salt, counter: self.ceiling })
    }
}

/// State of a forgotten sender.
struct Floor {
    sender: u64,
    boot_no: u32,
    /// One more than the highest number received, or 2^32 − 1: then it sends nothing more.
    next: u32,
}

impl Floor {
    fn accepts(&self, start: &Start, counter: u64) -> bool {
        let goes_on = self.next < u32::MAX && counter >= u64::from(self.next);
        // §13.5: of the same start nothing below its next number.
        start.boot_no > self.boot_no || (start.boot_no == self.boot_no && goes_on)
    }
}

/// Senders of one kind: all that sign, or all that do not.
pub(super) struct TrafficSenders {
    limit: u32,
    /// Counts what was accepted.
    clock: u32,
    /// Senders, with the time at which each was last received. Boxed: a map makes room for eleven at once,
    /// and most receivers have one or two senders.
    recent: BTreeMap<u64, (u32, Box<SenderStart>)>,
    /// Ascending.
    floors: Vec<Floor>,
}

impl TrafficSenders {
    pub(super) const fn new(limit: u32) -> Self {
        Self { limit, clock: 0, recent: BTreeMap::new(), floors: Vec::new() }
    }

    pub(super) const fn limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    pub(super) fn get(&self, sender: SenderId) -> Option<&SenderStart> {
        self.recent.get(&sender.number()).map(|(_, source)| &**source)
    }

    /// Number of windows.
    pub(super) fn len(&self) -> usize {
        self.recent.len()
    }

    fn floor(&self, sender: u64) -> Result<usize, usize> {
        self.floors.binary_search_by_key(&sender, |floor| floor.sender)
    }

    /// Checks that a message may be accepted, if it opens.
    pub(super) fn check(&self, sender: SenderId, start: &Start, counter: u64) -> Result<(), Error> {
        let accepted = match (self.get(sender), self.floor(sender.number())) {
            (Some(source), _) => source.accepts(start, counter),
            (None, Ok(place)) => self.floors.get(place).is_some_and(|floor| floor.accepts(start, counter)),
            // §13.5: a full memory fails closed: no new sender rather than a replay.
            (None, Err(_)) if self.is_full() => return Err(Error::Exhausted),
            (None, Err(_)) => true,
        };
        if accepted { Ok(()) } else { Err(Error::Replay) }
    }

    /// Returns true if there is no room for a new sender.
    fn is_full(&self) -> bool {
        let remembered = (self.limit as usize).saturating_mul(REMEMBERED_PER_SENDER as usize);
        self.recent.len() >= self.limit as usize && self.floors.len() >= remembered
    }

    /// Marks a message that was [checked](Self::check).
    pub(super) fn mark(&mut self, traffic: &TrafficKey, sender: SenderId, start: Start, counter: u64) {
        self.clock = self.clock.saturating_add(1);
        let (number, clock) = (sender.number(), self.clock);
        match self.recent.get_mut(&number) {
            Some((heard, source)) => {
                *heard = clock;
                // §13.5: a lower boot number was dropped before; a higher one begins anew.
                if !source.is(&start) {
                    **source = SenderStart::new(traffic, start, 0);
                }
                source.mark(counter);
            }
            None => {
                let floor = self.floor(number).map(|place| self.floors.remove(place));
                let floor =
                    floor.map_or(
                        0,
                        |floor| {
                            if floor.boot_no == start.boot_no { u64::from(floor.next) } else { 0 }
                        },
                    );
                // §13.5: nothing below the floor is ever received again in this epoch.
                let mut source = SenderStart::new(traffic, start, floor);
                source.mark(counter);
                self.insert(sender, source);
            }
        }
    }

    /// Adds a sender, and forgets the one received least recently if there is no room.
    pub(super) fn insert(&mut self, sender: SenderId, source: SenderStart) {
        if self.recent.len() >= self.limit as usize {
            let oldest = self.recent.iter().min_by_key(|(_, (heard, _))| *heard).map(|(number, _)| *number);
            if let Some(number) = oldest {
                self.forget(number);
            }
        }
        self.recent.insert(sender.number(), (self.clock, Box::new(source)));
    }

    fn forget(&mut self, number: u64) {
        let Some((_, source)) = self.recent.remove(&number) else { return };
        let next = u32::try_from(source.window.next()).unwrap_or(u32::MAX);
        // §13.5: boot number and next counter stay of a sender that is forgotten.
        let floor = Floor { sender: number, boot_no: source.start.boot_no, next };
        if let Err(place) = self.floor(number) {
            self.floors.insert(place, floor);
        }
    }

    pub(super) fn take_risen(&mut self, id: impl Fn(u64) -> SenderId) -> impl Iterator<Item = Ceiling> {
        self.recent.iter_mut().filter_map(move |(number, (_, source))| source.take_risen(id(*number)))
    }
}
