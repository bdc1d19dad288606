//! Opens messages of one epoch: decryption, then replay check.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_crypto::{Digest, Zeroizing, aead};

use super::senders::{Ceiling, MAX_SENDERS, SenderId, SenderStart, TrafficSenders};
use super::{MAX_FRAMES, SealedMessage, Start, TrafficKey, associated_data};
use crate::slots::{LEADER_SLOT, MAX_SLOTS, Slot};
use crate::{Error, Handle, Name};

/// Opens the messages of one epoch, each once.
///
/// [`open`](Self::open) decrypts and changes nothing; only an
/// [accepted](Self::accept) message moves a window. Between the two the caller verifies the signature, if
/// there is to be one: a message whose signature is forged silences nobody.
///
/// A receiver belongs to the run that activated the epoch. After a restart there must not be another for the
/// same epoch, unless it is [`restore`](Self::restore)d from durable ceilings.
#[derive(derive_more::Debug)]
#[debug("Receiver {{ senders: {:?}, .. }}", self.senders())]
pub struct Receiver {
    key: TrafficKey,
    digest: Digest,
    leader: Handle,
    /// No member holds this slot or one above.
    slots: Slot,
    /// Separate, so that no other sender's messages displace it.
    from_leader: Option<Box<SenderStart>>,
    signed: TrafficSenders,
    unsigned: TrafficSenders,
}

/// A message that opened, not yet accepted: if it claims a signer, the signature is still to be verified.
#[derive(derive_more::Debug)]
#[debug("Opened {{ sender: {sender:?}, .. }}")]
#[must_use = "a message is received once it is accepted"]
pub struct Opened {
    sender: SenderId,
    start: Start,
    counter: u64,
    plaintext: Zeroizing<Vec<u8>>,
}

impl Receiver {
    /// A receiver for the epoch with header digest D, just activated, of a term of this leader.
    #[must_use]
    pub const fn new(key: TrafficKey, digest: Digest, leader: Handle) -> Self {
        Self {
            key,
            digest,
            leader,
            slots: MAX_SLOTS,
            from_leader: None,
            signed: TrafficSenders::new(MAX_SENDERS),
            unsigned: TrafficSenders::new(MAX_SENDERS),
        }
    }

    /// Keeps windows of no more than so many senders of each kind.
    #[must_use]
    pub const fn with_senders(mut self, limit: u32) -> Self {
        self.signed.limit(limit);
        self.unsigned.limit(limit);
        self
    }

    /// Refuses slots from this one on, which no member holds. The leader's is none of them.
    #[must_use]
    pub const fn with_slots(mut self, slots: Slot) -> Self {
        self.slots = slots;
        self
    }

    /// A receiver for an epoch that was current when the program stopped. `ceilings` must be all that
    /// [`take_risen_ceilings`](Self::take_risen_ceilings) ever gave for this epoch, the newest per sender.
    #[must_use]
    pub fn restore(
        key: TrafficKey,
        digest: Digest,
        leader: Handle,
        ceilings: impl IntoIterator<Item = Ceiling>,
    ) -> Self {
        let mut receiver = Self::new(key, digest, leader);
        for Ceiling { sender, slot, boot_no, salt, counter } in ceilings {
            // Nothing below a ceiling is received again.
            let source = SenderStart::new(&receiver.key, Start { slot, boot_no, salt }, counter);
            match sender {
                SenderId::Leader => receiver.from_leader = Some(Box::new(source)),
                SenderId::Signer(_) => receiver.signed.insert(sender, source),
                SenderId::Slot(_) => receiver.unsigned.insert(sender, source),
            }
        }
        receiver
    }

    /// D of the epoch.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Number of senders with windows.
    #[must_use]
    pub fn senders(&self) -> usize {
        usize::from(self.from_leader.is_some()) + self.signed.len() + self.unsigned.len()
    }

    /// Decrypts a message that claims this signer, or none. Costs no curve arithmetic and changes nothing.
    ///
    /// # Errors
    /// [`Error::WrongSlot`] or [`Error::Malformed`] for a slot or number no sender has, and for the leader's
    /// slot unless it is the leader that signs; [`Error::Replay`] if it was received before, may have been,
    /// or its sender has started anew since; [`Error::SealBroken`] if it is not of this epoch, sender,
    /// channel and signer; [`Error::Exhausted`] for a new sender when there is no room for more.
    pub fn open(
        &self,
        frame: &SealedMessage,
        channel: &Name,
        signer: Option<&Handle>,
    ) -> Result<Opened, Error> {
        // §13.4, 1: slot, number and window, as the message claims them. The leader signs all its messages,
        // in its own slot; no other message is from there (§13.3).
        let by_leader = signer == Some(&self.leader);
        if (frame.slot == LEADER_SLOT) != by_leader || (frame.slot >= self.slots && !by_leader) {
            return Err(Error::WrongSlot);
        }
        if frame.counter >= MAX_FRAMES {
            return Err(Error::Malformed("frame number"));
        }
        // §13.5: a window for the leader, one per signer's key, one per slot that does not sign.
        let sender = match signer {
            _ if by_leader => SenderId::Leader,
            Some(signer) => SenderId::signer(signer),
            None => SenderId::Slot(frame.slot),
        };
        let start = frame.start();
        self.check(sender, &start, frame.counter)?;
        // §13.3: the AAD binds the signer, as the message claims it.
        let aad = associated_data(&self.digest, frame, channel, signer);
        // §13.4, 2: the AEAD, under the key of the sender's start.
        let plaintext = match self.source(sender).filter(|source| source.is(&start)) {
            Some(source) => aead::open(&source.key, &frame.nonce(), &aad, &frame.ciphertext)?,
            None => aead::open(&self.key.sender(&start), &frame.nonce(), &aad, &frame.ciphertext)?,
        };
        Ok(Opened { sender, start, counter: frame.counter, plaintext })
    }

    /// Accepts a message that opened, and whose signature holds if it claims one: it is received now, and
    /// never again.
    ///
    /// # Errors
    /// [`Error::Replay`] or [`Error::Exhausted`], as [`open`](Self::open), if another one was accepted in
    /// between.
    pub fn accept(&mut self, opened: Opened) -> Result<Zeroizing<Vec<u8>>, Error> {
        // §13.4, 4: the window is marked last, when the caller has verified the signature.
        let Opened { sender, start, counter, plaintext } = opened;
        // Another message may have been accepted since it opened.
        self.check(sender, &start, counter)?;
        match sender {
            SenderId::Leader => {
                let source = self.from_leader.take().filter(|source| source.is(&start));
                let mut source = source.unwrap_or_else(|| Box::new(SenderStart::new(&self.key, start, 0)));
                source.mark(counter);
                self.from_leader = Some(source);
            }
            SenderId::Signer(_) => self.signed.mark(&self.key, sender, start, counter),
            SenderId::Slot(_) => self.unsigned.mark(&self.key, sender, start, counter),
        }
        Ok(plaintext)
    }

    fn source(&self, sender: SenderId) -> Option<&SenderStart> {
        match sender {
            SenderId::Leader => self.from_leader.as_deref(),
            SenderId::Signer(_) => self.signed.get(sender),
            SenderId::Slot(_) => self.unsigned.get(sender),
        }
    }

    fn check(&self, sender: SenderId, start: &Start, counter: u64) -> Result<(), Error> {
        match sender {
            SenderId::Leader => match &self.from_leader {
                Some(source) if !source.accepts(start, counter) => Err(Error::Replay),
                _ => Ok(()),
            },
            SenderId::Signer(_) => self.signed.check(sender, start, counter),
            SenderId::Slot(_) => self.unsigned.check(sender, start, counter),
        }
    }

    /// The ceilings that rose since the last call, one per sender: every 64 messages, and with a sender's
    /// first. A caller that wants to restore this receiver asks after each message, and makes them durable
    /// before acting on what was opened.
    pub fn take_risen_ceilings(&mut self) -> Vec<Ceiling> {
        let leader = self.from_leader.as_mut().and_then(|source| source.take_risen(SenderId::Leader));
        let signed = self.signed.take_risen(SenderId::Signer);
        let unsigned =
            self.unsigned.take_risen(|slot| SenderId::Slot(Slot::try_from(slot).unwrap_or(Slot::MAX)));
        leader.into_iter().chain(signed).chain(unsigned).collect()
    }
}
