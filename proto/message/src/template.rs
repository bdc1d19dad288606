//! One header for thousands of members: encoded once, then each member's part appended.

use alloc::vec::Vec;
use core::marker::PhantomData;

use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint};
use quiver_ainq::{Deployment, Header, Part, Suite};

use crate::epoch::header_to_wire;
use crate::message::fingerprint_prefix;
use crate::{part, wire};

/// Field numbers of the `.proto`: `Message.deployment`, `Message.rekey`.
const DEPLOYMENT: u32 = 1;
const REKEY: u32 = 12;

/// A [`Rekey`](crate::Rekey) that lacks its part, encoded.
#[derive(Clone, Debug)]
pub struct RekeyTemplate<S: Suite> {
    deployment: Vec<u8>,
    header: Vec<u8>,
    suite: PhantomData<S>,
}

impl<S: Suite> RekeyTemplate<S> {
    /// Encodes what all members share.
    pub fn new(deployment: &Deployment<S>, header: &Header<S>) -> Self {
        let rekey = wire::Rekey { header: Some(header_to_wire(header)), part: None };
        Self { deployment: fingerprint_prefix(deployment), header: rekey.encode_to_vec(), suite: PhantomData }
    }

    /// The encoded message with this part, or without one for drones that were removed.
    pub fn message(&self, part: Option<&Part>) -> Vec<u8> {
        // Fields are encoded one after another, so a message without a header is the end of the whole one.
        let part = wire::Rekey { header: None, part: part.map(part::to_rekey) };
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
