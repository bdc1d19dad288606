//! Messages of a leader to its deputies, and theirs to it.

use alloc::vec::Vec;

use prost::Message as _;
use quiver_ainq::{
    DronePublicKey, Epoch, Header, Name, Serial, Signature, Slot, SlotChanges, SpareStatement, Suite,
};

use crate::enrolment::{COOKIE_LEN, Nonce};
use crate::epoch::{header_from_wire, header_to_wire, spare_to_wire};
use crate::{MAX_MESSAGE_LEN, MessageError, field, wire};

/// Greatest number of slots in one chunk of a replica.
pub const MAX_SEATS: usize = 2048;
/// Greatest number of evicted drones in one chunk of a replica.
pub const MAX_REPLICA_EVICTED: usize = 2048;

/// A deputy's signed request: asks whether the leader is alive, and for its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandBy {
    /// The group.
    pub group: Name,
    /// The deputy's public key, encoded; at most 2048 bytes.
    pub deputy: Vec<u8>,
    /// Nonce of its hello; names the session.
    pub nonce: Nonce,
    /// n_L, unchanged.
    pub challenge: [u8; COOKIE_LEN],
    /// Strictly rising within the session.
    pub number: u64,
    /// The number of the last chunk taken, 0 for none.
    pub received: u64,
    /// The newest epoch whose roster the deputy has made durable, zeros for none.
    pub held: Epoch,
    /// D of that epoch.
    pub digest: [u8; 32],
    /// Signature `stand-by`, encoded.
    pub signature: Vec<u8>,
}

/// The leader's answer to one question, and to no other.
#[derive(Clone, Debug)]
pub struct Replica<S: Suite> {
    /// The session.
    pub nonce: Nonce,
    /// The question's number.
    pub number: u64,
    /// The newest epoch's header, unverified.
    pub header: Header<S>,
    /// An encoded [`ReplicaChunk`], to be decoded once the signature holds; empty if nothing is new.
    pub chunk: Vec<u8>,
    /// Signature `replica`.
    pub signature: Signature<S>,
}

/// A header that has the digest of the slots it changes, and these slots: for leaders, which keep the roster.
#[derive(Clone, Debug)]
pub struct EpochChanges<S: Suite> {
    /// The header, unverified.
    pub header: Header<S>,
    /// The slots, of which it has the digest.
    pub changes: SlotChanges,
}

/// Part of what changed about a group, or of all there is to know about it.
#[derive(Clone, Debug)]
pub struct ReplicaChunk<S: Suite> {
    /// 1, 2, 3, … within the session.
    pub number: u64,
    /// True if it begins a copy of everything.
    pub first: bool,
    /// True if the roster is now the one whose hash is in the header sent with it.
    pub last: bool,
    /// Slots as they are now, ascending; at most 2048.
    pub seats: Vec<Seat<S>>,
    /// Serials of evicted drones; at most 2048.
    pub evicted: Vec<Serial>,
}

/// A slot as it is now.
#[derive(Clone, Debug)]
pub struct Seat<S: Suite> {
    /// The slot.
    pub slot: Slot,
    /// Holder of the slot; `None` if it is free.
    pub holder: Option<DronePublicKey<S>>,
    /// The holder's unused spare point, unverified.
    pub spare: Option<SpareStatement<S>>,
    /// Number of the last spare point used, if there is no unused one; 0 if there was none.
    pub spent: u64,
}

impl StandBy {
    /// Decodes the deputy's key and its signature.
    ///
    /// # Errors
    /// With the name of the malformed field.
    pub fn decode<S: Suite>(&self) -> Result<(DronePublicKey<S>, Signature<S>), MessageError> {
        Ok((field::drone("deputy", &self.deputy)?, field::signature("signature", &self.signature)?))
    }

    pub(crate) fn from_wire(wire: wire::StandBy) -> Result<Self, MessageError> {
        Ok(Self {
            group: field::name("group", &wire.group)?,
            // §10.1: not decoded before the cookie, or the session, is checked.
            deputy: field::undecoded_drone("deputy", wire.deputy)?,
            nonce: field::array("nonce", &wire.nonce)?,
            challenge: field::array("challenge", &wire.challenge)?,
            number: wire.number,
            received: wire.received,
            held: Epoch { term: wire.term, counter: wire.counter },
            digest: field::array("digest", &wire.digest)?,
            signature: field::bounded("signature", wire.signature, field::MAX_SIGNATURE_LEN)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::StandBy {
        wire::StandBy {
            group: self.group.as_str().into(),
            deputy: self.deputy.clone(),
            nonce: self.nonce.to_vec(),
            challenge: self.challenge.to_vec(),
            number: self.number,
            received: self.received,
            term: self.held.term,
            counter: self.held.counter,
            digest: self.digest.to_vec(),
            signature: self.signature.clone(),
        }
    }
}

impl<S: Suite> Replica<S> {
    pub(crate) fn from_wire(wire: wire::Replica) -> Result<Self, MessageError> {
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            number: wire.number,
            header: header_from_wire(field::present("header", wire.header.as_ref())?, None)?,
            chunk: wire.chunk,
            signature: field::signature("signature", &wire.signature)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::Replica {
        wire::Replica {
            nonce: self.nonce.to_vec(),
            number: self.number,
            header: Some(header_to_wire(&self.header)),
            chunk: self.chunk.clone(),
            signature: self.signature.encode(),
        }
    }
}

impl<S: Suite> EpochChanges<S> {
    pub(crate) fn from_wire(wire: &wire::EpochChanges) -> Result<Self, MessageError> {
        let header = header_from_wire(field::present("header", wire.header.as_ref())?, None)?;
        // §8.7: each set is bounded before it is expanded.
        let removed = field::slots("removed", &wire.removed)?;
        let changes = SlotChanges { removed, added: field::slots("added", &wire.added)? };
        if header.core.changes != Some(changes.digest()) {
            return Err(MessageError::Invalid("changes"));
        }
        Ok(Self { header, changes })
    }

    pub(crate) fn to_wire(&self) -> wire::EpochChanges {
        wire::EpochChanges {
            header: Some(header_to_wire(&self.header)),
            removed: field::slots_to_wire(&self.changes.removed).into(),
            added: field::slots_to_wire(&self.changes.added).into(),
        }
    }
}

impl<S: Suite> ReplicaChunk<S> {
    /// Decodes a chunk.
    ///
    /// # Errors
    /// The error of malformed bytes, with the name of the field.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        // §10.9: the signature over these bytes holds by now.
        if bytes.len() > MAX_MESSAGE_LEN {
            return Err(MessageError::TooLong(bytes.len()));
        }
        let wire = wire::ReplicaChunk::decode(bytes).map_err(|_| MessageError::NotProtobuf)?;
        if wire.encode_to_vec() != bytes {
            return Err(MessageError::NotCanonical);
        }
        // §10.2: at most 2,048 slots, as they are now, in a chunk.
        if wire.number == 0 || wire.seats.len() > MAX_SEATS {
            return Err(MessageError::Invalid("chunk"));
        }
        let seats = wire.seats.iter().map(Seat::from_wire).collect::<Result<Vec<_>, _>>()?;
        if !seats.is_sorted_by(|a, b| a.slot < b.slot) {
            return Err(MessageError::Invalid("seats"));
        }
        let evicted = field::arrays("evicted", &wire.evicted, MAX_REPLICA_EVICTED)?;
        Ok(Self { number: wire.number, first: wire.first, last: wire.last, seats, evicted })
    }

    /// Encodes the chunk.
    pub fn encode(&self) -> Vec<u8> {
        let chunk = wire::ReplicaChunk {
            number: self.number,
            first: self.first,
            last: self.last,
            seats: self.seats.iter().map(Seat::to_wire).collect(),
            evicted: self.evicted.as_flattened().to_vec(),
        };
        chunk.encode_to_vec()
    }
}

impl<S: Suite> Seat<S> {
    fn from_wire(wire: &wire::Seat) -> Result<Self, MessageError> {
        let holder = if wire.drone.is_empty() { None } else { Some(field::drone("drone", &wire.drone)?) };
        let spare = wire.spare.as_ref().map(spare_from_wire).transpose()?;
        // A free slot has nothing to spend.
        if holder.is_none() && (spare.is_some() || wire.spent != 0) || spare.is_some() && wire.spent != 0 {
            return Err(MessageError::Invalid("spare"));
        }
        Ok(Self { slot: wire.slot, holder, spare, spent: wire.spent })
    }

    fn to_wire(&self) -> wire::Seat {
        let spare = self.spare.as_ref();
        wire::Seat {
            slot: self.slot,
            drone: self.holder.as_ref().map(DronePublicKey::encode).unwrap_or_default(),
            spare: spare.map(|spare| {
                spare_to_wire(spare.q, spare.point.as_bytes().to_vec(), spare.signature.encode())
            }),
            spent: self.spent,
        }
    }
}

fn spare_from_wire<S: Suite>(wire: &wire::Spare) -> Result<SpareStatement<S>, MessageError> {
    Ok(SpareStatement {
        q: wire.q,
        point: field::element("point", &wire.point)?,
        signature: field::signature("signature", &wire.signature)?,
    })
}
