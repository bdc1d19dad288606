//! Messages between a drone that has a token and a KGC.

use alloc::vec::Vec;

use crate::{MessageError, field, wire};

/// Sixteen random bytes that tie an answer to its question.
pub type Nonce = [u8; 16];

/// Length of a stateless cookie in bytes: 8 for its time, 32 for its MAC.
pub const COOKIE_LEN: usize = 40;

const MAX_REQUEST_LEN: usize = 4096;
const MAX_REPLY_LEN: usize = 512;

/// Asks the KGC for a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolHello {
    /// Fresh for every attempt.
    pub nonce: Nonce,
}

/// A cookie that proves that its bearer receives at the address it sends from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolCookie {
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// Opaque to the drone.
    pub cookie: [u8; COOKIE_LEN],
}

/// The request for a partial key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolRequest {
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// The cookie, unchanged.
    pub cookie: [u8; COOKIE_LEN],
    /// An encoded [`quiver_ainq::EnrolmentRequest`] of at most 4096 bytes, not looked at before the cookie is
    /// checked.
    pub request: Vec<u8>,
}

/// The partial key, sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolReply {
    /// Digest of the request answered.
    pub request_digest: [u8; 32],
    /// An encoded [`quiver_ainq::SealedReply`] of at most 512 bytes.
    pub reply: Vec<u8>,
}

impl EnrolHello {
    pub(crate) fn from_wire(wire: &wire::EnrolHello) -> Result<Self, MessageError> {
        Ok(Self { nonce: field::array("nonce", &wire.nonce)? })
    }

    pub(crate) fn to_wire(&self) -> wire::EnrolHello {
        wire::EnrolHello { nonce: self.nonce.to_vec() }
    }
}

impl EnrolCookie {
    pub(crate) fn from_wire(wire: &wire::EnrolCookie) -> Result<Self, MessageError> {
        Ok(Self { nonce: field::array("nonce", &wire.nonce)?, cookie: field::array("cookie", &wire.cookie)? })
    }

    pub(crate) fn to_wire(&self) -> wire::EnrolCookie {
        wire::EnrolCookie { nonce: self.nonce.to_vec(), cookie: self.cookie.to_vec() }
    }
}

impl EnrolRequest {
    pub(crate) fn from_wire(wire: wire::EnrolRequest) -> Result<Self, MessageError> {
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            cookie: field::array("cookie", &wire.cookie)?,
            // §3.4: not decoded before the cookie is checked.
            request: field::bounded("request", wire.request, MAX_REQUEST_LEN)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::EnrolRequest {
        wire::EnrolRequest {
            nonce: self.nonce.to_vec(),
            cookie: self.cookie.to_vec(),
            request: self.request.clone(),
        }
    }
}

impl EnrolReply {
    pub(crate) fn from_wire(wire: wire::EnrolReply) -> Result<Self, MessageError> {
        Ok(Self {
            request_digest: field::array("request_digest", &wire.request_digest)?,
            reply: field::bounded("reply", wire.reply, MAX_REPLY_LEN)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::EnrolReply {
        wire::EnrolReply { request_digest: self.request_digest.to_vec(), reply: self.reply.clone() }
    }
}
