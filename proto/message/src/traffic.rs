//! What members say to their group.

use quiver_ainq::{DronePublicKey, Epoch, Frame, Name, Signature, Suite};

use crate::{MessageError, field, wire};

/// Longest plaintext of a group message in bytes.
pub const MAX_PAYLOAD_LEN: usize = 65_536;

/// A sealed message to the group.
#[derive(Clone, Debug)]
pub struct GroupMessage<S: Suite> {
    /// The group.
    pub group: Name,
    /// The epoch whose key seals it.
    pub epoch: Epoch,
    /// The application's channel, bound by the seal.
    pub channel: Name,
    /// Sender's slot, nonce parts and ciphertext.
    pub frame: Frame,
    /// Who sent it, if the sender says so under its own key.
    pub source: Option<Source<S>>,
}

/// The sender's own word for a group message.
#[derive(Clone, Debug)]
pub struct Source<S: Suite> {
    /// Who.
    pub drone: DronePublicKey<S>,
    /// Signature `command` over group, epoch, sender, message number and the ciphertext's hash.
    pub signature: Signature<S>,
}

impl<S: Suite> GroupMessage<S> {
    pub(crate) fn from_wire(
        wire: wire::GroupMessage,
        leader: Option<&DronePublicKey<S>>,
    ) -> Result<Self, MessageError> {
        let source = match &wire.source {
            None => None,
            Some(source) => Some(Source {
                drone: field::drone_expecting("source.drone", &source.drone, leader)?,
                signature: field::signature("source.signature", &source.signature)?,
            }),
        };
        Ok(Self {
            group: field::name("group", &wire.group)?,
            epoch: Epoch { term: wire.term, counter: wire.counter },
            channel: field::name("channel", &wire.channel)?,
            frame: Frame {
                slot: wire.slot,
                boot_no: wire.boot_no,
                salt: field::array("salt", &wire.salt)?,
                counter: wire.number,
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
            source: self.source.as_ref().map(|source| wire::Source {
                drone: source.drone.encode(),
                signature: source.signature.encode(),
            }),
        }
    }
}
