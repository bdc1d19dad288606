//! Messages between the KGCs of a quorum.
//!
//! A quorum talks before it has made the key that names a deployment, so its messages have a frame of their
//! own, named by a fingerprint of what its members pinned. [`QuorumMessage::decode`] checks frame, lengths
//! and lists. The parts that FROST makes are bounded bytes here: `quiver-quorum` decodes them.
//!
//! | message | from → to | for |
//! |---|---|---|
//! | [`QuorumStatus`] | member → member | who holds what, and what each wants revoked |
//! | [`Ceremony`], [`CeremonyAbort`] | member → member | key generation, refresh |
//! | [`RepairRequest`], [`RepairStart`] | member without shares → all, helpers | repair |
//! | [`RepairOffer`], [`RepairAnswer`] | helper → member without shares | repair |
//! | [`RepairDelta`] | helper → helper | repair |
//! | [`SignProposal`], [`SignPackage`] | coordinator → all, signers | signing statements |
//! | [`SignCommitment`], [`SignShare`], [`SignRefusal`] | signer → coordinator | signing statements |
//! | [`SignedStatement`] | anyone → anyone | what was signed |
//! | [`QuorumProof`] | anyone → anyone | a drone's equivocation |
//!
//! The sender of a message is the authenticated peer of the connection: both ends are members.

mod ceremony;
mod repair;
mod secret;
mod signing;
mod status;

use alloc::vec::Vec;

use prost::Message as _;
use quiver_ainq::KgcId;

pub use self::ceremony::{Ceremony, CeremonyAbort, CeremonyKind, Echo, MAX_COMMITMENTS_LEN, Rounds};
pub use self::repair::{
    Helper, MAX_PUBLIC_SHARES_LEN, RepairAnswer, RepairDelta, RepairOffer, RepairRequest, RepairStart,
};
pub use self::secret::{Both, SecretBytes};
pub use self::signing::{
    MAX_BODY_LEN, MAX_STATEMENT_SIGNATURE_LEN, QuorumProof, SignCommitment, SignPackage, SignProposal,
    SignRefusal, SignRefusalReason, SignShare, SignedStatement, SignerCommitment, SigningSession,
};
pub use self::status::{MAX_PROPOSED, QuorumStatus};
use crate::wire::quorum_message::Body;
use crate::{MAX_MESSAGE_LEN, MessageError, field, wire};

/// Members a quorum may have.
pub const MAX_MEMBERS: usize = 64;

/// A message whose fields have been validated one by one. Its sender is the connection's peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant is the type of its name")]
pub enum QuorumMessage {
    Status(QuorumStatus),
    Ceremony(Ceremony),
    Abort(CeremonyAbort),
    RepairRequest(RepairRequest),
    RepairOffer(RepairOffer),
    RepairStart(RepairStart),
    RepairDelta(RepairDelta),
    RepairAnswer(RepairAnswer),
    SignProposal(SignProposal),
    SignCommitment(SignCommitment),
    SignPackage(SignPackage),
    SignShare(SignShare),
    SignRefusal(SignRefusal),
    SignedStatement(SignedStatement),
    Proof(QuorumProof),
}

impl QuorumMessage {
    /// Returns true if these bytes begin as a message between members does, and no
    /// [`Message`](crate::Message) does: distinguishes the two on one connection.
    #[must_use]
    pub fn is_framed_as(bytes: &[u8]) -> bool {
        // Field 64, a byte string of 32 bytes.
        bytes.starts_with(&[0x82, 0x04, 32])
    }

    /// Decodes a message of the quorum with this fingerprint.
    ///
    /// # Errors
    /// The error of malformed bytes, with the name of the field.
    pub fn decode(quorum: &[u8; 32], bytes: &[u8]) -> Result<Self, MessageError> {
        if bytes.len() > MAX_MESSAGE_LEN {
            return Err(MessageError::TooLong(bytes.len()));
        }
        let wire = wire::QuorumMessage::decode(bytes).map_err(|_| MessageError::NotProtobuf)?;
        if wire.encode_to_vec() != bytes {
            return Err(MessageError::NotCanonical);
        }
        // §5.1: the fingerprint of the membership frames every message.
        if wire.quorum != quorum {
            return Err(MessageError::ForeignDeployment);
        }
        Self::from_body(wire.body.ok_or(MessageError::NoBody)?)
    }

    /// Encodes a message for the quorum with this fingerprint.
    #[must_use]
    pub fn encode(&self, quorum: &[u8; 32]) -> Vec<u8> {
        wire::QuorumMessage { quorum: quorum.to_vec(), body: Some(self.to_body()) }.encode_to_vec()
    }

    fn from_body(body: Body) -> Result<Self, MessageError> {
        Ok(match body {
            Body::Status(wire) => Self::Status(QuorumStatus::from_wire(&wire)?),
            Body::Ceremony(wire) => Self::Ceremony(Ceremony::from_wire(wire)?),
            Body::Abort(wire) => Self::Abort(CeremonyAbort::from_wire(&wire)?),
            Body::RepairRequest(wire) => Self::RepairRequest(RepairRequest::from_wire(&wire)?),
            Body::RepairOffer(wire) => Self::RepairOffer(RepairOffer::from_wire(wire)?),
            Body::RepairStart(wire) => Self::RepairStart(RepairStart::from_wire(&wire)?),
            Body::RepairDelta(wire) => Self::RepairDelta(RepairDelta::from_wire(wire)?),
            Body::RepairAnswer(wire) => Self::RepairAnswer(RepairAnswer::from_wire(wire)?),
            Body::SignProposal(wire) => Self::SignProposal(SignProposal::from_wire(wire)?),
            Body::SignCommitment(wire) => Self::SignCommitment(SignCommitment::from_wire(wire)?),
            Body::SignPackage(wire) => Self::SignPackage(SignPackage::from_wire(wire)?),
            Body::SignShare(wire) => Self::SignShare(SignShare::from_wire(wire)?),
            Body::SignRefusal(wire) => Self::SignRefusal(SignRefusal::from_wire(&wire)?),
            Body::SignedStatement(wire) => Self::SignedStatement(SignedStatement::from_wire(wire)?),
            Body::Proof(wire) => Self::Proof(QuorumProof::from_wire(wire)?),
        })
    }

    fn to_body(&self) -> Body {
        match self {
            Self::Status(message) => Body::Status(message.to_wire()),
            Self::Ceremony(message) => Body::Ceremony(message.to_wire()),
            Self::Abort(message) => Body::Abort(message.to_wire()),
            Self::RepairRequest(message) => Body::RepairRequest(message.to_wire()),
            Self::RepairOffer(message) => Body::RepairOffer(message.to_wire()),
            Self::RepairStart(message) => Body::RepairStart(message.to_wire()),
            Self::RepairDelta(message) => Body::RepairDelta(message.to_wire()),
            Self::RepairAnswer(message) => Body::RepairAnswer(message.to_wire()),
            Self::SignProposal(message) => Body::SignProposal(message.to_wire()),
            Self::SignCommitment(message) => Body::SignCommitment(message.to_wire()),
            Self::SignPackage(message) => Body::SignPackage(message.to_wire()),
            Self::SignShare(message) => Body::SignShare(message.to_wire()),
            Self::SignRefusal(message) => Body::SignRefusal(message.to_wire()),
            Self::SignedStatement(message) => Body::SignedStatement(message.to_wire()),
            Self::Proof(message) => Body::Proof(message.to_wire()),
        }
    }
}

/// A member's identifier: 1 to 65535.
fn kgc(field: &'static str, number: u32) -> Result<KgcId, MessageError> {
    u16::try_from(number).ok().filter(|id| *id > 0).ok_or(MessageError::Invalid(field))
}

/// An optional field of fixed length: left out if it is empty.
fn optional<const N: usize>(field: &'static str, bytes: &[u8]) -> Result<Option<[u8; N]>, MessageError> {
    if bytes.is_empty() { Ok(None) } else { field::array(field, bytes).map(Some) }
}
