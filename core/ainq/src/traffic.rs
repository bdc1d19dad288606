//! Messages of a group under its traffic key (§13).
//!
//! ```text
//! K_snd   = PRF(K_tr, "sender", slot ‖ boot_no ‖ salt)          at most 2^32 messages
//! K_hedge = PRF(K_tr, "hedge", slot ‖ boot_no ‖ salt)
//! AAD     = D ‖ slot ‖ boot_no ‖ salt ‖ counter ‖ lp(channel) ‖ (0 | 1 ‖ the signer's handle)
//! hedge   = the first 8 bytes of PRF(K_hedge, "nonce", AAD ‖ plaintext)
//! sealed  = ChaCha20-Poly1305 under K_snd, nonce = hedge ‖ counter (4 bytes), AAD
//! ```
//!
//! A sender counts its starts in `boot_no`, made durable before the first frame after each, and draws `salt`
//! afresh for every start and epoch. So a restart in the middle of an epoch repeats no pair of key and nonce,
//! not even if its storage was rolled back. If `boot_no` cannot be read it must not send but join again.
//!
//! A snapshot of a *running* machine brings back key, salt and counter without a start. The hedge covers it:
//! copies of one sender repeat a nonce only for the same message, which is then the same frame, or with a
//! probability of 2^-64.
//!
//! The seal says "a member sent this", not which one: every member knows K_tr. A message that must have a
//! certain source carries that source's signature besides, and the seal binds whose: the signature cannot be
//! cut off. For the same reason a hostile member can silence the *unsigned* messages of another until the
//! next epoch, with a frame in its name that claims a later start; nothing short of a signature on every
//! frame would prevent that. Signed ones are counted by signer, apart.

mod epoch_keys;
mod receiver;
mod senders;
mod window;

use alloc::vec::Vec;

use quiver_crypto::{Digest, Secret, Zeroizing, aead, prf};
use rand_core::CryptoRngCore;

pub use self::epoch_keys::EpochKeys;
pub use self::receiver::{Opened, Receiver};
pub use self::senders::{Ceiling, MAX_SENDERS, REMEMBERED_PER_SENDER, SenderId};
pub use self::window::{WINDOW, Window};
use crate::slots::Slot;
use crate::{Error, Handle, Name};

/// Number of messages that one sender seals under one key.
pub const MAX_FRAMES: u64 = 1 << 32;

/// Bytes of a salt.
pub const SALT_LEN: usize = 8;

/// Bytes of a nonce that depend on the message.
pub const HEDGE_LEN: usize = 8;

/// K_tr = PRF(K_g, "traffic", D). Erased when dropped.
#[derive(Clone, derive_more::Debug)]
#[debug("TrafficKey(32 bytes)")]
pub struct TrafficKey {
    suite: &'static str,
    key: Secret<32>,
}

impl TrafficKey {
    pub(crate) const fn new(suite: &'static str, key: Secret<32>) -> Self {
        Self { suite, key }
    }

    /// K_snd.
    fn sender(&self, start: &Start) -> Secret<32> {
        self.of_start("sender", start)
    }

    /// K_hedge.
    fn hedge(&self, start: &Start) -> Secret<32> {
        self.of_start("hedge", start)
    }

    /// The key of a sender's datagrams (§20.2).
    #[must_use]
    pub fn datagram_key(&self, start: &Start) -> Secret<16> {
        first_half(&self.of_start("datagram", start))
    }

    /// The key of a sender's announcements (§20.2).
    #[must_use]
    pub fn announcement_key(&self, start: &Start) -> Secret<16> {
        first_half(&self.of_start("announcement", start))
    }

    fn of_start(&self, label: &str, start: &Start) -> Secret<32> {
        let Start { slot, boot_no, salt } = start;
        // §13.1: one key per slot, boot number and salt.
        prf(&self.key, self.suite, label, &[&slot.to_be_bytes(), &boot_no.to_be_bytes(), salt])
    }
}

/// The first 16 bytes, in a place that is erased.
fn first_half(key: &Secret<32>) -> Secret<16> {
    let mut half = Zeroizing::new([0; 16]);
    half.iter_mut().zip(key.expose()).for_each(|(to, from)| *to = *from);
    Secret::new(*half)
}

/// A sealed message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedMessage {
    /// The claimed sender: a member's slot, or [`LEADER_SLOT`](crate::LEADER_SLOT).
    pub slot: Slot,
    /// The sender's start.
    pub boot_no: u32,
    /// Fresh for every start and epoch.
    pub salt: [u8; SALT_LEN],
    /// The number of the message, from 0.
    pub counter: u64,
    /// The part of the nonce that depends on the message.
    pub hedge: [u8; HEDGE_LEN],
    /// The sealed message, 16 bytes longer than the plaintext.
    pub ciphertext: Vec<u8>,
}

impl SealedMessage {
    const fn start(&self) -> Start {
        Start { slot: self.slot, boot_no: self.boot_no, salt: self.salt }
    }

    /// hedge ‖ counter.
    fn nonce(&self) -> [u8; 12] {
        let mut nonce = [0; 12];
        // Below 2^32, so that its upper half is zero.
        let [_, _, _, _, counter @ ..] = self.counter.to_be_bytes();
        let bytes = self.hedge.iter().chain(&counter);
        nonce.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        nonce
    }
}

/// One start of a sender: what K_snd and the keys of its datagrams are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// A member's slot, or [`LEADER_SLOT`](crate::LEADER_SLOT).
    pub slot: Slot,
    /// Counts the sender's starts.
    pub boot_no: u32,
    /// Random, so that a start whose number was rolled back is another start.
    pub salt: [u8; SALT_LEN],
}

/// Seals one member's messages in one epoch. Not to be copied: a receiver takes of two copies' messages one
/// of each number.
#[derive(derive_more::Debug)]
#[debug("Sender {{ slot: {}, boot_no: {}, next: {next}, .. }}", start.slot, start.boot_no)]
pub struct Sender {
    suite: &'static str,
    key: Secret<32>,
    hedge: Secret<32>,
    digest: Digest,
    start: Start,
    next: u64,
}

impl Sender {
    /// A sender for the epoch with header digest D. `salt` must be fresh and random for every call: see
    /// [`with_fresh_salt`](Self::with_fresh_salt). `boot_no` must be durable already.
    #[must_use]
    pub fn new(key: &TrafficKey, digest: Digest, slot: Slot, boot_no: u32, salt: [u8; SALT_LEN]) -> Self {
        let start = Start { slot, boot_no, salt };
        Self { suite: key.suite, key: key.sender(&start), hedge: key.hedge(&start), digest, start, next: 0 }
    }

    /// Makes a sender as [`new`](Self::new) does, with a salt drawn here.
    #[must_use]
    pub fn with_fresh_salt(
        key: &TrafficKey,
        digest: Digest,
        slot: Slot,
        boot_no: u32,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Self {
        let mut salt = [0; SALT_LEN];
        // §13.2: 8 random bytes per start and epoch.
        rng.fill_bytes(&mut salt);
        Self::new(key, digest, slot, boot_no, salt)
    }

    /// Seals the next message, bound to the key that is going to sign it, if one is.
    ///
    /// # Errors
    /// [`Error::Exhausted`] after 2^32 messages; the next epoch brings a new key.
    pub fn seal(
        &mut self,
        channel: &Name,
        signer: Option<&Handle>,
        plaintext: &[u8],
    ) -> Result<SealedMessage, Error> {
        // §13.1: at most 2^32 messages under one key.
        if self.next >= MAX_FRAMES {
            return Err(Error::Exhausted);
        }
        let counter = self.next;
        // Counted before it is used: whatever happens below, this number does not come again.
        self.next += 1;
        let Start { slot, boot_no, salt } = self.start;
        let mut frame =
            SealedMessage { slot, boot_no, salt, counter, hedge: [0; HEDGE_LEN], ciphertext: Vec::new() };
        let aad = associated_data(&self.digest, &frame, channel, signer);
        // §13.1: hedge = PRF(K_hedge, "nonce", AAD ‖ plaintext). The AAD marks its own end, so that the
        // input has one reading.
        let hedge = prf(&self.hedge, self.suite, "nonce", &[&aad, plaintext]);
        frame.hedge.iter_mut().zip(hedge.expose()).for_each(|(to, from)| *to = *from);
        // §13.1: under K_snd, nonce = hedge ‖ counter.
        frame.ciphertext = aead::seal(&self.key, &frame.nonce(), &aad, plaintext);
        Ok(frame)
    }

    /// Skips numbers, so that the next message has number `counter`.
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

    /// Number of used numbers.
    #[must_use]
    pub const fn sealed(&self) -> u64 {
        self.next
    }
}

/// D ‖ slot ‖ boot_no ‖ salt ‖ counter ‖ lp(channel) ‖ (0 | 1 ‖ the signer's handle).
fn associated_data(
    digest: &Digest,
    frame: &SealedMessage,
    channel: &Name,
    signer: Option<&Handle>,
) -> Vec<u8> {
    let mut writer = quiver_crypto::canonical::Writer::new();
    writer.fixed(digest).u32(frame.slot).u32(frame.boot_no).fixed(&frame.salt).u64(frame.counter);
    writer.lp(channel.as_bytes());
    // §13.3: the seal binds the signer, so that nobody cuts the signature off.
    match signer {
        None => writer.u8(0),
        Some(signer) => writer.u8(1).fixed(signer.as_bytes()),
    };
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ristretto255, Suite};

    /// Made by `proto/datagram/tests/vectors/make.py`.
    #[test]
    fn keys_of_datagrams_are_those_of_another_implementation() {
        let traffic =
            TrafficKey::new(Ristretto255::ID, Secret::new(core::array::from_fn(|place| place as u8)));
        for (slot, boot_no, salt, datagrams, announcements) in [
            (
                0,
                1,
                "0000000000000000",
                "dd0db44b0bf284af47635465c6511dfb",
                "17c1bb95d4efb5008bbf19541774d5d1",
            ),
            (
                5,
                16909060,
                "0001020304050607",
                "580ab9d9a56937641a9abbbfe54e1cd6",
                "c43eaf1fca284fb229a525019c46028b",
            ),
            (
                1048576,
                7,
                "ffffffffffffffff",
                "416ed1d74b4233c8a147020b006213e5",
                "61c6baf0bcfa75feace58a42d4a59545",
            ),
        ] {
            let salt = hex::decode(salt).unwrap().try_into().unwrap();
            let start = Start { slot, boot_no, salt };
            assert_eq!(hex::encode(traffic.datagram_key(&start).expose()), datagrams);
            assert_eq!(hex::encode(traffic.announcement_key(&start).expose()), announcements);
        }
    }
}
