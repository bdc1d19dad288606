//! Messages between an edge that wants to join and a leader.

use alloc::vec::Vec;

use quiver_ainq::KemTerm;
use quiver_ainq::{DronePublicKey, Element, EpochPart, Header, Name, Signature, SpareStatement, Suite};
use quiver_kem::KemSet;

use crate::enrolment::{COOKIE_LEN, Nonce};
use crate::epoch::{header_from_wire, header_to_wire, spare_to_wire};
use crate::kem::{self, KemOffer};
use crate::{MessageError, field, part, wire};

const MAX_POINT_LEN: usize = 64;

/// Asks the leader for a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinHello {
    /// The group to join.
    pub group: Name,
    /// The edge's public key, encoded; at most 2048 bytes.
    pub drone: Vec<u8>,
    /// n_e, fresh for every attempt.
    pub nonce: Nonce,
    /// Parameter set of the second factor that the edge's deployment says.
    pub kem: Option<KemSet>,
}

/// The leader's nonce, which is also a stateless cookie, and the leader's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinChallenge<S: Suite> {
    /// n_e of the hello.
    pub nonce: Nonce,
    /// n_L.
    pub challenge: [u8; COOKIE_LEN],
    /// The leader of the group.
    pub leader: DronePublicKey<S>,
    /// Number of the newest revocation list that the leader holds, 0 for none.
    pub revocation_number: u64,
    /// The second factor of the term, if the leader's deployment has one. Not authenticated: a wrong one
    /// makes the join fail.
    pub kem: Option<KemTerm>,
}

/// A signed request to join, its points not yet decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRequest {
    /// The group to join.
    pub group: Name,
    /// The edge's public key, encoded; at most 2048 bytes.
    pub drone: Vec<u8>,
    /// n_e.
    pub nonce: Nonce,
    /// n_L, unchanged.
    pub challenge: [u8; COOKIE_LEN],
    /// E_now, encoded.
    pub ephemeral: Vec<u8>,
    /// The spare point's number.
    pub spare_q: u64,
    /// The spare point, encoded.
    pub spare_point: Vec<u8>,
    /// Signature `spare`, encoded.
    pub spare_signature: Vec<u8>,
    /// Signature `join`, encoded.
    pub signature: Vec<u8>,
    /// The edge's part of the second factor. Under the signature `join`.
    pub kem: Option<KemOffer>,
}

/// A [`JoinRequest`] with its points decoded; the signatures are still to be verified.
#[derive(Clone, Debug)]
pub struct DecodedJoinRequest<S: Suite> {
    /// The joining drone.
    pub drone: DronePublicKey<S>,
    /// E_now.
    pub ephemeral: Element<S>,
    /// The spare point.
    pub spare: SpareStatement<S>,
    /// Signature `join`.
    pub signature: Signature<S>,
}

/// The header of the epoch that adds the newcomer, and the keys it brings.
#[derive(Clone, Debug)]
pub struct Welcome<S: Suite> {
    /// n_e of the request.
    pub nonce: Nonce,
    /// The header, unverified.
    pub header: Header<S>,
    /// The newcomer's entry, or its path with `nonce` as r. A delta has no place here: it would be left out
    /// of the encoding.
    pub part: EpochPart,
}

impl JoinHello {
    pub(crate) fn from_wire(wire: wire::JoinHello) -> Result<Self, MessageError> {
        Ok(Self {
            group: field::name("group", &wire.group)?,
            drone: field::undecoded_drone("drone", wire.drone)?,
            nonce: field::array("nonce", &wire.nonce)?,
            kem: kem::set_from_wire("kem", wire.kem)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::JoinHello {
        wire::JoinHello {
            group: self.group.as_str().into(),
            drone: self.drone.clone(),
            nonce: self.nonce.to_vec(),
            kem: kem::set_to_wire(self.kem),
        }
    }
}

impl<S: Suite> JoinChallenge<S> {
    pub(crate) fn from_wire(
        wire: &wire::JoinChallenge,
        leader: Option<&DronePublicKey<S>>,
    ) -> Result<Self, MessageError> {
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            challenge: field::array("challenge", &wire.challenge)?,
            leader: field::drone_expecting("leader", &wire.leader, leader)?,
            revocation_number: wire.revocation_number,
            kem: wire.kem.as_ref().map(kem::term_from_wire).transpose()?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::JoinChallenge {
        wire::JoinChallenge {
            nonce: self.nonce.to_vec(),
            challenge: self.challenge.to_vec(),
            leader: self.leader.encode(),
            revocation_number: self.revocation_number,
            kem: self.kem.map(kem::term_to_wire),
        }
    }
}

impl JoinRequest {
    /// Decodes the points and signatures. Call it only once the challenge has been recognised.
    pub fn decode<S: Suite>(&self) -> Result<DecodedJoinRequest<S>, MessageError> {
        // §6.1: the cookie has admitted it: curve arithmetic begins here.
        Ok(DecodedJoinRequest {
            drone: field::drone("drone", &self.drone)?,
            ephemeral: field::element("ephemeral", &self.ephemeral)?,
            spare: SpareStatement {
                q: self.spare_q,
                point: field::element("spare.point", &self.spare_point)?,
                signature: field::signature("spare.signature", &self.spare_signature)?,
            },
            signature: field::signature("signature", &self.signature)?,
        })
    }

    pub(crate) fn from_wire(wire: wire::JoinRequest) -> Result<Self, MessageError> {
        let spare = field::present("spare", wire.spare)?;
        Ok(Self {
            group: field::name("group", &wire.group)?,
            // §6.1: not decoded before the cookie is checked.
            drone: field::undecoded_drone("drone", wire.drone)?,
            nonce: field::array("nonce", &wire.nonce)?,
            challenge: field::array("challenge", &wire.challenge)?,
            ephemeral: field::bounded("ephemeral", wire.ephemeral, MAX_POINT_LEN)?,
            spare_q: spare.q,
            spare_point: field::bounded("spare.point", spare.point, MAX_POINT_LEN)?,
            spare_signature: field::bounded("spare.signature", spare.signature, field::MAX_SIGNATURE_LEN)?,
            signature: field::bounded("signature", wire.signature, field::MAX_SIGNATURE_LEN)?,
            kem: wire.kem.map(KemOffer::from_wire).transpose()?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::JoinRequest {
        wire::JoinRequest {
            group: self.group.as_str().into(),
            drone: self.drone.clone(),
            nonce: self.nonce.to_vec(),
            challenge: self.challenge.to_vec(),
            ephemeral: self.ephemeral.clone(),
            spare: Some(spare_to_wire(self.spare_q, self.spare_point.clone(), self.spare_signature.clone())),
            signature: self.signature.clone(),
            kem: self.kem.as_ref().map(KemOffer::to_wire),
        }
    }
}

impl<S: Suite> Welcome<S> {
    pub(crate) fn from_wire(
        wire: &wire::Welcome,
        leader: Option<&DronePublicKey<S>>,
    ) -> Result<Self, MessageError> {
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            header: header_from_wire(field::present("header", wire.header.as_ref())?, leader)?,
            part: part::of_welcome(field::present("part", wire.part.as_ref())?)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::Welcome {
        wire::Welcome {
            nonce: self.nonce.to_vec(),
            header: Some(header_to_wire(&self.header)),
            part: part::to_welcome(&self.part),
        }
    }
}
