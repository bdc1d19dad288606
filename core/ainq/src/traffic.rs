//! Messages of a group under its traffic key.
//!
//! K_snd = PRF(K_tr, "sender", slot ‖ boot_no ‖ salt), nonce = 4 zero bytes ‖ counter, ChaCha20-Poly1305, at most 2^32
//! messages, AAD = D ‖ slot ‖ boot_no ‖ salt ‖ counter ‖ lp(channel).
//!
//! A sender counts its starts in `boot_no`, made durable before the first frame after each, and draws `salt` afresh for
//! every start and epoch. So a restart in the middle of an epoch repeats no pair of key and nonce, not even if its memory
//! was rolled back. If `boot_no` cannot be read it must not send but join again.
//!
//! The seal says "a member sent this", not which one: every member knows K_tr. Whatever must have a certain source carries
//! that source's signature besides. For the same reason a hostile member can silence another one until the next epoch, with a
//! frame in its name that claims a later start; nothing short of a signature on every frame would prevent that.

mod receiver;
mod window;

use alloc::vec::Vec;
use core::fmt;

use quiver_crypto::{Digest, Secret, aead, prf};
use rand_core::CryptoRngCore;

pub use self::receiver::{Ceiling, MAX_SENDERS, Receiver};
use crate::slots::Slot;
use crate::{Error, Name};

/// How many messages one sender seals under one key.
pub const MAX_FRAMES: u64 = 1 << 32;

/// Bytes of a salt.
pub const SALT_LEN: usize = 8;

/// K_tr = PRF(K_g, "traffic", D). Erased when dropped.
#[derive(Clone)]
pub struct TrafficKey {
    suite: &'static str,
    key: Secret<32>,
}

impl TrafficKey {
    pub(crate) const fn new(suite: &'static str, key: Secret<32>) -> Self {
        Self { suite, key }
    }

    fn sender(&self, slot: Slot, boot_no: u32, salt: &[u8; SALT_LEN]) -> Secret<32> {
        prf(&self.key, self.suite, "sender", &[&slot.to_be_bytes(), &boot_no.to_be_bytes(), salt])
    }
}

impl fmt::Debug for TrafficKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrafficKey(32 bytes)")
    }
}

/// A sealed message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Who says it sent this: a member's slot, or [`LEADER_SLOT`](crate::LEADER_SLOT).
    pub slot: Slot,
    /// The sender's start.
    pub boot_no: u32,
    /// Fresh for every start and epoch.
    pub salt: [u8; SALT_LEN],
    /// The number of the message, from 0.
    pub counter: u64,
    /// The sealed message, 16 bytes longer than the plaintext.
    pub ciphertext: Vec<u8>,
}

impl Frame {
    fn nonce(&self) -> [u8; 12] {
        nonce(self.counter)
    }
}

/// Seals one member's messages in one epoch. Not to be copied: two of the same would repeat nonces.
pub struct Sender {
    key: Secret<32>,
    digest: Digest,
    slot: Slot,
    boot_no: u32,
    salt: [u8; SALT_LEN],
    next: u64,
}

impl Sender {
    /// A sender for the epoch with header digest D. `salt` must be fresh and random for every call: see
    /// [`with_fresh_salt`](Self::with_fresh_salt). `boot_no` must be durable already.
    #[must_use]
    pub fn new(key: &TrafficKey, digest: Digest, slot: Slot, boot_no: u32, salt: [u8; SALT_LEN]) -> Self {
        let key = key.sender(slot, boot_no, &salt);
        Self { key, digest, slot, boot_no, salt, next: 0 }
    }

    /// As [`new`](Self::new) with a salt drawn here.
    #[must_use]
    pub fn with_fresh_salt(
        key: &TrafficKey,
        digest: Digest,
        slot: Slot,
        boot_no: u32,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Self {
        let mut salt = [0; SALT_LEN];
        rng.fill_bytes(&mut salt);
        Self::new(key, digest, slot, boot_no, salt)
    }

    /// Seals the next message.
    ///
    /// # Errors
    /// [`Error::Exhausted`] after 2^32 messages; the next epoch brings a new key.
    pub fn seal(&mut self, channel: &Name, plaintext: &[u8]) -> Result<Frame, Error> {
        if self.next >= MAX_FRAMES {
            return Err(Error::Exhausted);
        }
        let counter = self.next;
        // Counted before it is used: whatever happens below, this nonce does not come again.
        self.next += 1;
        let mut frame = Frame {
            slot: self.slot,
            boot_no: self.boot_no,
            salt: self.salt,
            counter,
            ciphertext: Vec::new(),
        };
        let aad = associated_data(&self.digest, &frame, channel);
        frame.ciphertext = aead::seal(&self.key, &frame.nonce(), &aad, plaintext);
        Ok(frame)
    }

    /// Leaves out numbers, so that the next message has number `counter`.
    ///
    /// # Errors
    /// [`Error::Stale`] if that number was used; [`Error::Exhausted`] if there is no such number.
    pub const fn skip_to(&mut self, counter: u64) -> Result<(), Error> {
        if counter < self.next {
            return Err(Error::Stale);
        }
        if counter >= MAX_FRAMES {
            return Err(Error::Exhausted);
        }
        self.next = counter;
        Ok(())
    }

    /// How many numbers are used.
    #[must_use]
    pub const fn sealed(&self) -> u64 {
        self.next
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Sender");
        debug.field("slot", &self.slot).field("boot_no", &self.boot_no).field("next", &self.next);
        debug.finish_non_exhaustive()
    }
}

/// 4 zero bytes ‖ counter.
fn nonce(counter: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce.iter_mut().skip(4).zip(counter.to_be_bytes()).for_each(|(to, from)| *to = from);
    nonce
}

/// D ‖ slot ‖ boot_no ‖ salt ‖ counter ‖ lp(channel).
fn associated_data(digest: &Digest, frame: &Frame, channel: &Name) -> Vec<u8> {
    let mut writer = quiver_crypto::canonical::Writer::new();
    writer.fixed(digest).u32(frame.slot).u32(frame.boot_no).fixed(&frame.salt).u64(frame.counter);
    writer.lp(channel.as_bytes());
    writer.finish()
}
