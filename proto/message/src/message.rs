//! The envelope around every message.

use alloc::boxed::Box;
use alloc::vec::Vec;

use prost::Message as _;
use prost::bytes::Bytes;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use quiver_ainq::{Deployment, DronePublicKey, EquivocationProof, Suite};

use crate::wire::message::Body;
use crate::{
    Ack, CatchUpReply, CatchUpRequest, EnrolCookie, EnrolHello, EnrolReply, EnrolRequest, EvictionNotice,
    GroupMessage, JoinChallenge, JoinCiphertext, JoinHello, JoinRequest, Leave, MessageError, Refusal, Rekey,
    RevocationList, RevocationQuery, SpareAck, SparePublication, Welcome, equivocation, wire,
};
#[cfg(feature = "services")]
use crate::{AdmissionChallenge, AdmissionHello, AdmissionLeave, AdmissionProof, AdmissionStep};
#[cfg(feature = "delivery")]
use crate::{DeliveryChallenge, DeliveryHello, DeliveryReply, DeliveryRequest};
#[cfg(feature = "threshold")]
use crate::{EnrolCommitment, EnrolDone, EnrolShare, EnrolSigning};
#[cfg(feature = "envelopes")]
use crate::{Envelope, OpeningRequest};
#[cfg(feature = "services")]
use crate::{EpochChanges, Replica, StandBy};

/// The longest encoded message in bytes.
pub const MAX_MESSAGE_LEN: usize = 1 << 20;

/// Bytes of the deployment's fingerprint in every message: enough to distinguish a misconfigured peer from a
/// broken one. What must be bound to the deployment is bound in hashes and signatures, with all of it.
const FINGERPRINT_LEN: usize = 8;

/// Numbers of the fields in which a group message stands, and in it its channel.
const GROUP_MESSAGE_FIELD: u32 = 19;
/// See [`GROUP_MESSAGE_FIELD`].
const CHANNEL_FIELD: u32 = 8;

/// True if there are others than edges to be spoken to.
const SERVICES: bool = cfg!(feature = "services");

pub(crate) fn fingerprint_prefix<S: Suite>(deployment: &Deployment<S>) -> Vec<u8> {
    deployment.fingerprint().iter().take(FINGERPRINT_LEN).copied().collect()
}

/// Encodes into memory of its length: a vector would grow with every byte.
fn encoded(wire: &wire::Message) -> Vec<u8> {
    let mut bytes = alloc::vec![0; wire.encoded_len()];
    // There is room for it.
    wire.encode_raw(&mut bytes.as_mut_slice());
    bytes
}

/// A message whose fields have been validated one by one; its sender is not authenticated.
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
    GroupMessage(GroupMessage),
    RevocationQuery(RevocationQuery),
    RevocationList(RevocationList),
    #[cfg(feature = "services")]
    StandBy(StandBy),
    #[cfg(feature = "services")]
    Replica(Replica<S>),
    #[cfg(feature = "services")]
    EpochChanges(EpochChanges<S>),
    JoinCiphertext(JoinCiphertext),
    EquivocationProof(Box<EquivocationProof<S>>),
    #[cfg(feature = "delivery")]
    DeliveryHello(DeliveryHello),
    #[cfg(feature = "delivery")]
    DeliveryChallenge(DeliveryChallenge),
    #[cfg(feature = "delivery")]
    DeliveryRequest(DeliveryRequest),
    #[cfg(feature = "delivery")]
    DeliveryReply(DeliveryReply),
    #[cfg(feature = "envelopes")]
    Envelope(Envelope),
    #[cfg(feature = "envelopes")]
    OpeningRequest(OpeningRequest),
    #[cfg(feature = "threshold")]
    EnrolCommitment(EnrolCommitment),
    #[cfg(feature = "threshold")]
    EnrolSigning(EnrolSigning),
    #[cfg(feature = "threshold")]
    EnrolShare(EnrolShare),
    #[cfg(feature = "threshold")]
    EnrolDone(EnrolDone),
    #[cfg(feature = "services")]
    AdmissionHello(AdmissionHello),
    #[cfg(feature = "services")]
    AdmissionChallenge(AdmissionChallenge<S>),
    #[cfg(feature = "services")]
    AdmissionProof(AdmissionProof),
    #[cfg(feature = "services")]
    AdmissionStep(AdmissionStep),
    #[cfg(feature = "services")]
    AdmissionLeave(AdmissionLeave),
}

impl<S: Suite> Message<S> {
    /// Returns true if a message may come by the group (docs/protocol.md §13.6): others are for one peer, and
    /// publishing them would make many answer.
    #[must_use]
    pub const fn is_publication(&self) -> bool {
        match self {
            Self::Rekey(_)
            | Self::GroupMessage(_)
            | Self::EvictionNotice(_)
            | Self::RevocationList(_)
            | Self::EquivocationProof(_) => true,
            #[cfg(feature = "envelopes")]
            Self::Envelope(_) | Self::OpeningRequest(_) => true,
            _ => false,
        }
    }

    /// Decodes a message of this deployment.
    ///
    /// # Errors
    /// The error of malformed bytes, with the name of the field.
    pub fn decode(deployment: &Deployment<S>, bytes: &[u8]) -> Result<Self, MessageError> {
        Self::decode_expecting(deployment, bytes, None)
    }

    /// Decodes a message, as [`decode`](Self::decode) does, where a certain leader is expected: if the
    /// message has that key as its leader's or its sender's, its points are not decoded again and it comes
    /// with the Y that it [remembers](DronePublicKey::remember_implicit). The message is the same.
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
        // Copied once, as fields are parts of what they are read from.
        let shared = Bytes::copy_from_slice(bytes);
        let wire = wire::Message::decode(shared).map_err(|_| MessageError::NotProtobuf)?;
        // §1.1: the first 8 bytes of the fingerprint: distinguishes a misconfigured peer from a broken one.
        if Some(&*wire.deployment) != deployment.fingerprint().get(..FINGERPRINT_LEN) {
            return Err(MessageError::ForeignDeployment);
        }
        // Before its form is checked: a message of an unknown kind is no offence.
        if wire.body.is_none() {
            return Err(MessageError::NoBody);
        }
        // One encoding for each message: what was signed or hashed is what is read.
        if encoded(&wire) != bytes {
            return Err(MessageError::NotCanonical);
        }
        Self::from_body(wire.body.ok_or(MessageError::NoBody)?, leader)
    }

    /// Encodes a message for this deployment.
    pub fn encode(&self, deployment: &Deployment<S>) -> Vec<u8> {
        encoded(&wire::Message { deployment: fingerprint_prefix(deployment), body: Some(self.to_body()) })
    }

    /// Apart from the checks of the encoding: boards' images are 1 KB smaller.
    #[inline(never)]
    fn from_body(body: Body, leader: Option<&DronePublicKey<S>>) -> Result<Self, MessageError> {
        match body {
            Body::EnrolHello(wire) if SERVICES => EnrolHello::from_wire(&wire).map(Self::EnrolHello),
            Body::EnrolCookie(wire) => EnrolCookie::from_wire(&wire).map(Self::EnrolCookie),
            Body::EnrolRequest(wire) if SERVICES => EnrolRequest::from_wire(wire).map(Self::EnrolRequest),
            Body::EnrolReply(wire) => EnrolReply::from_wire(wire).map(Self::EnrolReply),
            Body::Refusal(wire) => Refusal::from_wire(wire).map(Self::Refusal),
            Body::JoinHello(wire) if SERVICES => JoinHello::from_wire(wire).map(Self::JoinHello),
            Body::JoinChallenge(wire) => JoinChallenge::from_wire(&wire, leader).map(Self::JoinChallenge),
            Body::JoinRequest(wire) if SERVICES => JoinRequest::from_wire(wire).map(Self::JoinRequest),
            Body::Welcome(wire) => Welcome::from_wire(&wire, leader).map(Self::Welcome),
            Body::Ack(wire) if SERVICES => Ack::from_wire(&wire).map(Self::Ack),
            Body::Rekey(wire) => Rekey::from_wire(wire, leader).map(Self::Rekey),
            Body::CatchUpRequest(wire) if SERVICES => {
                CatchUpRequest::from_wire(&wire).map(Self::CatchUpRequest)
            }
            Body::CatchUpReply(wire) => CatchUpReply::from_wire(&wire, leader).map(Self::CatchUpReply),
            Body::SparePublication(wire) if SERVICES => {
                SparePublication::from_wire(&wire).map(Self::SparePublication)
            }
            Body::SpareAck(wire) => SpareAck::from_wire(&wire).map(Self::SpareAck),
            Body::Leave(wire) if SERVICES => Leave::from_wire(&wire).map(Self::Leave),
            Body::EvictionNotice(wire) => EvictionNotice::from_wire(&wire, leader).map(Self::EvictionNotice),
            Body::GroupMessage(wire) => GroupMessage::from_wire(wire).map(Self::GroupMessage),
            Body::RevocationQuery(wire) => Ok(Self::RevocationQuery(RevocationQuery::from_wire(wire))),
            Body::RevocationList(wire) => RevocationList::from_wire(wire).map(Self::RevocationList),
            #[cfg(feature = "services")]
            Body::StandBy(wire) => StandBy::from_wire(wire).map(Self::StandBy),
            #[cfg(feature = "services")]
            Body::Replica(wire) => Replica::from_wire(wire).map(Self::Replica),
            #[cfg(feature = "services")]
            Body::EpochChanges(wire) => EpochChanges::from_wire(&wire).map(Self::EpochChanges),
            Body::JoinCiphertext(wire) => JoinCiphertext::from_wire(wire).map(Self::JoinCiphertext),
            Body::EquivocationProof(wire) => {
                equivocation::from_wire(&wire).map(|proof| Self::EquivocationProof(Box::new(proof)))
            }
            #[cfg(feature = "delivery")]
            Body::DeliveryHello(wire) if SERVICES => DeliveryHello::from_wire(&wire).map(Self::DeliveryHello),
            #[cfg(feature = "delivery")]
            Body::DeliveryChallenge(wire) => DeliveryChallenge::from_wire(&wire).map(Self::DeliveryChallenge),
            #[cfg(feature = "delivery")]
            Body::DeliveryRequest(wire) if SERVICES => {
                DeliveryRequest::from_wire(wire).map(Self::DeliveryRequest)
            }
            #[cfg(feature = "delivery")]
            Body::DeliveryReply(wire) => DeliveryReply::from_wire(wire).map(Self::DeliveryReply),
            #[cfg(feature = "envelopes")]
            Body::Envelope(wire) => Envelope::from_wire(wire).map(Self::Envelope),
            #[cfg(feature = "envelopes")]
            Body::OpeningRequest(wire) => OpeningRequest::from_wire(&wire).map(Self::OpeningRequest),
            #[cfg(feature = "threshold")]
            Body::EnrolCommitment(wire) => EnrolCommitment::from_wire(wire).map(Self::EnrolCommitment),
            #[cfg(feature = "threshold")]
            Body::EnrolSigning(wire) if SERVICES => EnrolSigning::from_wire(wire).map(Self::EnrolSigning),
            #[cfg(feature = "threshold")]
            Body::EnrolShare(wire) => EnrolShare::from_wire(wire).map(Self::EnrolShare),
            #[cfg(feature = "threshold")]
            Body::EnrolDone(wire) if SERVICES => EnrolDone::from_wire(wire).map(Self::EnrolDone),
            #[cfg(feature = "services")]
            Body::AdmissionHello(wire) => AdmissionHello::from_wire(&wire).map(Self::AdmissionHello),
            #[cfg(feature = "services")]
            Body::AdmissionChallenge(wire) => {
                AdmissionChallenge::from_wire(wire, leader).map(Self::AdmissionChallenge)
            }
            #[cfg(feature = "services")]
            Body::AdmissionProof(wire) => AdmissionProof::from_wire(wire).map(Self::AdmissionProof),
            #[cfg(feature = "services")]
            Body::AdmissionStep(wire) => AdmissionStep::from_wire(wire).map(Self::AdmissionStep),
            #[cfg(feature = "services")]
            Body::AdmissionLeave(wire) => AdmissionLeave::from_wire(&wire).map(Self::AdmissionLeave),
            // Messages that an edge sends and none receives.
            _ => Err(MessageError::NoBody),
        }
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
            #[cfg(feature = "services")]
            Self::StandBy(message) => Body::StandBy(message.to_wire()),
            #[cfg(feature = "services")]
            Self::Replica(message) => Body::Replica(message.to_wire()),
            #[cfg(feature = "services")]
            Self::EpochChanges(message) => Body::EpochChanges(message.to_wire()),
            Self::JoinCiphertext(message) => Body::JoinCiphertext(message.to_wire()),
            Self::EquivocationProof(proof) => Body::EquivocationProof(equivocation::to_wire(proof)),
            #[cfg(feature = "delivery")]
            Self::DeliveryHello(message) => Body::DeliveryHello(message.to_wire()),
            #[cfg(feature = "delivery")]
            Self::DeliveryChallenge(message) => Body::DeliveryChallenge(message.to_wire()),
            #[cfg(feature = "delivery")]
            Self::DeliveryRequest(message) => Body::DeliveryRequest(message.to_wire()),
            #[cfg(feature = "delivery")]
            Self::DeliveryReply(message) => Body::DeliveryReply(message.to_wire()),
            #[cfg(feature = "envelopes")]
            Self::Envelope(message) => Body::Envelope(message.to_wire()),
            #[cfg(feature = "envelopes")]
            Self::OpeningRequest(message) => Body::OpeningRequest(message.to_wire()),
            #[cfg(feature = "threshold")]
            Self::EnrolCommitment(message) => Body::EnrolCommitment(message.to_wire()),
            #[cfg(feature = "threshold")]
            Self::EnrolSigning(message) => Body::EnrolSigning(message.to_wire()),
            #[cfg(feature = "threshold")]
            Self::EnrolShare(message) => Body::EnrolShare(message.to_wire()),
            #[cfg(feature = "threshold")]
            Self::EnrolDone(message) => Body::EnrolDone(message.to_wire()),
            #[cfg(feature = "services")]
            Self::AdmissionHello(message) => Body::AdmissionHello(message.to_wire()),
            #[cfg(feature = "services")]
            Self::AdmissionChallenge(message) => Body::AdmissionChallenge(message.to_wire()),
            #[cfg(feature = "services")]
            Self::AdmissionProof(message) => Body::AdmissionProof(message.to_wire()),
            #[cfg(feature = "services")]
            Self::AdmissionStep(message) => Body::AdmissionStep(message.to_wire()),
            #[cfg(feature = "services")]
            Self::AdmissionLeave(message) => Body::AdmissionLeave(message.to_wire()),
        }
    }
}
/// Channel of an encoded group message, which it has in the clear; `None` for every other message. Nothing is verified, and
/// nothing is copied: for those who pass messages on without reading them.
#[must_use]
pub fn group_message_channel(bytes: &[u8]) -> Option<&str> {
    let message = field_bytes(bytes, GROUP_MESSAGE_FIELD)?;
    core::str::from_utf8(field_bytes(message, CHANNEL_FIELD)?).ok()
}

/// Bytes of the first field of this number.
fn field_bytes(mut bytes: &[u8], number: u32) -> Option<&[u8]> {
    while !bytes.is_empty() {
        let (found, kind) = decode_key(&mut bytes).ok()?;
        if kind != WireType::LengthDelimited {
            skip_field(kind, found, &mut bytes, DecodeContext::default()).ok()?;
            continue;
        }
        let length = usize::try_from(decode_varint(&mut bytes).ok()?).ok()?;
        let (field, rest) = bytes.split_at_checked(length)?;
        if found == number {
            return Some(field);
        }
        bytes = rest;
    }
    None
}
