//! Messages of this feature (docs/protocol.md §13.6), as bytes of which [`quiver_abe`] decodes what is inside.

use alloc::vec::Vec;

use prost::bytes::Bytes;
use quiver_ainq::{DronePublicKey, Suite};
use quiver_message::{Extension, ExtensionMessage, Message, MessageError, canonical, field};

use crate::wire;

/// Longest envelope that travels as a message, in bytes. Longer ones travel as files.
pub const MAX_ENVELOPE_LEN: usize = 262_144;

/// Numbers of the messages among the bodies of `Message`.
const ENVELOPE: u32 = 30;
/// See [`ENVELOPE`].
const OPENING_REQUEST: u32 = 31;

/// Room in the bounds of contents for keys and lengths of fields, in bytes, so that a field which is too long is named.
const HEADS: usize = 16;

/// A message of this feature.
#[derive(Clone, PartialEq, Eq, derive_more::Debug, derive_more::From)]
pub enum EnvelopeMessage {
    /// An envelope.
    #[debug("{_0:?}")]
    Envelope(Envelope),
    /// A request for the opening of a session.
    #[debug("{_0:?}")]
    OpeningRequest(OpeningRequest),
}

/// A whole envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Header, chunks and trailer: 1 to [`MAX_ENVELOPE_LEN`] bytes.
    pub sealed: Vec<u8>,
}

/// Asks the sender of a session's first message to repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpeningRequest {
    /// Names the session.
    pub session: [u8; 32],
}

impl<S: Suite> Extension<S> for EnvelopeMessage {
    const KINDS: &'static [(u32, usize)] =
        &[(ENVELOPE, MAX_ENVELOPE_LEN + HEADS), (OPENING_REQUEST, 32 + HEADS)];

    fn read(number: u32, content: &Bytes, _: Option<&DronePublicKey<S>>) -> Result<Self, MessageError> {
        match number {
            ENVELOPE => Envelope::from_wire(canonical(content)?).map(Self::Envelope),
            OPENING_REQUEST => OpeningRequest::from_wire(&canonical(content)?).map(Self::OpeningRequest),
            _ => Err(MessageError::NoBody),
        }
    }

    fn write(&self) -> ExtensionMessage {
        match self {
            Self::Envelope(message) => ExtensionMessage::new(ENVELOPE, &message.to_wire()),
            Self::OpeningRequest(message) => ExtensionMessage::new(OPENING_REQUEST, &message.to_wire()),
        }
    }
}

impl<S: Suite> From<EnvelopeMessage> for Message<S> {
    fn from(message: EnvelopeMessage) -> Self {
        Self::Extension(Extension::<S>::write(&message))
    }
}

impl Envelope {
    fn from_wire(wire: wire::Envelope) -> Result<Self, MessageError> {
        Ok(Self { sealed: field::bounded("sealed", wire.sealed, MAX_ENVELOPE_LEN)? })
    }

    fn to_wire(&self) -> wire::Envelope {
        wire::Envelope { sealed: self.sealed.clone() }
    }
}

impl OpeningRequest {
    fn from_wire(wire: &wire::OpeningRequest) -> Result<Self, MessageError> {
        Ok(Self { session: field::array("session", &wire.session)? })
    }

    fn to_wire(&self) -> wire::OpeningRequest {
        wire::OpeningRequest { session: self.session.to_vec() }
    }
}
