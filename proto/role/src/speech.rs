//! Group messages: one member speaks, the others know at least that a member spoke.
//!
//! The AEAD says "somebody who holds this epoch's key sent this", and every member holds it. A sender that wants to be
//! known signs; a receiver tells the application which of the two it has ([`Source`]).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    Deployment, DroneKeypair, Epoch, Error, Label, Name, Receiver, Role, Sender, Slot, Suite, TrafficKey,
    traffic::SALT_LEN,
};
use quiver_crypto::{Hasher, canonical::Writer};
use quiver_message::{GroupMessage, MAX_PAYLOAD_LEN};
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use crate::Now;
use crate::revocations::Revocations;

/// What was said, and by whom.
pub(crate) type Heard = (Zeroizing<Vec<u8>>, Source);

/// Who sent a group message, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A member of the group; the slot is its own claim.
    Unauthenticated {
        /// The slot claimed.
        slot: Slot,
    },
    /// This drone: it signed.
    Signed {
        /// Its name.
        name: Name,
        /// Its role.
        role: Role,
    },
}

/// What it takes to speak and to listen in one epoch.
#[derive(Debug)]
pub(crate) struct Voice {
    epoch: Epoch,
    digest: [u8; 32],
    valid_until: u64,
    seat: Seat,
    salt: [u8; SALT_LEN],
    traffic: TrafficKey,
    /// From the first message on: most epochs of most drones pass in silence.
    sender: Option<Sender>,
    receiver: Receiver,
    /// In a box, because it goes soon.
    former: Option<Box<Former>>,
}

/// The epoch before, for messages that were under way when the key changed.
#[derive(Debug)]
struct Former {
    epoch: Epoch,
    digest: [u8; 32],
    receiver: Receiver,
    until: Duration,
}

/// Where and as whom a [`Voice`] speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) slot: Slot,
    pub(crate) boot_no: u32,
}

/// One epoch, as a [`Voice`] needs to know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EpochFacts {
    pub(crate) epoch: Epoch,
    pub(crate) digest: [u8; 32],
    pub(crate) valid_until: u64,
}

impl Voice {
    /// Sending switches at once. The salt is fresh for every start and epoch, so no nonce repeats even if the boot number
    /// was rolled back.
    pub(crate) fn new(
        traffic: TrafficKey,
        facts: EpochFacts,
        seat: Seat,
        rng: &mut dyn CryptoRngCore,
    ) -> Self {
        let mut salt = [0; SALT_LEN];
        rng.fill_bytes(&mut salt);
        let receiver = Receiver::new(traffic.clone(), facts.digest);
        let EpochFacts { epoch, digest, valid_until } = facts;
        Self { epoch, digest, valid_until, seat, salt, traffic, sender: None, receiver, former: None }
    }

    /// There is one per voice, and the salt is the voice's: no nonce repeats.
    fn sender(&mut self) -> &mut Sender {
        let Self { digest, seat, salt, traffic, sender, .. } = self;
        sender.get_or_insert_with(|| Sender::new(traffic, *digest, seat.slot, seat.boot_no, *salt))
    }

    /// Goes on listening to the epoch before for a while. Only if the term is the same and nobody was removed: else
    /// somebody who is out could still speak as anyone.
    pub(crate) fn overlap(mut self, former: Option<Self>, until: Duration) -> Self {
        self.former = former.filter(|former| former.epoch.term == self.epoch.term).map(|former| {
            let Self { epoch, digest, receiver, .. } = former;
            Box::new(Former { epoch, digest, receiver, until })
        });
        self
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.former.as_ref().map(|former| former.until)
    }

    /// Erases what is no longer needed.
    pub(crate) fn tick(&mut self, now: Now) {
        self.former.take_if(|former| former.until <= now.monotonic);
    }

    /// Seals a message to the group.
    pub(crate) fn speak<S: Suite>(
        &mut self,
        now: Now,
        group: &Name,
        channel: Name,
        data: &[u8],
    ) -> Result<GroupMessage<S>, &'static str> {
        if data.len() > MAX_PAYLOAD_LEN {
            return Err("the message is longer than 65,536 bytes");
        }
        if now.unix >= self.valid_until {
            return Err("the group key has expired and no newer one has come");
        }
        let frame =
            self.sender().seal(&channel, data).map_err(|_| "this epoch's message counter is used up")?;
        Ok(GroupMessage { group: group.clone(), epoch: self.epoch, channel, frame, source: None })
    }

    /// Adds the speaker's own signature.
    pub(crate) fn sign<S: Suite>(
        &self,
        deployment: &Deployment<S>,
        keypair: &DroneKeypair<S>,
        mut message: GroupMessage<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> GroupMessage<S> {
        let statement = statement(&message, &self.digest);
        let signature = keypair.sign(deployment, Label::Command, &statement, rng);
        message.source = Some(quiver_message::Source { drone: keypair.public().clone(), signature });
        message
    }

    /// Opens a message, or says what is wrong with it; `None` for another epoch's.
    pub(crate) fn hear<S: Suite>(
        &mut self,
        deployment: &Deployment<S>,
        revocations: &Revocations<S>,
        now: Now,
        message: &GroupMessage<S>,
    ) -> Result<Option<Heard>, Error> {
        let (receiver, digest) = match &mut self.former {
            _ if message.epoch == self.epoch => (&mut self.receiver, self.digest),
            Some(former) if message.epoch == former.epoch && now.monotonic < former.until => {
                (&mut former.receiver, former.digest)
            }
            _ => return Ok(None),
        };
        if now.unix >= self.valid_until {
            return Err(Error::Expired);
        }
        let source = match &message.source {
            None => Source::Unauthenticated { slot: message.frame.slot },
            Some(source) => {
                if revocations.names(&source.drone) {
                    return Err(Error::Revoked);
                }
                if now.unix >= source.drone.identity.not_after {
                    return Err(Error::Expired);
                }
                let statement = statement(message, &digest);
                source.signature.verify(deployment, &source.drone, Label::Command, &statement)?;
                let identity = &source.drone.identity;
                Source::Signed { name: identity.name.clone(), role: identity.role.clone() }
            }
        };
        let data = receiver.open(&message.frame, &message.channel)?;
        Ok(Some((data, source)))
    }
}

/// What a speaker signs: group, D, its place, the message's number and the ciphertext's hash.
fn statement<S: Suite>(message: &GroupMessage<S>, digest: &[u8; 32]) -> Vec<u8> {
    let frame = &message.frame;
    let hash = Hasher::new("quiver/1 group message").lp(&frame.ciphertext).finish();
    let mut writer = Writer::new();
    writer.lp(message.group.as_bytes()).fixed(digest).u32(frame.slot).u32(frame.boot_no).fixed(&frame.salt);
    writer.u64(frame.counter).lp(message.channel.as_bytes()).fixed(&hash);
    writer.finish()
}
