//! A header for thousands of members: encoded once, then each member's part appended.

use alloc::vec::Vec;
use core::marker::PhantomData;

use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint};
use quiver_ainq::{Delta, Deployment, EpochPart, Header, Slot, Suite, WrapTree};

use crate::epoch::{Newcomers, header_to_wire};
use crate::message::fingerprint_prefix;
use crate::wire::{message::Body, rekey};
use crate::{MAX_MESSAGE_LEN, MessageError, part, wire};

/// Field numbers of the `.proto`: `Message.deployment`, `Message.rekey`.
const DEPLOYMENT: u32 = 1;
const REKEY: u32 = 12;

/// A [`Rekey`](crate::Rekey) that lacks its part, encoded.
#[derive(Clone, Debug)]
pub struct RekeyTemplate<S: Suite> {
    common: Common,
    suite: PhantomData<S>,
}

impl<S: Suite> RekeyTemplate<S> {
    /// Encodes what all members share.
    pub fn new(deployment: &Deployment<S>, header: &Header<S>) -> Self {
        let rekey = wire::Rekey { header: Some(header_to_wire(header)), ..wire::Rekey::default() };
        let common = Common { deployment: fingerprint_prefix(deployment), header: rekey.encode_to_vec() };
        Self { common, suite: PhantomData }
    }

    /// The encoded message with this part, or without one for drones that were removed.
    pub fn message(&self, part: Option<&EpochPart>) -> Vec<u8> {
        self.common.message(part, &Newcomers::default())
    }

    /// The encoded message with these wraps and the newcomers that follow by them.
    pub fn broadcast(&self, wraps: Delta, newcomers: &Newcomers) -> Vec<u8> {
        self.common.message(Some(&EpochPart::Delta(wraps)), newcomers)
    }
}

/// A [`Rekey`](crate::Rekey) with the wraps of many members, from which whoever passes it on cuts each member's part.
/// Nothing in it is verified: a member verifies its part.
#[derive(Clone, Debug)]
pub struct RekeyParts {
    common: Common,
    tree: WrapTree,
}

impl RekeyParts {
    /// Decodes an encoded message.
    ///
    /// # Errors
    /// [`MessageError`] if it is no re-key, or one without all wraps, or if these do not have their form.
    pub fn decode(message: &[u8]) -> Result<Self, MessageError> {
        if message.len() > MAX_MESSAGE_LEN {
            return Err(MessageError::TooLong(message.len()));
        }
        let wire = wire::Message::decode(message).map_err(|_| MessageError::NotProtobuf)?;
        let Some(Body::Rekey(wire::Rekey { header, part: Some(rekey::Part::Delta(wraps)), .. })) = wire.body
        else {
            return Err(MessageError::Missing("wraps"));
        };
        let wrong = |error| MessageError::Field { field: "delta", error };
        let tree = Delta::from_bytes(wraps).and_then(|wraps| wraps.to_tree()).map_err(wrong)?;
        let header = wire::Rekey { header, ..wire::Rekey::default() }.encode_to_vec();
        Ok(Self { common: Common { deployment: wire.deployment, header }, tree })
    }

    /// The encoded message with the part of the member in this slot.
    pub fn message(&self, slot: Slot) -> Vec<u8> {
        self.common.message(Some(&EpochPart::Delta(self.tree.branch(slot))), &Newcomers::default())
    }
}

#[derive(Clone, Debug)]
struct Common {
    deployment: Vec<u8>,
    header: Vec<u8>,
}

impl Common {
    fn message(&self, part: Option<&EpochPart>, newcomers: &Newcomers) -> Vec<u8> {
        // Fields are encoded one after another, so a message without a header is the end of the whole one.
        let part =
            wire::Rekey { header: None, part: part.map(part::to_rekey), newcomers: newcomers.to_wire() };
        let body_len = self.header.len() + part.encoded_len();
        let mut message = Vec::with_capacity(self.deployment.len() + body_len + 16);
        encode_key(DEPLOYMENT, WireType::LengthDelimited, &mut message);
        encode_varint(self.deployment.len() as u64, &mut message);
        message.extend_from_slice(&self.deployment);
        encode_key(REKEY, WireType::LengthDelimited, &mut message);
        encode_varint(body_len as u64, &mut message);
        message.extend_from_slice(&self.header);
        part.encode_raw(&mut message);
        message
    }
}
