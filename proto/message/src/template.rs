//! One header for thousands of members: encoded once, then each member's entry appended.

use alloc::vec::Vec;
use core::marker::PhantomData;

use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};
use quiver_ainq::{Deployment, Entry, Header, Suite};

use crate::epoch::{entry_to_wire, header_to_wire};
use crate::message::fingerprint_prefix;
use crate::wire;

/// Field numbers of the `.proto`: `Message.deployment`, `Message.rekey`, `Rekey.entries`.
const DEPLOYMENT: u32 = 1;
const REKEY: u32 = 12;
const ENTRIES: u32 = 2;

/// A [`Rekey`](crate::Rekey) that lacks its entries, encoded.
#[derive(Clone, Debug)]
pub struct RekeyTemplate<S: Suite> {
    deployment: Vec<u8>,
    header: Vec<u8>,
    suite: PhantomData<S>,
}

impl<S: Suite> RekeyTemplate<S> {
    /// Encodes what all members share.
    pub fn new(deployment: &Deployment<S>, header: &Header<S>) -> Self {
        let rekey = wire::Rekey { header: Some(header_to_wire(header)), entries: Vec::new() };
        Self { deployment: fingerprint_prefix(deployment), header: rekey.encode_to_vec(), suite: PhantomData }
    }

    /// The encoded message with one entry, or with none for those who are out.
    pub fn message(&self, entry: Option<&Entry>) -> Vec<u8> {
        let entry = entry.map(|entry| entry_to_wire(entry).encode_to_vec());
        let entry_len =
            entry.as_ref().map_or(0, |entry| 1 + encoded_len_varint(entry.len() as u64) + entry.len());
        let body_len = self.header.len() + entry_len;
        let mut message = Vec::with_capacity(self.deployment.len() + body_len + 16);
        encode_key(DEPLOYMENT, WireType::LengthDelimited, &mut message);
        encode_varint(self.deployment.len() as u64, &mut message);
        message.extend_from_slice(&self.deployment);
        encode_key(REKEY, WireType::LengthDelimited, &mut message);
        encode_varint(body_len as u64, &mut message);
        message.extend_from_slice(&self.header);
        if let Some(entry) = entry {
            encode_key(ENTRIES, WireType::LengthDelimited, &mut message);
            encode_varint(entry.len() as u64, &mut message);
            message.extend_from_slice(&entry);
        }
        message
    }
}
