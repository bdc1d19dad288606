//! Group messages of members.

use alloc::vec::Vec;

use quiver_ainq::{DronePublicKey, Epoch, Handle, Name, SealedMessage, Signature, Suite};

use crate::{MessageError, field, wire};

/// Longest plaintext of a group message in bytes.
pub const MAX_PAYLOAD_LEN: usize = 65_536;

/// A sealed message to the group.
#[derive(Clone, Debug)]
pub struct GroupMessage {
    /// The group.
    pub group: Name,
    /// The epoch whose key seals it.
    pub epoch: Epoch,
    /// The application's channel, bound by the seal.
    pub channel: Name,
    /// Sender's slot, nonce parts and ciphertext.
    pub frame: SealedMessage,
    /// The signer, if the sender signs it with its own key. Bound by the seal.
    pub source: Option<Source>,
}

/// The sender's signature of a group message. As bytes: an attacker without the group key can write anything
/// here, so that no point is decoded before the seal has opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Public key of the signer: (D, R, P), encoded.
    pub drone: Vec<u8>,
    /// Signature `command` over group, epoch, sender, message number and the ciphertext's hash.
    pub signature: Vec<u8>,
}

impl Source {
    /// The handle of the key, if it is one.
    pub fn handle<S: Suite>(&self) -> Handle {
        Handle::of_encoded::<S>(&self.drone)
    }

    /// The key and the signature, once the seal has opened. The points of the key are not decoded again if it
    /// is the one that is expected.
    ///
    /// # Errors
    /// [`MessageError::Field`] if one of the two is none, or [`MessageError::Invalid`].
    pub fn decode<S: Suite>(
        &self,
        expected: Option<&DronePublicKey<S>>,
    ) -> Result<(DronePublicKey<S>, Signature<S>), MessageError> {
        let drone = field::drone_expecting("source.drone", &self.drone, expected)?;
        Ok((drone, field::signature("source.signature", &self.signature)?))
    }
}

impl GroupMessage {
    pub(crate) fn from_wire(wire: wire::GroupMessage) -> Result<Self, MessageError> {
        let source = match wire.source {
            None => None,
            Some(source) => Some(Source {
                // §13.4: decoded only after the AEAD.
                drone: field::undecoded_drone("source.drone", source.drone)?,
                signature: field::bounded("source.signature", source.signature, field::MAX_SIGNATURE_LEN)?,
            }),
        };
        Ok(Self {
            group: field::name("group", &wire.group)?,
            epoch: Epoch { term: wire.term, counter: wire.counter },
            channel: field::name("channel", &wire.channel)?,
            frame: SealedMessage {
                slot: wire.slot,
                boot_no: wire.boot_no,
                salt: field::array("salt", &wire.salt)?,
                counter: wire.number,
                hedge: wire.hedge.to_be_bytes(),
                ciphertext: field::bounded("ciphertext", wire.ciphertext, MAX_PAYLOAD_LEN + 16)?,
            },
            source,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::GroupMessage {
        wire::GroupMessage {
            group: self.group.as_str().into(),
            term: self.epoch.term,
            counter: self.epoch.counter,
            slot: self.frame.slot,
            boot_no: self.frame.boot_no,
            salt: self.frame.salt.to_vec(),
            number: self.frame.counter,
            channel: self.channel.as_str().into(),
            ciphertext: self.frame.ciphertext.clone(),
            hedge: u64::from_be_bytes(self.frame.hedge),
            source: self.source.as_ref().map(|source| wire::Source {
                drone: source.drone.clone(),
                signature: source.signature.clone(),
            }),
        }
    }
}
