//! Messages between a leader and the members of its group.

use alloc::vec::Vec;

use prost::bytes::Bytes;
use quiver_ainq::{
    DronePublicKey, Element, Epoch, EpochKind, EpochPart, Header, HeaderCore, KemTerm, Name, Serial,
    Signature, Slot, SpareStatement, StrategyKind, Suite,
};

use crate::enrolment::Nonce;
use crate::{MessageError, field, part, wire};

/// Greatest number of drones in one eviction notice.
pub const MAX_EVICTED: usize = 1024;

/// Number of a question: boot number (4 bytes) ‖ 4·count, plus 1 if the group key of the epoch held or a path is
/// missing, plus 2 if the group key is (4) ‖ random (8); strictly rising at one drone.
pub type CatchUpNumber = [u8; 16];

/// Acknowledgement: "I hold the key of this epoch."
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The member's slot.
    pub slot: Slot,
    /// The epoch held.
    pub epoch: Epoch,
    /// PRF(A_i, "ack", D).
    pub tag: [u8; 32],
}

/// A new epoch.
#[derive(Clone, Debug)]
pub struct Rekey<S: Suite> {
    /// The header, unverified.
    pub header: Header<S>,
    /// The receiver's entry or path, or wraps; `None` for drones that the header lists as removed.
    pub part: Option<EpochPart>,
    /// Newcomers that follow by the wraps, which are the part.
    pub newcomers: Newcomers,
}

/// The slots of newcomers that follow by wraps, each with the first 8 bytes of n_e. They are not signed: with a false slot
/// the header's tag does not verify.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Newcomers {
    /// Bytes of each newcomer: the slot (4 bytes) and the start of n_e, as in the message: boards read none.
    bytes: Vec<u8>,
}

/// Bytes of one of them in a message.
const NEWCOMER_LEN: usize = 12;

impl Newcomers {
    /// Returns true if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Each slot, which may be one that no group has, and the start of n_e.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &[u8; 8])> {
        let (newcomers, _) = self.bytes.as_chunks::<NEWCOMER_LEN>();
        newcomers.iter().filter_map(|newcomer| {
            let (slot, start) = newcomer.split_first_chunk()?;
            Some((Slot::from_be_bytes(*slot), start.first_chunk()?))
        })
    }

    /// The slot of who asked with this n_e.
    #[must_use]
    pub fn slot_of(&self, nonce: &Nonce) -> Option<Slot> {
        self.iter().find(|(_, start)| nonce.starts_with(*start)).map(|(slot, _)| slot)
    }

    fn from_wire(bytes: Vec<u8>) -> Result<Self, MessageError> {
        let whole = bytes.len().is_multiple_of(NEWCOMER_LEN);
        if whole { Ok(Self { bytes }) } else { Err(MessageError::Invalid("newcomers")) }
    }

    pub(crate) fn to_wire(&self) -> Vec<u8> {
        self.bytes.clone()
    }
}

impl<'a> FromIterator<(Slot, &'a Nonce)> for Newcomers {
    fn from_iter<I: IntoIterator<Item = (Slot, &'a Nonce)>>(newcomers: I) -> Self {
        let mut bytes = Vec::new();
        for (slot, [a, b, c, d, e, f, g, h, ..]) in newcomers {
            bytes.extend_from_slice(&slot.to_be_bytes());
            bytes.extend_from_slice(&[*a, *b, *c, *d, *e, *f, *g, *h]);
        }
        Self { bytes }
    }
}

/// Question of a member: "Which epoch are we in?"
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatchUpRequest {
    /// The group.
    pub group: Name,
    /// The member's slot.
    pub slot: Slot,
    /// Ties the reply to this request.
    pub number: CatchUpNumber,
    /// D of the epoch held.
    pub held: [u8; 32],
    /// PRF(A_i, "catch-up", number ‖ held).
    pub tag: [u8; 32],
}

/// The newest epoch, bound to the request.
#[derive(Clone, Debug)]
pub struct CatchUpReply<S: Suite> {
    /// The number of the request.
    pub number: CatchUpNumber,
    /// The header, unverified.
    pub header: Header<S>,
    /// The member's entry or path, unless it holds all that this epoch gave it. A delta has no place here: it
    /// would be left out of the encoding.
    pub part: Option<EpochPart>,
    /// PRF(A_i, "fresh", D ‖ number).
    pub tag: [u8; 32],
}

/// The member's spare point for the next opening of a term.
#[derive(Clone, Debug)]
pub struct SparePublication<S: Suite> {
    /// The group.
    pub group: Name,
    /// The member's slot.
    pub slot: Slot,
    /// The signed point.
    pub spare: SpareStatement<S>,
}

/// Confirmation of a leader: "Your spare point is durable."
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpareAck {
    /// The number of the spare point.
    pub q: u64,
    /// PRF(A_i, "spare ack", q).
    pub tag: [u8; 32],
}

/// A signed leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leave<S: Suite> {
    /// The group.
    pub group: Name,
    /// The member's slot.
    pub slot: Slot,
    /// D of the epoch held.
    pub held: [u8; 32],
    /// Signature `leave`.
    pub signature: Signature<S>,
}

/// A signed notice that drones were evicted.
#[derive(Clone, Debug)]
pub struct EvictionNotice<S: Suite> {
    /// The group.
    pub group: Name,
    /// The leader that evicted them.
    pub leader: DronePublicKey<S>,
    /// The epoch from which on they are out.
    pub epoch: Epoch,
    /// Serials of the drones; at most 1024.
    pub serials: Vec<Serial>,
    /// Signature `evict`.
    pub signature: Signature<S>,
}

pub(crate) fn spare_to_wire(q: u64, point: Vec<u8>, signature: Vec<u8>) -> wire::Spare {
    wire::Spare { q, point, signature }
}

pub(crate) fn header_from_wire<S: Suite>(
    wire: &wire::Header,
    leader: Option<&DronePublicKey<S>>,
) -> Result<Header<S>, MessageError> {
    // §7.1: V stands in headers that add members.
    let point = if wire.point.is_empty() { None } else { Some(field::element("point", &wire.point)?) };
    let core = HeaderCore {
        group: field::name("group", &wire.group)?,
        leader: field::drone_expecting("leader", &wire.leader, leader)?,
        epoch: Epoch { term: wire.term, counter: wire.counter },
        prev: field::array("prev", &wire.prev)?,
        nonce: field::array("nonce", &wire.nonce)?,
        issued_at: wire.issued_at,
        valid_until: wire.valid_until,
        strategy: match wire.strategy() {
            wire::Strategy::Flat => StrategyKind::Flat,
            wire::Strategy::Tree => StrategyKind::Tree,
            wire::Strategy::Unspecified => return Err(MessageError::Invalid("strategy")),
        },
        kind: match wire.kind() {
            wire::Kind::Open => EpochKind::Open,
            wire::Kind::Rekey => EpochKind::Rekey,
            wire::Kind::Unspecified => return Err(MessageError::Invalid("kind")),
        },
        point,
        height: u8::try_from(wire.height).map_err(|_| MessageError::Invalid("height"))?,
        removed: field::slots("removed", &wire.removed)?,
        added: field::slots("added", &wire.added)?,
        changes: if wire.changes.is_empty() { None } else { Some(field::array("changes", &wire.changes)?) },
        absent: field::slots("absent", &wire.absent)?,
        roster_hash: field::array("roster_hash", &wire.roster_hash)?,
        revocation_number: wire.revocation_number,
        kem: kem_from_wire(wire)?,
    };
    Ok(Header {
        core,
        entries_root: field::array("entries_root", &wire.entries_root)?,
        tag: field::array("tag", &wire.tag)?,
        signature: field::signature("signature", &wire.signature)?,
    })
}

pub(crate) fn header_to_wire<S: Suite>(header: &Header<S>) -> wire::Header {
    let core = &header.core;
    wire::Header {
        group: core.group.as_str().into(),
        leader: core.leader.encode().into(),
        term: core.epoch.term,
        counter: core.epoch.counter,
        prev: Bytes::copy_from_slice(&core.prev),
        nonce: Bytes::copy_from_slice(&core.nonce),
        issued_at: core.issued_at,
        valid_until: core.valid_until,
        strategy: match core.strategy {
            StrategyKind::Flat => wire::Strategy::Flat,
            StrategyKind::Tree => wire::Strategy::Tree,
        } as i32,
        kind: match core.kind {
            EpochKind::Open => wire::Kind::Open,
            EpochKind::Rekey => wire::Kind::Rekey,
        } as i32,
        point: Bytes::copy_from_slice(core.point.as_ref().map_or(&[], Element::as_bytes)),
        height: core.height.into(),
        removed: field::slots_to_wire(&core.removed),
        added: field::slots_to_wire(&core.added),
        absent: field::slots_to_wire(&core.absent),
        roster_hash: Bytes::copy_from_slice(&core.roster_hash),
        revocation_number: core.revocation_number,
        entries_root: Bytes::copy_from_slice(&header.entries_root),
        tag: Bytes::copy_from_slice(&header.tag),
        signature: header.signature.encode().into(),
        changes: Bytes::copy_from_slice(core.changes.as_ref().map_or(&[], |changes| changes)),
        kem: core.kem.map_or(0, |term| crate::kem::set_to_wire(Some(term.set()))),
        kem_terms: core.kem.map_or(0, |term| term.g()),
    }
}

/// The second factor that a header names.
fn kem_from_wire(wire: &wire::Header) -> Result<Option<KemTerm>, MessageError> {
    let field = "kem";
    match (crate::kem::set_from_wire(field, wire.kem)?, wire.kem_terms) {
        (None, 0) => Ok(None),
        (None, _) => Err(MessageError::Invalid(field)),
        (Some(set), g) => {
            KemTerm::new(set, g).map(Some).map_err(|error| MessageError::Field { field, error })
        }
    }
}

impl Ack {
    pub(crate) fn from_wire(wire: &wire::Ack) -> Result<Self, MessageError> {
        Ok(Self {
            slot: wire.slot,
            epoch: Epoch { term: wire.term, counter: wire.counter },
            tag: field::array("tag", &wire.tag)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::Ack {
        wire::Ack {
            slot: self.slot,
            term: self.epoch.term,
            counter: self.epoch.counter,
            tag: self.tag.to_vec(),
        }
    }
}

impl<S: Suite> Rekey<S> {
    /// An epoch for those who are members already.
    #[must_use]
    pub const fn new(header: Header<S>, part: Option<EpochPart>) -> Self {
        Self { header, part, newcomers: Newcomers { bytes: Vec::new() } }
    }

    pub(crate) fn from_wire(
        wire: wire::Rekey,
        leader: Option<&DronePublicKey<S>>,
    ) -> Result<Self, MessageError> {
        // First: a header that is given up again would be once more on a board's stack.
        let newcomers = Newcomers::from_wire(wire.newcomers)?;
        Ok(Self {
            header: header_from_wire(field::present("header", wire.header.as_ref())?, leader)?,
            part: wire.part.map(part::of_rekey).transpose()?,
            newcomers,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::Rekey {
        wire::Rekey {
            header: Some(header_to_wire(&self.header)),
            part: self.part.as_ref().map(part::to_rekey),
            newcomers: self.newcomers.to_wire(),
        }
    }
}

impl CatchUpRequest {
    pub(crate) fn from_wire(wire: &wire::CatchUpRequest) -> Result<Self, MessageError> {
        Ok(Self {
            group: field::name("group", &wire.group)?,
            slot: wire.slot,
            number: field::array("number", &wire.number)?,
            held: field::array("held", &wire.held)?,
            tag: field::array("tag", &wire.tag)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::CatchUpRequest {
        wire::CatchUpRequest {
            group: self.group.as_str().into(),
            slot: self.slot,
            number: self.number.to_vec(),
            held: self.held.to_vec(),
            tag: self.tag.to_vec(),
        }
    }
}

impl<S: Suite> CatchUpReply<S> {
    pub(crate) fn from_wire(
        wire: &wire::CatchUpReply,
        leader: Option<&DronePublicKey<S>>,
    ) -> Result<Self, MessageError> {
        Ok(Self {
            number: field::array("number", &wire.number)?,
            header: header_from_wire(field::present("header", wire.header.as_ref())?, leader)?,
            part: wire.part.as_ref().map(part::of_reply).transpose()?,
            tag: field::array("tag", &wire.tag)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::CatchUpReply {
        wire::CatchUpReply {
            number: self.number.to_vec(),
            header: Some(header_to_wire(&self.header)),
            part: self.part.as_ref().and_then(part::to_reply),
            tag: self.tag.to_vec(),
        }
    }
}

impl<S: Suite> SparePublication<S> {
    pub(crate) fn from_wire(wire: &wire::SparePublication) -> Result<Self, MessageError> {
        let spare = field::present("spare", wire.spare.as_ref())?;
        Ok(Self {
            group: field::name("group", &wire.group)?,
            slot: wire.slot,
            spare: SpareStatement {
                q: spare.q,
                point: field::element("spare.point", &spare.point)?,
                signature: field::signature("spare.signature", &spare.signature)?,
            },
        })
    }

    pub(crate) fn to_wire(&self) -> wire::SparePublication {
        let spare = &self.spare;
        wire::SparePublication {
            group: self.group.as_str().into(),
            slot: self.slot,
            spare: Some(spare_to_wire(spare.q, spare.point.as_bytes().to_vec(), spare.signature.encode())),
        }
    }
}

impl SpareAck {
    pub(crate) fn from_wire(wire: &wire::SpareAck) -> Result<Self, MessageError> {
        Ok(Self { q: wire.q, tag: field::array("tag", &wire.tag)? })
    }

    pub(crate) fn to_wire(&self) -> wire::SpareAck {
        wire::SpareAck { q: self.q, tag: self.tag.to_vec() }
    }
}

impl<S: Suite> Leave<S> {
    pub(crate) fn from_wire(wire: &wire::Leave) -> Result<Self, MessageError> {
        Ok(Self {
            group: field::name("group", &wire.group)?,
            slot: wire.slot,
            held: field::array("held", &wire.held)?,
            signature: field::signature("signature", &wire.signature)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::Leave {
        wire::Leave {
            group: self.group.as_str().into(),
            slot: self.slot,
            held: self.held.to_vec(),
            signature: self.signature.encode(),
        }
    }
}

impl<S: Suite> EvictionNotice<S> {
    pub(crate) fn from_wire(
        wire: &wire::EvictionNotice,
        leader: Option<&DronePublicKey<S>>,
    ) -> Result<Self, MessageError> {
        // §10.9: a notice has at most 1,024 serials.
        let serials = field::arrays("serials", &wire.serials, MAX_EVICTED)?;
        if serials.is_empty() {
            return Err(MessageError::Invalid("serials"));
        }
        Ok(Self {
            group: field::name("group", &wire.group)?,
            leader: field::drone_expecting("leader", &wire.leader, leader)?,
            epoch: Epoch { term: wire.term, counter: wire.counter },
            serials,
            signature: field::signature("signature", &wire.signature)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::EvictionNotice {
        wire::EvictionNotice {
            group: self.group.as_str().into(),
            leader: self.leader.encode(),
            term: self.epoch.term,
            counter: self.epoch.counter,
            serials: self.serials.as_flattened().to_vec(),
            signature: self.signature.encode(),
        }
    }
}
