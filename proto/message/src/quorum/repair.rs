//! Repair of a member that has lost its shares.

use alloc::vec::Vec;

use quiver_ainq::KgcId;

use super::{Both, MAX_COMMITMENTS_LEN, MAX_MEMBERS, SecretBytes, kgc};
use crate::{MessageError, field, wire};

/// Bytes that the encoded public shares of one key may have: 65 points of 48 bytes and their indices.
pub const MAX_PUBLIC_SHARES_LEN: usize = 4096;

/// Request of a member that has lost its shares, to all: asks for helpers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairRequest {
    /// Nonce of this attempt.
    pub nonce: [u8; 32],
}

/// Offer of a member to help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairOffer {
    /// Nonce of the request.
    pub nonce: [u8; 32],
    /// Names the helper's part in this attempt.
    pub helper_nonce: [u8; 32],
    /// Version of the helper's shares.
    pub version: u32,
    /// Public shares of both keys; at most [`MAX_PUBLIC_SHARES_LEN`] bytes each.
    pub public_shares: Both<Vec<u8>>,
}

/// Start of a repair, from the member that lost its shares to the helpers that it chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairStart {
    /// H(quorum, member, nonce, version, helpers and their nonces).
    pub session: [u8; 32],
    /// Nonce of the request.
    pub nonce: [u8; 32],
    /// Version of the helpers' shares.
    pub version: u32,
    /// Ascending, none twice, at least two.
    pub helpers: Vec<Helper>,
}

/// A helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Helper {
    /// The member.
    pub kgc: KgcId,
    /// Nonce of its offer.
    pub nonce: [u8; 32],
}

/// Part of a repair from helper to helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairDelta {
    /// The session of the repair.
    pub session: [u8; 32],
    /// The member whose shares are repaired.
    pub member: KgcId,
    /// Commitments to all deltas of the sender; at most [`MAX_COMMITMENTS_LEN`] bytes each.
    pub commitments: Both<Vec<u8>>,
    /// The receiver's part of the sender's contribution; at most 128 bytes each.
    pub delta: Both<SecretBytes>,
    /// The receiver's delta for the sender has not come yet.
    pub asks: bool,
}

/// Answer of a helper to the member that lost its shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairAnswer {
    /// The session of the repair.
    pub session: [u8; 32],
    /// Commitments to all deltas of the sender; at most [`MAX_COMMITMENTS_LEN`] bytes each.
    pub commitments: Both<Vec<u8>>,
    /// A hash of all commitments, and the sum of the deltas that the sender got; at most 128 bytes each.
    pub answer: Both<SecretBytes>,
}

impl RepairRequest {
    pub(super) fn from_wire(wire: &wire::RepairRequest) -> Result<Self, MessageError> {
        Ok(Self { nonce: field::array("nonce", &wire.nonce)? })
    }

    pub(super) fn to_wire(&self) -> wire::RepairRequest {
        wire::RepairRequest { nonce: self.nonce.to_vec() }
    }
}

impl RepairOffer {
    pub(super) fn from_wire(wire: wire::RepairOffer) -> Result<Self, MessageError> {
        let public_shares = field::present("public_shares", wire.public_shares)?;
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            helper_nonce: field::array("helper_nonce", &wire.helper_nonce)?,
            version: wire.version,
            public_shares: Both::from_wire("public_shares", public_shares, MAX_PUBLIC_SHARES_LEN)?,
        })
    }

    pub(super) fn to_wire(&self) -> wire::RepairOffer {
        wire::RepairOffer {
            nonce: self.nonce.to_vec(),
            helper_nonce: self.helper_nonce.to_vec(),
            version: self.version,
            public_shares: Some(self.public_shares.to_wire()),
        }
    }
}

impl RepairStart {
    pub(super) fn from_wire(wire: &wire::RepairStart) -> Result<Self, MessageError> {
        // §5.1: 2 ≤ t ≤ n ≤ 64.
        if !(2..=MAX_MEMBERS).contains(&wire.helpers.len()) {
            return Err(MessageError::Invalid("helpers"));
        }
        let helper = |wire: &wire::Helper| {
            Ok(Helper { kgc: kgc("helpers", wire.kgc)?, nonce: field::array("helpers", &wire.nonce)? })
        };
        let helpers = wire.helpers.iter().map(helper).collect::<Result<Vec<_>, MessageError>>()?;
        if !helpers.is_sorted_by(|a, b| a.kgc < b.kgc) {
            return Err(MessageError::Invalid("helpers"));
        }
        Ok(Self {
            session: field::array("session", &wire.session)?,
            nonce: field::array("nonce", &wire.nonce)?,
            version: wire.version,
            helpers,
        })
    }

    pub(super) fn to_wire(&self) -> wire::RepairStart {
        let helper = |helper: &Helper| wire::Helper { kgc: helper.kgc.into(), nonce: helper.nonce.to_vec() };
        wire::RepairStart {
            session: self.session.to_vec(),
            nonce: self.nonce.to_vec(),
            version: self.version,
            helpers: self.helpers.iter().map(helper).collect(),
        }
    }
}

impl RepairDelta {
    pub(super) fn from_wire(wire: wire::RepairDelta) -> Result<Self, MessageError> {
        Ok(Self {
            session: field::array("session", &wire.session)?,
            member: kgc("member", wire.member)?,
            commitments: commitments(wire.commitments)?,
            delta: Both::secret_from_wire("delta", field::present("delta", wire.delta)?)?,
            asks: wire.asks,
        })
    }

    pub(super) fn to_wire(&self) -> wire::RepairDelta {
        wire::RepairDelta {
            session: self.session.to_vec(),
            member: self.member.into(),
            commitments: Some(self.commitments.to_wire()),
            delta: Some(self.delta.secret_to_wire()),
            asks: self.asks,
        }
    }
}

impl RepairAnswer {
    pub(super) fn from_wire(wire: wire::RepairAnswer) -> Result<Self, MessageError> {
        Ok(Self {
            session: field::array("session", &wire.session)?,
            commitments: commitments(wire.commitments)?,
            answer: Both::secret_from_wire("answer", field::present("answer", wire.answer)?)?,
        })
    }

    pub(super) fn to_wire(&self) -> wire::RepairAnswer {
        wire::RepairAnswer {
            session: self.session.to_vec(),
            commitments: Some(self.commitments.to_wire()),
            answer: Some(self.answer.secret_to_wire()),
        }
    }
}

fn commitments(wire: Option<wire::BothKeys>) -> Result<Both<Vec<u8>>, MessageError> {
    Both::from_wire("commitments", field::present("commitments", wire)?, MAX_COMMITMENTS_LEN)
}
