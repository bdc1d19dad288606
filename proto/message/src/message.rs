//! The envelope around every message.

use alloc::boxed::Box;
use alloc::vec::Vec;

use prost::Message as _;
use quiver_ainq::{Deployment, DronePublicKey, EquivocationProof, Suite};

use crate::wire::message::Body;
use crate::{
    Ack, AttributeChallenge, AttributeHello, AttributeReply, AttributeRequest, CatchUpReply, CatchUpRequest,
    EnrolCommitment, EnrolCookie, EnrolHello, EnrolReply, EnrolRequest, EnrolShare, EnrolSigning, Envelope,
    EvictionNotice, GroupMessage, JoinChallenge, JoinHello, JoinRequest, Leave, MessageError, OpeningRequest,
    Refusal, Rekey, ReleaseChallenge, ReleaseHello, ReleaseReply, ReleaseRequest, Replica, RevocationList,
    RevocationQuery, SpareAck, SparePublication, StandBy, Welcome, deputy, wire,
};

/// The longest encoded message in bytes.
pub const MAX_MESSAGE_LEN: usize = 1 << 20;

/// How much of the deployment's fingerprint every message carries, in bytes: enough to tell a misconfigured peer from a
/// broken one. What must be bound to the deployment is bound in hashes and signatures, with all of it.
const FINGERPRINT_LEN: usize = 8;

pub(crate) fn fingerprint_prefix<S: Suite>(deployment: &Deployment<S>) -> Vec<u8> {
    deployment.fingerprint().iter().take(FINGERPRINT_LEN).copied().collect()
}

/// A message whose fields have been checked one by one; who said it has not.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant is the type of its name")]
pub enum Message<S: Suite> {
    EnrolHello(EnrolHello),
    EnrolCookie(EnrolCookie),
    EnrolRequest(EnrolRequest),
    EnrolReply(EnrolReply),
    Refusal(Refusal),
    JoinHello(JoinHello),
    JoinChallenge(JoinChallenge<S>),
    JoinRequest(JoinRequest),
    Welcome(Welcome<S>),
    Ack(Ack),
    Rekey(Rekey<S>),
    CatchUpRequest(CatchUpRequest),
    CatchUpReply(CatchUpReply<S>),
    SparePublication(SparePublication<S>),
    SpareAck(SpareAck),
    Leave(Leave<S>),
    EvictionNotice(EvictionNotice<S>),
    GroupMessage(GroupMessage<S>),
    RevocationQuery(RevocationQuery),
    RevocationList(RevocationList),
    StandBy(StandBy),
    Replica(Replica<S>),
    EquivocationProof(Box<EquivocationProof<S>>),
    AttributeHello(AttributeHello),
    AttributeChallenge(AttributeChallenge),
    AttributeRequest(AttributeRequest),
    AttributeReply(AttributeReply),
    Envelope(Envelope),
    OpeningRequest(OpeningRequest),
    EnrolCommitment(EnrolCommitment),
    EnrolSigning(EnrolSigning),
    EnrolShare(EnrolShare),
    ReleaseHello(ReleaseHello),
    ReleaseChallenge(ReleaseChallenge),
    ReleaseRequest(ReleaseRequest),
    ReleaseReply(ReleaseReply),
}

impl<S: Suite> Message<S> {
    /// Decodes a message of this deployment.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes, with the name of the field.
    pub fn decode(deployment: &Deployment<S>, bytes: &[u8]) -> Result<Self, MessageError> {
        Self::decode_expecting(deployment, bytes, None)
    }

    /// As [`decode`](Self::decode) for somebody who expects a certain leader to speak: where the message has that key as its
    /// leader's or its speaker's, its points are not decoded again and it comes with the Y that it
    /// [remembers](DronePublicKey::remember_implicit). The message is the same.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_expecting(
        deployment: &Deployment<S>,
        bytes: &[u8],
        leader: Option<&DronePublicKey<S>>,
    ) -> Result<Self, MessageError> {
        if bytes.len() > MAX_MESSAGE_LEN {
            return Err(MessageError::TooLong(bytes.len()));
        }
        let wire = wire::Message::decode(bytes).map_err(|_| MessageError::NotProtobuf)?;
        if wire.encode_to_vec() != bytes {
            return Err(MessageError::NotCanonical);
        }
        if wire.deployment != fingerprint_prefix(deployment) {
            return Err(MessageError::ForeignDeployment);
        }
        Self::from_body(wire.body.ok_or(MessageError::NoBody)?, leader)
    }

    /// Encodes a message for this deployment.
    pub fn encode(&self, deployment: &Deployment<S>) -> Vec<u8> {
        wire::Message { deployment: fingerprint_prefix(deployment), body: Some(self.to_body()) }
            .encode_to_vec()
    }

    fn from_body(body: Body, leader: Option<&DronePublicKey<S>>) -> Result<Self, MessageError> {
        Ok(match body {
            Body::EnrolHello(wire) => Self::EnrolHello(EnrolHello::from_wire(&wire)?),
            Body::EnrolCookie(wire) => Self::EnrolCookie(EnrolCookie::from_wire(&wire)?),
            Body::EnrolRequest(wire) => Self::EnrolRequest(EnrolRequest::from_wire(wire)?),
            Body::EnrolReply(wire) => Self::EnrolReply(EnrolReply::from_wire(wire)?),
            Body::Refusal(wire) => Self::Refusal(Refusal::from_wire(wire)?),
            Body::JoinHello(wire) => Self::JoinHello(JoinHello::from_wire(wire)?),
            Body::JoinChallenge(wire) => Self::JoinChallenge(JoinChallenge::from_wire(&wire, leader)?),
            Body::JoinRequest(wire) => Self::JoinRequest(JoinRequest::from_wire(wire)?),
            Body::Welcome(wire) => Self::Welcome(Welcome::from_wire(&wire, leader)?),
            Body::Ack(wire) => Self::Ack(Ack::from_wire(&wire)?),
            Body::Rekey(wire) => Self::Rekey(Rekey::from_wire(wire, leader)?),
            Body::CatchUpRequest(wire) => Self::CatchUpRequest(CatchUpRequest::from_wire(&wire)?),
            Body::CatchUpReply(wire) => Self::CatchUpReply(CatchUpReply::from_wire(&wire, leader)?),
            Body::SparePublication(wire) => Self::SparePublication(SparePublication::from_wire(&wire)?),
            Body::SpareAck(wire) => Self::SpareAck(SpareAck::from_wire(&wire)?),
            Body::Leave(wire) => Self::Leave(Leave::from_wire(&wire)?),
            Body::EvictionNotice(wire) => Self::EvictionNotice(EvictionNotice::from_wire(&wire, leader)?),
            Body::GroupMessage(wire) => Self::GroupMessage(GroupMessage::from_wire(wire, leader)?),
            Body::RevocationQuery(wire) => Self::RevocationQuery(RevocationQuery::from_wire(wire)),
            Body::RevocationList(wire) => Self::RevocationList(RevocationList::from_wire(wire)?),
            Body::StandBy(wire) => Self::StandBy(StandBy::from_wire(wire)?),
            Body::Replica(wire) => Self::Replica(Replica::from_wire(wire)?),
            Body::EquivocationProof(wire) => {
                Self::EquivocationProof(Box::new(deputy::proof_from_wire(&wire)?))
            }
            Body::AttributeHello(wire) => Self::AttributeHello(AttributeHello::from_wire(&wire)?),
            Body::AttributeChallenge(wire) => Self::AttributeChallenge(AttributeChallenge::from_wire(&wire)?),
            Body::AttributeRequest(wire) => Self::AttributeRequest(AttributeRequest::from_wire(wire)?),
            Body::AttributeReply(wire) => Self::AttributeReply(AttributeReply::from_wire(wire)?),
            Body::Envelope(wire) => Self::Envelope(Envelope::from_wire(wire)?),
            Body::OpeningRequest(wire) => Self::OpeningRequest(OpeningRequest::from_wire(&wire)?),
            Body::EnrolCommitment(wire) => Self::EnrolCommitment(EnrolCommitment::from_wire(wire)?),
            Body::EnrolSigning(wire) => Self::EnrolSigning(EnrolSigning::from_wire(wire)?),
            Body::EnrolShare(wire) => Self::EnrolShare(EnrolShare::from_wire(wire)?),
            Body::ReleaseHello(wire) => Self::ReleaseHello(ReleaseHello::from_wire(&wire)?),
            Body::ReleaseChallenge(wire) => Self::ReleaseChallenge(ReleaseChallenge::from_wire(&wire)?),
            Body::ReleaseRequest(wire) => Self::ReleaseRequest(ReleaseRequest::from_wire(wire)?),
            Body::ReleaseReply(wire) => Self::ReleaseReply(ReleaseReply::from_wire(wire)?),
        })
    }

    fn to_body(&self) -> Body {
        match self {
            Self::EnrolHello(message) => Body::EnrolHello(message.to_wire()),
            Self::EnrolCookie(message) => Body::EnrolCookie(message.to_wire()),
            Self::EnrolRequest(message) => Body::EnrolRequest(message.to_wire()),
            Self::EnrolReply(message) => Body::EnrolReply(message.to_wire()),
            Self::Refusal(message) => Body::Refusal(message.to_wire()),
            Self::JoinHello(message) => Body::JoinHello(message.to_wire()),
            Self::JoinChallenge(message) => Body::JoinChallenge(message.to_wire()),
            Self::JoinRequest(message) => Body::JoinRequest(message.to_wire()),
            Self::Welcome(message) => Body::Welcome(message.to_wire()),
            Self::Ack(message) => Body::Ack(message.to_wire()),
            Self::Rekey(message) => Body::Rekey(message.to_wire()),
            Self::CatchUpRequest(message) => Body::CatchUpRequest(message.to_wire()),
            Self::CatchUpReply(message) => Body::CatchUpReply(message.to_wire()),
            Self::SparePublication(message) => Body::SparePublication(message.to_wire()),
            Self::SpareAck(message) => Body::SpareAck(message.to_wire()),
            Self::Leave(message) => Body::Leave(message.to_wire()),
            Self::EvictionNotice(message) => Body::EvictionNotice(message.to_wire()),
            Self::GroupMessage(message) => Body::GroupMessage(message.to_wire()),
            Self::RevocationQuery(message) => Body::RevocationQuery(message.to_wire()),
            Self::RevocationList(message) => Body::RevocationList(message.to_wire()),
            Self::StandBy(message) => Body::StandBy(message.to_wire()),
            Self::Replica(message) => Body::Replica(message.to_wire()),
            Self::EquivocationProof(proof) => Body::EquivocationProof(deputy::proof_to_wire(proof)),
            Self::AttributeHello(message) => Body::AttributeHello(message.to_wire()),
            Self::AttributeChallenge(message) => Body::AttributeChallenge(message.to_wire()),
            Self::AttributeRequest(message) => Body::AttributeRequest(message.to_wire()),
            Self::AttributeReply(message) => Body::AttributeReply(message.to_wire()),
            Self::Envelope(message) => Body::Envelope(message.to_wire()),
            Self::OpeningRequest(message) => Body::OpeningRequest(message.to_wire()),
            Self::EnrolCommitment(message) => Body::EnrolCommitment(message.to_wire()),
            Self::EnrolSigning(message) => Body::EnrolSigning(message.to_wire()),
            Self::EnrolShare(message) => Body::EnrolShare(message.to_wire()),
            Self::ReleaseHello(message) => Body::ReleaseHello(message.to_wire()),
            Self::ReleaseChallenge(message) => Body::ReleaseChallenge(message.to_wire()),
            Self::ReleaseRequest(message) => Body::ReleaseRequest(message.to_wire()),
            Self::ReleaseReply(message) => Body::ReleaseReply(message.to_wire()),
        }
    }
}
