//! Messages between a drone that has a token and the KGCs of a quorum, after the request.
//!
//! Commitments and shares are bytes here: the drone decodes them with the quorum's public shares, the KGC
//! after it found the round that they are for.

use alloc::vec::Vec;

use quiver_ainq::enrolment::MAX_KGCS;
use quiver_ainq::{DronePublicKey, KgcId, MAX_QUORUM_STATEMENT_LEN, Serial, Signature, Suite};

use crate::{MessageError, field, wire};

/// Two points of the longest suite, twice over.
const MAX_COMMITMENT_LEN: usize = 192;
const MAX_SHARE_LEN: usize = 512;

/// A KGC's commitment to a nonce with which it will sign, once, if the drone returns with a package that has
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolCommitment {
    /// Digest of the request answered.
    pub request_digest: [u8; 32],
    /// The KGC's FROST identifier.
    pub kgc: KgcId,
    /// Commitment: the hiding and the binding point, encoded, at most 192 bytes.
    pub commitment: Vec<u8>,
    /// An encoded [`quiver_ainq::QuorumStatement`] of at most 8192 bytes.
    pub statement: Vec<u8>,
}

/// The KGCs that shall sign, and with which commitments: the same for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolSigning {
    /// Digest of the request.
    pub request_digest: [u8; 32],
    /// Commitments of 1 to 64 KGCs, ascending.
    pub parts: Vec<(KgcId, Vec<u8>)>,
}

/// A KGC's share of the partial key, sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolShare {
    /// Digest of the signing package: message, version of the shares, commitments.
    pub package_digest: [u8; 32],
    /// An encoded [`quiver_ainq::SealedShare`] of at most 512 bytes.
    pub share: Vec<u8>,
}

/// The drone holds a key: no more shares are made for its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolDone {
    /// The drone's public key, encoded; at most 2048 bytes.
    pub drone: Vec<u8>,
    /// Signature `enrolled` over the drone's serial, encoded.
    pub signature: Vec<u8>,
}

fn kgc(number: u32) -> Result<KgcId, MessageError> {
    KgcId::try_from(number).ok().filter(|id| *id != 0).ok_or(MessageError::Invalid("kgc"))
}

fn commitment(bytes: Vec<u8>) -> Result<Vec<u8>, MessageError> {
    field::bounded("commitment", bytes, MAX_COMMITMENT_LEN)
}

impl EnrolCommitment {
    pub(crate) fn from_wire(wire: wire::EnrolCommitment) -> Result<Self, MessageError> {
        Ok(Self {
            request_digest: field::array("request_digest", &wire.request_digest)?,
            kgc: kgc(wire.kgc)?,
            commitment: commitment(wire.commitment)?,
            statement: field::bounded("statement", wire.statement, MAX_QUORUM_STATEMENT_LEN)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::EnrolCommitment {
        wire::EnrolCommitment {
            request_digest: self.request_digest.to_vec(),
            kgc: self.kgc.into(),
            commitment: self.commitment.clone(),
            statement: self.statement.clone(),
        }
    }
}

impl EnrolSigning {
    pub(crate) fn from_wire(wire: wire::EnrolSigning) -> Result<Self, MessageError> {
        // §5.1: n ≤ 64.
        if wire.parts.is_empty() || wire.parts.len() > MAX_KGCS {
            return Err(MessageError::Invalid("parts"));
        }
        let parts = wire.parts.into_iter().map(|part| Ok((kgc(part.kgc)?, commitment(part.commitment)?)));
        let parts = parts.collect::<Result<Vec<_>, MessageError>>()?;
        // §3.6: ascending, so that one set of commitments has one digest.
        if !parts.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(MessageError::Invalid("parts"));
        }
        Ok(Self { request_digest: field::array("request_digest", &wire.request_digest)?, parts })
    }

    pub(crate) fn to_wire(&self) -> wire::EnrolSigning {
        let part = |(kgc, commitment): &(KgcId, Vec<u8>)| wire::EnrolPart {
            kgc: (*kgc).into(),
            commitment: commitment.clone(),
        };
        wire::EnrolSigning {
            request_digest: self.request_digest.to_vec(),
            parts: self.parts.iter().map(part).collect(),
        }
    }
}

impl EnrolShare {
    pub(crate) fn from_wire(wire: wire::EnrolShare) -> Result<Self, MessageError> {
        Ok(Self {
            package_digest: field::array("package_digest", &wire.package_digest)?,
            share: field::bounded("share", wire.share, MAX_SHARE_LEN)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::EnrolShare {
        wire::EnrolShare { package_digest: self.package_digest.to_vec(), share: self.share.clone() }
    }
}

impl EnrolDone {
    /// The serial that the key claims, without decoding the key: it opens lp(D), and D opens with it.
    #[must_use]
    pub fn serial(&self) -> Option<Serial> {
        self.drone.get(4..)?.first_chunk().copied()
    }

    /// Decodes the drone's key and its signature.
    ///
    /// # Errors
    /// With the name of the malformed field.
    pub fn decode<S: Suite>(&self) -> Result<(DronePublicKey<S>, Signature<S>), MessageError> {
        Ok((field::drone("drone", &self.drone)?, field::signature("signature", &self.signature)?))
    }

    pub(crate) fn from_wire(wire: wire::EnrolDone) -> Result<Self, MessageError> {
        Ok(Self {
            // §3.9: not decoded before the token is known to be open.
            drone: field::undecoded_drone("drone", wire.drone)?,
            signature: field::bounded("signature", wire.signature, field::MAX_SIGNATURE_LEN)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::EnrolDone {
        wire::EnrolDone { drone: self.drone.clone(), signature: self.signature.clone() }
    }
}
