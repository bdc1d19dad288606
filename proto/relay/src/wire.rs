//! Messages between relays and leaders: batches of frames (protobuf).

use prost::bytes::Buf;
use prost::{Message, Oneof};
use quiver_machine::MAX_MESSAGE_LEN;

/// Bytes of a batch beside its frames, and of a frame beside its payload, at most.
const OVERHEAD: usize = 64;
/// The longest message of a drone or to one that is relayed, in bytes.
pub(crate) const MAX_PAYLOAD: usize = MAX_MESSAGE_LEN - OVERHEAD;

/// A message between a relay and its leader. Empty fields take no bytes.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RelayBatch {
    /// Drawn by the relay when it begins anew.
    #[prost(fixed64, tag = "1")]
    pub(crate) session: u64,
    /// From 1, of one end's batches with frames; 0 for one without.
    #[prost(uint64, tag = "2")]
    pub(crate) number: u64,
    /// Greatest number up to which all of the other end's batches have come.
    #[prost(uint64, tag = "3")]
    pub(crate) received: u64,
    /// [`RelayFrame`]s, each behind its length.
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) frames: Vec<u8>,
    /// The session is over.
    #[prost(bool, tag = "5")]
    pub(crate) ended: bool,
}

/// Message that concerns one drone, or none (0).
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RelayFrame {
    /// Given by the relay, from 1 on, never twice in a session.
    #[prost(uint32, tag = "1")]
    pub(crate) drone: u32,
    #[prost(oneof = "FrameBody", tags = "2, 3, 4, 5, 6, 7")]
    pub(crate) body: Option<FrameBody>,
}

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(crate) enum FrameBody {
    /// The drone has connected. The relay's.
    #[prost(bool, tag = "2")]
    Opened(bool),
    /// A message of the drone, or to it.
    #[prost(bytes, tag = "3")]
    Data(Vec<u8>),
    /// The drone is gone, or is to go: an [`End`].
    #[prost(uint32, tag = "4")]
    Closed(u32),
    /// True if the drone's group messages are passed on. The leader's.
    #[prost(bool, tag = "5")]
    Relayed(bool),
    /// The slot whose part of broadcasts the drone needs, and 1 more; 0 for none. The leader's.
    #[prost(uint32, tag = "6")]
    Slot(u32),
    /// A re-key of which every drone with a slot is sent its part. The leader's.
    #[prost(bytes, tag = "7")]
    Broadcast(Vec<u8>),
}

/// Reason why a drone goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its connection ended, or is to be ended.
    Plain = 0,
    /// It is never talked to again.
    Blocked = 1,
    /// It is refused for a while: a signature of its was invalid.
    Forgery = 2,
    /// It is refused for a while: it sent many messages that could not be read.
    Garbage = 3,
}

impl End {
    pub(crate) const fn of(number: u32) -> Self {
        match number {
            1 => Self::Blocked,
            2 => Self::Forgery,
            3 => Self::Garbage,
            _ => Self::Plain,
        }
    }
}

/// The frame behind its length.
pub(crate) fn frame(drone: u32, body: FrameBody) -> Vec<u8> {
    RelayFrame { drone, body: Some(body) }.encode_length_delimited_to_vec()
}

/// The frames of a batch, one at a time: memory is taken for one.
pub(crate) fn frames(mut bytes: &[u8]) -> impl Iterator<Item = Option<RelayFrame>> + '_ {
    std::iter::from_fn(move || {
        bytes.has_remaining().then(|| {
            let frame = RelayFrame::decode_length_delimited(&mut bytes).ok();
            if frame.is_none() {
                bytes = &[];
            }
            frame
        })
    })
}

/// The messages of drones, or to them, and the broadcasts that a batch carries, for observers; what does not decode is
/// left out.
pub fn carried(batch: &[u8]) -> Vec<Vec<u8>> {
    let batch =
        Some(batch).filter(|batch| batch.len() <= MAX_MESSAGE_LEN).and_then(|it| RelayBatch::decode(it).ok());
    let batch = batch.unwrap_or_default();
    let carried = frames(&batch.frames).flatten().filter_map(|frame| match frame.body {
        Some(FrameBody::Data(message) | FrameBody::Broadcast(message)) => Some(message),
        _ => None,
    });
    carried.collect()
}
