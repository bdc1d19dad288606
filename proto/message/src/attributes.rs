//! Messages between an enrolled drone and the attribute authority beside the KGC.
//!
//! Which scheme an authority runs is not known here: keys and parameters travel as bounded bytes.

use alloc::vec::Vec;

use quiver_ainq::MAX_AUTHORITY_LEN;
use quiver_ainq::delivery::{MAX_DELIVERY_REQUEST_LEN, MAX_SECRET_LEN};

use crate::{COOKIE_LEN, MessageError, Nonce, field, wire};

/// Authorities a KGC may have beside it.
pub const MAX_AUTHORITIES: usize = 16;
/// Room for a point and the cipher's tag.
const MAX_SEALED_LEN: usize = MAX_SECRET_LEN + 128;

/// Asks the authority for a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeHello {
    /// Fresh for every attempt.
    pub nonce: Nonce,
}

/// A challenge, and which authorities there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeChallenge {
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// Opaque to the drone.
    pub cookie: [u8; COOKIE_LEN],
    /// Fingerprints of the authorities' statements; at most [`MAX_AUTHORITIES`], ascending.
    pub authorities: Vec<[u8; 32]>,
}

/// What a drone asks of one authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeRequest {
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// The cookie, unchanged.
    pub cookie: [u8; COOKIE_LEN],
    /// An encoded [`quiver_ainq::DeliveryRequest`] of at most 4096 bytes, not looked at before the cookie is checked.
    pub request: Vec<u8>,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeReply {
    /// Digest of the request answered.
    pub request_digest: [u8; 32],
    /// An encoded [`quiver_ainq::SignedAuthority`] of at most [`MAX_AUTHORITY_LEN`] bytes; empty if not asked for.
    pub statement: Vec<u8>,
    /// An encoded [`quiver_ainq::SealedDelivery`] of at most 262,272 bytes.
    pub sealed: Vec<u8>,
}

impl AttributeHello {
    pub(crate) fn from_wire(wire: &wire::AttributeHello) -> Result<Self, MessageError> {
        Ok(Self { nonce: field::array("nonce", &wire.nonce)? })
    }

    pub(crate) fn to_wire(&self) -> wire::AttributeHello {
        wire::AttributeHello { nonce: self.nonce.to_vec() }
    }
}

impl AttributeChallenge {
    pub(crate) fn from_wire(wire: &wire::AttributeChallenge) -> Result<Self, MessageError> {
        let authorities = field::arrays("authorities", &wire.authorities, MAX_AUTHORITIES)?;
        if !authorities.is_sorted_by(|a, b| a < b) {
            return Err(MessageError::Invalid("authorities"));
        }
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            cookie: field::array("cookie", &wire.cookie)?,
            authorities,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::AttributeChallenge {
        wire::AttributeChallenge {
            nonce: self.nonce.to_vec(),
            cookie: self.cookie.to_vec(),
            authorities: self.authorities.as_flattened().to_vec(),
        }
    }
}

impl AttributeRequest {
    pub(crate) fn from_wire(wire: wire::AttributeRequest) -> Result<Self, MessageError> {
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            cookie: field::array("cookie", &wire.cookie)?,
            request: field::bounded("request", wire.request, MAX_DELIVERY_REQUEST_LEN)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::AttributeRequest {
        wire::AttributeRequest {
            nonce: self.nonce.to_vec(),
            cookie: self.cookie.to_vec(),
            request: self.request.clone(),
        }
    }
}

impl AttributeReply {
    pub(crate) fn from_wire(wire: wire::AttributeReply) -> Result<Self, MessageError> {
        Ok(Self {
            request_digest: field::array("request_digest", &wire.request_digest)?,
            statement: field::at_most("statement", wire.statement, MAX_AUTHORITY_LEN)?,
            sealed: field::bounded("sealed", wire.sealed, MAX_SEALED_LEN)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::AttributeReply {
        wire::AttributeReply {
            request_digest: self.request_digest.to_vec(),
            statement: self.statement.clone(),
            sealed: self.sealed.clone(),
        }
    }
}
