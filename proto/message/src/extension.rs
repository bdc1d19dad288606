//! Messages of features: the kernel carries their bytes, and the crate of the feature reads and writes them.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use prost::bytes::Bytes;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use quiver_ainq::{DronePublicKey, Suite};

use crate::message::{DEPLOYMENT_FIELD, DEPLOYMENT_LEN, encoded, next_field};
use crate::{Message, MessageError};

/// Numbers of features' messages that may be published to the group (docs/protocol.md §13.6). Those of every other
/// number are for one peer, so that a message with an unassigned number is never answered when it comes by gossip.
const PUBLISHED: RangeInclusive<u32> = 30..=31;

/// True where a feature with messages is compiled. Otherwise none is found and none written, and the compiler leaves out the
/// code behind this constant: boards pay no flash for what they never handle.
pub(crate) const EXTENSIONS: bool = cfg!(feature = "extensions");

/// A message that the kernel does not read: its number among the bodies of `Message`, and its content.
///
/// The crate of its feature [decodes](Self::decode) it. A machine without that feature treats it as a message of no
/// known kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionMessage {
    number: u32,
    /// A part of the message's bytes, which were copied for it.
    content: Bytes,
    /// False if something else stands beside it, or its head is not the shortest. Judged by who knows its kind,
    /// because a message of an unknown kind is no offence whatever its form.
    canonical: bool,
}

/// The messages of one feature.
pub trait Extension<S: Suite>: Sized {
    /// The number of each message among the bodies of `Message`, and the most bytes that its content may have, which are
    /// counted before any of them is read.
    const KINDS: &'static [(u32, usize)];

    /// Reads the content of the message with this number, one of [`KINDS`](Self::KINDS). A key in it is decoded as
    /// [`Message::decode_expecting`] decodes those of the kernel's messages.
    ///
    /// # Errors
    /// The error of malformed bytes, with the name of the field.
    fn read(number: u32, content: &Bytes, leader: Option<&DronePublicKey<S>>) -> Result<Self, MessageError>;

    /// Writes the message for [`Message::Extension`].
    fn write(&self) -> ExtensionMessage;
}

impl ExtensionMessage {
    /// A message with this number among the bodies of `Message`, and this content.
    pub fn new(number: u32, content: &impl prost::Message) -> Self {
        // A crate that writes messages names the feature, or does not compile.
        const { assert!(EXTENSIONS, "the feature `extensions` of quiver-message") };
        Self { number, content: encoded(content).into(), canonical: true }
    }

    /// The number among the bodies of `Message`.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns true if it may come by the group (docs/protocol.md §13.6).
    pub(crate) const fn is_publication(&self) -> bool {
        *PUBLISHED.start() <= self.number && self.number <= *PUBLISHED.end()
    }

    /// Finds the first body in an encoded message that has none of the kernel's.
    pub(crate) fn find(message: &Bytes) -> Option<Self> {
        let mut rest: &[u8] = message;
        loop {
            let (number, content) = next_field(&mut rest)?;
            if number == DEPLOYMENT_FIELD {
                continue;
            }
            let end = message.len() - rest.len();
            let start = end - content.len();
            // The deployment and this, each number in its shortest form, and nothing else.
            let head = key_len(number) + encoded_len_varint(content.len() as u64);
            let canonical = rest.is_empty() && start == DEPLOYMENT_LEN + head;
            return Some(Self { number, content: message.slice(start..end), canonical });
        }
    }

    /// Appends the encoded field.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        to.reserve_exact(key_len(self.number) + encoded_len_varint(u64::MAX) + self.content.len());
        encode_key(self.number, WireType::LengthDelimited, to);
        encode_varint(self.content.len() as u64, to);
        to.extend_from_slice(&self.content);
    }

    /// Decodes it as a message of a feature; `None` if it is none of its messages. A key in it that is the expected
    /// leader's is not decoded again.
    ///
    /// # Errors
    /// The error of malformed bytes, with the name of the field.
    pub fn decode<S: Suite, E: Extension<S>>(
        &self,
        leader: Option<&DronePublicKey<S>>,
    ) -> Option<Result<E, MessageError>> {
        let (_, most) = E::KINDS.iter().find(|(number, _)| *number == self.number)?;
        Some(self.checked(*most).and_then(|content| E::read(self.number, content, leader)))
    }

    fn checked(&self, most: usize) -> Result<&Bytes, MessageError> {
        if self.content.len() > most {
            return Err(MessageError::TooLong(self.content.len()));
        }
        // One encoding for each message: what was signed or hashed is what is read.
        if self.canonical { Ok(&self.content) } else { Err(MessageError::NotCanonical) }
    }
}

impl<S: Suite> Message<S> {
    /// The message of a feature in this; `None` if it is none of the feature's.
    ///
    /// # Errors
    /// Errors of [`ExtensionMessage::decode`].
    pub fn extension<E: Extension<S>>(&self) -> Option<Result<E, MessageError>> {
        match self {
            Self::Extension(message) => message.decode(None),
            _ => None,
        }
    }
}

/// Reads the content of a feature's message as a type generated from the `.proto`, in its shortest encoding.
///
/// # Errors
/// [`MessageError::NotProtobuf`] and [`MessageError::NotCanonical`].
pub fn canonical<W: prost::Message + Default>(content: &Bytes) -> Result<W, MessageError> {
    let wire = W::decode(content.clone()).map_err(|_| MessageError::NotProtobuf)?;
    if encoded(&wire) == *content { Ok(wire) } else { Err(MessageError::NotCanonical) }
}
