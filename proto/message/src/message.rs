//! The envelope around every message.

use alloc::boxed::Box;
use alloc::vec::Vec;

use prost::Message as _;
use prost::bytes::Bytes;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use quiver_ainq::{Deployment, DronePublicKey, EquivocationProof, Suite};

use crate::extension::EXTENSIONS;
use crate::wire::message::Body;
use crate::{ExtensionMessage, MessageError, equivocation, wire};

/// The longest encoded message in bytes.
pub const MAX_MESSAGE_LEN: usize = 1 << 20;

/// Bytes of the deployment's fingerprint in every message: enough to distinguish a misconfigured peer from a
/// broken one. Hashes and signatures that bind something to the deployment have the whole of it.
const FINGERPRINT_LEN: usize = 8;

/// Length of the encoded field of the deployment: key, length, fingerprint.
pub(crate) const DEPLOYMENT_LEN: usize = 2 + FINGERPRINT_LEN;

/// Number of the field of the deployment.
pub(crate) const DEPLOYMENT_FIELD: u32 = 1;
/// Numbers of the fields in which a group message stands, and in it its channel.
const GROUP_MESSAGE_FIELD: u32 = 19;
/// See [`GROUP_MESSAGE_FIELD`].
const CHANNEL_FIELD: u32 = 8;

/// Where a message is received: by edges, too.
const EVERYWHERE: bool = true;
/// Where a message is received that edges only send: not in a build for edges alone.
pub(crate) const AT_SERVICES: bool = cfg!(feature = "services");

pub(crate) fn fingerprint_prefix<S: Suite>(deployment: &Deployment<S>) -> Vec<u8> {
    deployment.fingerprint().iter().take(FINGERPRINT_LEN).copied().collect()
}

/// Encodes into memory of its length: a vector would grow with every byte.
pub(crate) fn encoded(wire: &impl prost::Message) -> Vec<u8> {
    let mut bytes = alloc::vec![0; wire.encoded_len()];
    // There is room for it.
    wire.encode_raw(&mut bytes.as_mut_slice());
    bytes
}

/// Declares [`Message`], and its way from and to a body on the wire, from a table of the messages that every
/// build has and of those of each feature: where one is received, its name, and whether it is read with the
/// leader that is expected.
macro_rules! messages {
    (
        $wire:ident, $leader:ident;
        $($where:ident $name:ident $(<$suite:ident>)? ($($read:tt)*);)*
        $($feature:literal {
            $($its_where:ident $its_name:ident $(<$its_suite:ident>)? ($($its_read:tt)*);)*
        })*
    ) => {
        /// A message whose fields have been validated one by one; its sender is not authenticated.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "each variant is the type of its name")]
        pub enum Message<S: Suite> {
            EquivocationProof(Box<EquivocationProof<S>>),
            /// A message of a feature, which the feature's crate decodes.
            Extension(ExtensionMessage),
            $($name(crate::$name $(<$suite>)?),)*
            $($(#[cfg(feature = $feature)] $its_name(crate::$its_name $(<$its_suite>)?),)*)*
        }

        impl<S: Suite> Message<S> {
            /// Apart from the checks of the encoding: boards' images are 1 KB smaller.
            #[inline(never)]
            fn from_body(body: Body, $leader: Option<&DronePublicKey<S>>) -> Result<Self, MessageError> {
                match body {
                    // A type of the core, which has no messages.
                    Body::EquivocationProof($wire) => equivocation::from_wire(&$wire)
                        .map(|proof| Self::EquivocationProof(Box::new(proof))),
                    $(Body::$name($wire) if $where => crate::$name::from_wire($($read)*).map(Self::$name),)*
                    $($(
                        #[cfg(feature = $feature)]
                        Body::$its_name($wire) if $its_where => {
                            crate::$its_name::from_wire($($its_read)*).map(Self::$its_name)
                        }
                    )*)*
                    // Messages that an edge sends and none receives.
                    _ => Err(MessageError::NoBody),
                }
            }

            /// The body on the wire. That of a feature's message is written as it is; a default stands here in its
            /// place, because an optional one would take boards a kilobyte more.
            fn to_body(&self) -> Body {
                match self {
                    Self::EquivocationProof(proof) => Body::EquivocationProof(equivocation::to_wire(proof)),
                    Self::Extension(_) => Body::RevocationQuery(wire::RevocationQuery::default()),
                    $(Self::$name(message) => Body::$name(message.to_wire()),)*
                    $($(
                        #[cfg(feature = $feature)]
                        Self::$its_name(message) => Body::$its_name(message.to_wire()),
                    )*)*
                }
            }
        }
    };
}

messages! {
    wire, leader;
    AT_SERVICES EnrolHello(&wire);
    EVERYWHERE EnrolCookie(&wire);
    AT_SERVICES EnrolRequest(wire);
    EVERYWHERE EnrolReply(wire);
    EVERYWHERE Refusal(wire);
    AT_SERVICES JoinHello(wire);
    EVERYWHERE JoinChallenge<S>(&wire, leader);
    AT_SERVICES JoinRequest(wire);
    EVERYWHERE Welcome<S>(&wire, leader);
    AT_SERVICES Ack(&wire);
    EVERYWHERE Rekey<S>(wire, leader);
    AT_SERVICES CatchUpRequest(&wire);
    EVERYWHERE CatchUpReply<S>(&wire, leader);
    AT_SERVICES SparePublication<S>(&wire);
    EVERYWHERE SpareAck(&wire);
    AT_SERVICES Leave<S>(&wire);
    EVERYWHERE EvictionNotice<S>(&wire, leader);
    EVERYWHERE GroupMessage(wire);
    EVERYWHERE RevocationQuery(wire);
    EVERYWHERE RevocationList(wire);
    EVERYWHERE JoinCiphertext(wire);
    EVERYWHERE ShortRekey<S>(wire);
    "services" {
        EVERYWHERE StandBy(wire);
        EVERYWHERE Replica<S>(wire);
        EVERYWHERE EpochChanges<S>(&wire);
    }
    "delivery" {
        AT_SERVICES DeliveryHello(&wire);
        EVERYWHERE DeliveryChallenge(&wire);
        AT_SERVICES DeliveryRequest(wire);
        EVERYWHERE DeliveryReply(wire);
    }
}

impl<S: Suite> Message<S> {
    /// Returns true if a message may come by the group (docs/protocol.md §13.6): others are for one peer, and
    /// publishing them would make many answer.
    #[must_use]
    pub const fn is_publication(&self) -> bool {
        match self {
            Self::Rekey(_)
            | Self::ShortRekey(_)
            | Self::GroupMessage(_)
            | Self::EvictionNotice(_)
            | Self::RevocationList(_)
            | Self::EquivocationProof(_) => true,
            Self::Extension(message) => EXTENSIONS && message.is_publication(),
            _ => false,
        }
    }

    /// Decodes a message of this deployment.
    ///
    /// # Errors
    /// The error of malformed bytes, with the name of the field.
    pub fn decode(deployment: &Deployment<S>, bytes: &[u8]) -> Result<Self, MessageError> {
        Self::decode_expecting(deployment, bytes, None)
    }

    /// Decodes a message, as [`decode`](Self::decode) does, where a certain leader is expected: if the
    /// message has that key as its leader's or its sender's, its points are not decoded again and it comes
    /// with the Y that it [remembers](DronePublicKey::remember_implicit). The message is the same.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_expecting(
        deployment: &Deployment<S>,
        bytes: &[u8],
        leader: Option<&DronePublicKey<S>>,
    ) -> Result<Self, MessageError> {
        if bytes.len() > MAX_MESSAGE_LEN {
            return Err(MessageError::TooLong(bytes.len()));
        }
        // Copied once, as fields are parts of what they are read from.
        let shared = Bytes::copy_from_slice(bytes);
        let wire = wire::Message::decode(shared).map_err(|_| MessageError::NotProtobuf)?;
        // §1.1: the first 8 bytes of the fingerprint: distinguishes a misconfigured peer from a broken one.
        if Some(&*wire.deployment) != deployment.fingerprint().get(..FINGERPRINT_LEN) {
            return Err(MessageError::ForeignDeployment);
        }
        // Before its form is checked: a message of an unknown kind is no offence.
        if wire.body.is_none() {
            // Copied once more, and not kept above, because boards would pay for that with every message.
            let extension =
                if EXTENSIONS { ExtensionMessage::find(&Bytes::copy_from_slice(bytes)) } else { None };
            return extension.map(Self::Extension).ok_or(MessageError::NoBody);
        }
        // One encoding for each message: what was signed or hashed is what is read.
        if encoded(&wire) != bytes {
            return Err(MessageError::NotCanonical);
        }
        Self::from_body(wire.body.ok_or(MessageError::NoBody)?, leader)
    }

    /// Encodes a message for this deployment.
    pub fn encode(&self, deployment: &Deployment<S>) -> Vec<u8> {
        let deployment = fingerprint_prefix(deployment);
        if EXTENSIONS && let Self::Extension(message) = self {
            let mut bytes = encoded(&wire::Message { deployment, body: None });
            message.encode(&mut bytes);
            return bytes;
        }
        encoded(&wire::Message { deployment, body: Some(self.to_body()) })
    }
}

/// Channel of an encoded group message, which it has in the clear; `None` for every other message. Nothing is verified, and
/// nothing is copied: for those who pass messages on without reading them.
#[must_use]
pub fn group_message_channel(bytes: &[u8]) -> Option<&str> {
    let message = field_bytes(bytes, GROUP_MESSAGE_FIELD)?;
    core::str::from_utf8(field_bytes(message, CHANNEL_FIELD)?).ok()
}

/// Bytes of the first field of this number.
fn field_bytes(mut bytes: &[u8], number: u32) -> Option<&[u8]> {
    loop {
        let (found, field) = next_field(&mut bytes)?;
        if found == number {
            return Some(field);
        }
    }
}

/// Takes the next field that has a length off the front, with its number, and those before it that have none.
pub(crate) fn next_field<'a>(bytes: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    while !bytes.is_empty() {
        let (number, kind) = decode_key(bytes).ok()?;
        if kind != WireType::LengthDelimited {
            skip_field(kind, number, bytes, DecodeContext::default()).ok()?;
            continue;
        }
        let length = usize::try_from(decode_varint(bytes).ok()?).ok()?;
        let (field, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        return Some((number, field));
    }
    None
}
