//! Messages of delivery between an enrolled drone and a KGC (docs/protocol.md §4), whatever the payload.
//!
//! The authority's scheme is opaque here: keys, shares and parameters travel as bounded bytes.

use alloc::vec::Vec;
use core::slice;

use quiver_ainq::delivery::{MAX_DELIVERY_REQUEST_LEN, MAX_SECRET_LEN};
use quiver_ainq::{KgcId, MAX_AUTHORITY_LEN};

use crate::message::AT_SERVICES;
use crate::{COOKIE_LEN, MessageError, Nonce, field, wire};

/// Attribute authorities a KGC may have beside it.
pub const MAX_AUTHORITIES: usize = 16;
/// Bytes that the statement about a master key with its share public keys may have: those of 256 KGCs fit.
pub const MAX_RELEASE_STATEMENT_LEN: usize = 16 * 1024;

/// Kind of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Keys of attribute authorities, and fields that they certify: sealed by the authority.
    AttributeKeys,
    /// Shares of condition keys: sealed without proof of origin, because the key itself verifies.
    KeyShares,
}

/// Asks a KGC for a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryHello {
    /// The payload.
    pub payload: Payload,
    /// Fresh for every attempt.
    pub nonce: Nonce,
}

/// A challenge and an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryChallenge {
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// Opaque to the drone.
    pub cookie: [u8; COOKIE_LEN],
    /// The KGC's offer of the payload asked for.
    pub offer: DeliveryOffer,
}

/// A KGC's offer of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOffer {
    /// Keys of these attribute authorities.
    AttributeKeys {
        /// Fingerprints of their statements; at most [`MAX_AUTHORITIES`], ascending.
        authorities: Vec<[u8; 32]>,
    },
    /// Shares of condition keys.
    KeyShares {
        /// The KGC's claimed number; from 1.
        kgc: KgcId,
        /// Fingerprint of the master public key.
        master: [u8; 32],
        /// Version of the shares; from 1.
        version: u32,
    },
}

/// A drone's request to one authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRequest {
    /// The payload.
    pub payload: Payload,
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// The cookie, unchanged.
    pub cookie: [u8; COOKIE_LEN],
    /// An encoded [`quiver_ainq::SignedDeliveryRequest`] of at most 4096 bytes, not looked at before the cookie is
    /// checked.
    pub request: Vec<u8>,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryReply {
    /// The payload.
    pub payload: Payload,
    /// Digest of the request answered.
    pub request_digest: [u8; 32],
    /// An encoded [`quiver_ainq::SignedAuthority`] of at most [`MAX_AUTHORITY_LEN`] bytes, about a master key
    /// of at most [`MAX_RELEASE_STATEMENT_LEN`]; empty if not asked for.
    pub statement: Vec<u8>,
    /// An encoded [`quiver_ainq::SealedDelivery`] of at most 262,272 bytes, with a share of at most 512.
    pub sealed: Vec<u8>,
}

impl Payload {
    /// Name of the payload in cookies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AttributeKeys => "attribute keys",
            Self::KeyShares => "key shares",
        }
    }

    fn from_wire(number: u32) -> Result<Self, MessageError> {
        match number {
            1 => Ok(Self::AttributeKeys),
            // A board collects none, and carries no code for them.
            2 if AT_SERVICES => Ok(Self::KeyShares),
            _ => Err(MessageError::Invalid("payload")),
        }
    }

    const fn to_wire(self) -> u32 {
        match self {
            Self::AttributeKeys => 1,
            Self::KeyShares => 2,
        }
    }

    /// Bytes that a statement and a sealed response may have: a point, a response and the cipher's tag.
    const fn limits(self) -> (usize, usize) {
        match self {
            Self::AttributeKeys => (MAX_AUTHORITY_LEN, MAX_SECRET_LEN + 128),
            Self::KeyShares => (MAX_RELEASE_STATEMENT_LEN, 512),
        }
    }
}

impl DeliveryOffer {
    /// The payload.
    #[must_use]
    pub const fn payload(&self) -> Payload {
        match self {
            Self::AttributeKeys { .. } => Payload::AttributeKeys,
            Self::KeyShares { .. } => Payload::KeyShares,
        }
    }

    /// The authorities that requests may name.
    #[must_use]
    pub const fn authorities(&self) -> &[[u8; 32]] {
        match self {
            Self::AttributeKeys { authorities } => authorities.as_slice(),
            Self::KeyShares { master, .. } => slice::from_ref(master),
        }
    }
}

impl DeliveryHello {
    pub(crate) fn from_wire(wire: &wire::DeliveryHello) -> Result<Self, MessageError> {
        let payload = Payload::from_wire(wire.payload)?;
        Ok(Self { payload, nonce: field::array("nonce", &wire.nonce)? })
    }

    pub(crate) fn to_wire(&self) -> wire::DeliveryHello {
        wire::DeliveryHello { payload: self.payload.to_wire(), nonce: self.nonce.to_vec() }
    }
}

impl DeliveryChallenge {
    pub(crate) fn from_wire(wire: &wire::DeliveryChallenge) -> Result<Self, MessageError> {
        let offer = match Payload::from_wire(wire.payload)? {
            Payload::AttributeKeys => {
                // §4.2: at most 16 authorities, each once.
                let authorities = field::arrays("authorities", &wire.authorities, MAX_AUTHORITIES)?;
                if !authorities.is_sorted_by(|a, b| a < b) {
                    return Err(MessageError::Invalid("authorities"));
                }
                DeliveryOffer::AttributeKeys { authorities }
            }
            Payload::KeyShares => {
                // §4.3: numbers of KGCs and versions of shares begin with 1.
                let kgc = KgcId::try_from(wire.kgc).ok().filter(|kgc| *kgc > 0);
                if wire.version == 0 {
                    return Err(MessageError::Invalid("version"));
                }
                DeliveryOffer::KeyShares {
                    kgc: kgc.ok_or(MessageError::Invalid("kgc"))?,
                    master: field::array("authorities", &wire.authorities)?,
                    version: wire.version,
                }
            }
        };
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            cookie: field::array("cookie", &wire.cookie)?,
            offer,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::DeliveryChallenge {
        let (kgc, version) = match self.offer {
            DeliveryOffer::AttributeKeys { .. } => (0, 0),
            DeliveryOffer::KeyShares { kgc, version, .. } => (kgc.into(), version),
        };
        wire::DeliveryChallenge {
            payload: self.offer.payload().to_wire(),
            nonce: self.nonce.to_vec(),
            cookie: self.cookie.to_vec(),
            authorities: self.offer.authorities().as_flattened().to_vec(),
            kgc,
            version,
        }
    }
}

impl DeliveryRequest {
    pub(crate) fn from_wire(wire: wire::DeliveryRequest) -> Result<Self, MessageError> {
        Ok(Self {
            payload: Payload::from_wire(wire.payload)?,
            nonce: field::array("nonce", &wire.nonce)?,
            cookie: field::array("cookie", &wire.cookie)?,
            // §4.1: not decoded before the cookie is checked.
            request: field::bounded("request", wire.request, MAX_DELIVERY_REQUEST_LEN)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::DeliveryRequest {
        wire::DeliveryRequest {
            payload: self.payload.to_wire(),
            nonce: self.nonce.to_vec(),
            cookie: self.cookie.to_vec(),
            request: self.request.clone(),
        }
    }
}

impl DeliveryReply {
    pub(crate) fn from_wire(wire: wire::DeliveryReply) -> Result<Self, MessageError> {
        let payload = Payload::from_wire(wire.payload)?;
        // §4.2, §4.3: bounds of the payload.
        let (statement, sealed) = payload.limits();
        Ok(Self {
            payload,
            request_digest: field::array("request_digest", &wire.request_digest)?,
            statement: field::at_most("statement", wire.statement, statement)?,
            sealed: field::bounded("sealed", wire.sealed, sealed)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::DeliveryReply {
        wire::DeliveryReply {
            payload: self.payload.to_wire(),
            request_digest: self.request_digest.to_vec(),
            statement: self.statement.clone(),
            sealed: self.sealed.clone(),
        }
    }
}
