//! Attribute-based envelopes, as bytes that their own crate decodes.

use alloc::vec::Vec;

use crate::{MessageError, field, wire};

/// Longest envelope that travels as a message, in bytes. Longer ones travel as files.
pub const MAX_ENVELOPE_LEN: usize = 262_144;

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

impl Envelope {
    pub(crate) fn from_wire(wire: wire::Envelope) -> Result<Self, MessageError> {
        Ok(Self { sealed: field::bounded("sealed", wire.sealed, MAX_ENVELOPE_LEN)? })
    }

    pub(crate) fn to_wire(&self) -> wire::Envelope {
        wire::Envelope { sealed: self.sealed.clone() }
    }
}

impl OpeningRequest {
    pub(crate) fn from_wire(wire: &wire::OpeningRequest) -> Result<Self, MessageError> {
        Ok(Self { session: field::array("session", &wire.session)? })
    }

    pub(crate) fn to_wire(&self) -> wire::OpeningRequest {
        wire::OpeningRequest { session: self.session.to_vec() }
    }
}
