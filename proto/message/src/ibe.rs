//! Messages between an enrolled drone and a KGC that holds a share of the master key of identity-based encryption.
//!
//! Which curve that is is not known here: keys, shares and conditions travel as bounded bytes.

use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_ainq::delivery::MAX_DELIVERY_REQUEST_LEN;

use crate::{COOKIE_LEN, MessageError, Nonce, field, wire};

/// Bytes that the statement about a master key with its share public keys may have: those of 256 KGCs fit.
pub const MAX_RELEASE_STATEMENT_LEN: usize = 16 * 1024;
/// Room for a point, an answer and the cipher's tag.
const MAX_SEALED_LEN: usize = 512;

/// Asks a KGC for a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseHello {
    /// Fresh for every attempt.
    pub nonce: Nonce,
}

/// A challenge, and what this KGC holds a share of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseChallenge {
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// Opaque to the drone.
    pub cookie: [u8; COOKIE_LEN],
    /// Which of the KGCs this says it is; from 1.
    pub kgc: KgcId,
    /// Fingerprint of the master public key.
    pub master: [u8; 32],
    /// Version of the shares; from 1.
    pub version: u32,
}

/// What a drone asks of one KGC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseRequest {
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// The cookie, unchanged.
    pub cookie: [u8; COOKIE_LEN],
    /// An encoded [`quiver_ainq::DeliveryRequest`] of at most 4096 bytes, not looked at before the cookie is checked.
    pub request: Vec<u8>,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseReply {
    /// Digest of the request answered.
    pub request_digest: [u8; 32],
    /// An encoded [`quiver_ainq::SignedAuthority`] of at most [`MAX_RELEASE_STATEMENT_LEN`] bytes; empty if not asked for.
    pub statement: Vec<u8>,
    /// An encoded [`quiver_ainq::SealedDelivery`] of at most 512 bytes.
    pub sealed: Vec<u8>,
}

impl ReleaseHello {
    pub(crate) fn from_wire(wire: &wire::ReleaseHello) -> Result<Self, MessageError> {
        Ok(Self { nonce: field::array("nonce", &wire.nonce)? })
    }

    pub(crate) fn to_wire(&self) -> wire::ReleaseHello {
        wire::ReleaseHello { nonce: self.nonce.to_vec() }
    }
}

impl ReleaseChallenge {
    pub(crate) fn from_wire(wire: &wire::ReleaseChallenge) -> Result<Self, MessageError> {
        let kgc = KgcId::try_from(wire.kgc).ok().filter(|kgc| *kgc > 0);
        if wire.version == 0 {
            return Err(MessageError::Invalid("version"));
        }
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            cookie: field::array("cookie", &wire.cookie)?,
            kgc: kgc.ok_or(MessageError::Invalid("kgc"))?,
            master: field::array("master", &wire.master)?,
            version: wire.version,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::ReleaseChallenge {
        wire::ReleaseChallenge {
            nonce: self.nonce.to_vec(),
            cookie: self.cookie.to_vec(),
            kgc: self.kgc.into(),
            master: self.master.to_vec(),
            version: self.version,
        }
    }
}

impl ReleaseRequest {
    pub(crate) fn from_wire(wire: wire::ReleaseRequest) -> Result<Self, MessageError> {
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            cookie: field::array("cookie", &wire.cookie)?,
            request: field::bounded("request", wire.request, MAX_DELIVERY_REQUEST_LEN)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::ReleaseRequest {
        wire::ReleaseRequest {
            nonce: self.nonce.to_vec(),
            cookie: self.cookie.to_vec(),
            request: self.request.clone(),
        }
    }
}

impl ReleaseReply {
    pub(crate) fn from_wire(wire: wire::ReleaseReply) -> Result<Self, MessageError> {
        Ok(Self {
            request_digest: field::array("request_digest", &wire.request_digest)?,
            statement: field::at_most("statement", wire.statement, MAX_RELEASE_STATEMENT_LEN)?,
            sealed: field::bounded("sealed", wire.sealed, MAX_SEALED_LEN)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::ReleaseReply {
        wire::ReleaseReply {
            request_digest: self.request_digest.to_vec(),
            statement: self.statement.clone(),
            sealed: self.sealed.clone(),
        }
    }
}
