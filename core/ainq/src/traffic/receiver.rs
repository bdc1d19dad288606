//! The receiving side of one epoch.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;

use quiver_crypto::{Digest, Secret, Zeroizing, aead};

use super::window::Window;
use super::{Frame, MAX_FRAMES, SALT_LEN, TrafficKey, associated_data};
use crate::slots::{LEADER_SLOT, Slot};
use crate::{Error, Name};

/// How many senders a receiver keeps track of in one epoch.
pub const MAX_SENDERS: usize = 1 << 16;

/// How far apart the ceilings of one sender are.
const CEILING_STEP: u64 = 64;

/// What a receiver that wants to go on with an epoch after a restart must have made durable before it acts on a message:
/// nothing of this sender's start below `counter` will be accepted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// The sender.
    pub slot: Slot,
    /// Its start.
    pub boot_no: u32,
    /// Its salt.
    pub salt: [u8; SALT_LEN],
    /// The lowest message number that a restored receiver accepts.
    pub counter: u64,
}

/// Opens the messages of one epoch, each once.
///
/// A receiver belongs to the run that activated the epoch. After a restart there must not be another for the same epoch,
/// unless it is [`restore`](Self::restore)d from durable ceilings.
pub struct Receiver {
    key: TrafficKey,
    digest: Digest,
    /// In boxes: a map makes room for eleven at once, and most receivers hear from one or two.
    senders: BTreeMap<Slot, Box<Source>>,
    risen: BTreeSet<Slot>,
}

/// The newest start of a sender.
struct Source {
    boot_no: u32,
    salt: [u8; SALT_LEN],
    key: Secret<32>,
    window: Window,
    ceiling: u64,
}

impl Source {
    fn new(traffic: &TrafficKey, slot: Slot, boot_no: u32, salt: [u8; SALT_LEN], floor: u64) -> Self {
        let key = traffic.sender(slot, boot_no, &salt);
        Self { boot_no, salt, key, window: Window::from(floor), ceiling: floor }
    }

    /// A lower start, or the same with another salt, is dropped.
    fn supersedes(&self, frame: &Frame) -> bool {
        frame.boot_no < self.boot_no || (frame.boot_no == self.boot_no && frame.salt != self.salt)
    }

    /// Marks a message that opened; whether the ceiling rose with it.
    fn mark(&mut self, number: u64) -> bool {
        self.window.mark(number);
        let risen = self.window.next() > self.ceiling;
        if risen {
            self.ceiling = self.window.next().next_multiple_of(CEILING_STEP);
        }
        risen
    }
}

impl Receiver {
    /// A receiver for the epoch with header digest D, just activated.
    #[must_use]
    pub const fn new(key: TrafficKey, digest: Digest) -> Self {
        Self { key, digest, senders: BTreeMap::new(), risen: BTreeSet::new() }
    }

    /// A receiver for an epoch that was current when the program stopped. `ceilings` must be all that
    /// [`take_risen_ceilings`](Self::take_risen_ceilings) ever gave for this epoch, the newest per sender.
    #[must_use]
    pub fn restore(key: TrafficKey, digest: Digest, ceilings: impl IntoIterator<Item = Ceiling>) -> Self {
        let mut receiver = Self::new(key, digest);
        for Ceiling { slot, boot_no, salt, counter } in ceilings {
            let source = Source::new(&receiver.key, slot, boot_no, salt, counter);
            receiver.senders.insert(slot, Box::new(source));
        }
        receiver
    }

    /// D of the epoch.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Opens a message. The source is a member; which one, only a signature inside can tell.
    ///
    /// # Errors
    /// [`Error::WrongSlot`] or [`Error::Malformed`] for a slot or number no sender has; [`Error::Replay`] if it was received
    /// before, may have been, or its sender has started anew since; [`Error::SealBroken`] if it is not of this epoch,
    /// sender and channel; [`Error::Exhausted`] beyond [`MAX_SENDERS`]. Nothing has changed then.
    pub fn open(&mut self, frame: &Frame, channel: &Name) -> Result<Zeroizing<Vec<u8>>, Error> {
        if frame.slot > LEADER_SLOT {
            return Err(Error::WrongSlot);
        }
        if frame.counter >= MAX_FRAMES {
            return Err(Error::Malformed("frame number"));
        }
        let aad = associated_data(&self.digest, frame, channel);
        let known = self.senders.get_mut(&frame.slot);
        if let Some(source) = known {
            if source.supersedes(frame) {
                return Err(Error::Replay);
            }
            if source.boot_no == frame.boot_no {
                if !source.window.accepts(frame.counter) {
                    return Err(Error::Replay);
                }
                let plaintext = aead::open(&source.key, &frame.nonce(), &aad, &frame.ciphertext)?;
                if source.mark(frame.counter) {
                    self.risen.insert(frame.slot);
                }
                return Ok(plaintext);
            }
        }
        self.open_first(frame, &aad)
    }

    /// The first message of a sender's start: its window is created only after the message opened.
    fn open_first(&mut self, frame: &Frame, aad: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut source = Source::new(&self.key, frame.slot, frame.boot_no, frame.salt, 0);
        let plaintext = aead::open(&source.key, &frame.nonce(), aad, &frame.ciphertext)?;
        if self.senders.len() >= MAX_SENDERS && !self.senders.contains_key(&frame.slot) {
            return Err(Error::Exhausted);
        }
        source.mark(frame.counter);
        self.senders.insert(frame.slot, Box::new(source));
        self.risen.insert(frame.slot);
        Ok(plaintext)
    }

    /// The ceilings that rose since the last call, one per sender: every 64 messages, and with a sender's first. Who wants
    /// to restore this receiver makes them durable before acting on what was opened.
    pub fn take_risen_ceilings(&mut self) -> Vec<Ceiling> {
        let risen = core::mem::take(&mut self.risen);
        let ceiling = |slot| {
            let source = self.senders.get(&slot)?;
            Some(Ceiling { slot, boot_no: source.boot_no, salt: source.salt, counter: source.ceiling })
        };
        risen.into_iter().filter_map(ceiling).collect()
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("senders", &self.senders.len()).finish_non_exhaustive()
    }
}
