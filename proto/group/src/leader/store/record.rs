//! The format of a leader's stored state: records of changes, in postcard.

use alloc::vec::Vec;

use quiver_ainq::{Deployment, DroneKeypair, Epoch, Name, Serial, Slot, Suite, UnixTime};
use quiver_machine::Snapshot;
use quiver_message::{EvictionNotice, Message};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{LeaderRecord, Spare};

/// The form that records have.
pub(super) const VERSION: u8 = 3;

/// A change. Public keys, points and lists are in their canonical encodings.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub(in crate::leader) enum Change {
    /// The first change of every log: whose it is.
    Origin {
        version: u8,
        deployment: [u8; 32],
    },
    Boot(u32),
    Pending(Vec<u8>),
    Enrolled {
        public: Vec<u8>,
        secret: Vec<u8>,
    },
    Revocations(Vec<u8>),
    Member {
        slot: Slot,
        public: Vec<u8>,
    },
    Vacated(Slot),
    Evicted(Serial),
    /// A spare point, or (empty) that the one of this number is spent.
    Spare {
        slot: Slot,
        q: u64,
        point: Vec<u8>,
        signature: Vec<u8>,
    },
    Pin {
        serial: Serial,
        handle: [u8; 32],
    },
    Epoch {
        term: u64,
        counter: u64,
        digest: [u8; 32],
    },
    Evidence(Vec<u8>),
    /// The roster, evictions and spare points that follow take the place of those before.
    Anew,
    /// The roster is the one of this epoch.
    Held {
        term: u64,
        counter: u64,
        digest: [u8; 32],
    },
    /// A signed notice of eviction, as a message.
    Notice(Vec<u8>),
    /// A leader that contradicted itself, and the proof as a message.
    Refused {
        serial: Serial,
        proof: Vec<u8>,
    },
    /// A member that lost its slot because it is away.
    Away {
        name: Vec<u8>,
        serial: Serial,
    },
    /// A header of this epoch, which is newer than the roster held, removes the holders of these slots.
    Departed {
        term: u64,
        counter: u64,
        slots: Vec<Slot>,
    },
    /// How many terms this leader has opened, in a deployment with a second factor: κ of before is stepped as
    /// far.
    KemTerms(u64),
    /// κ with a drone, and when it was made.
    KemKey {
        drone: [u8; 32],
        key: Vec<u8>,
        made: UnixTime,
    },
}

impl Change {
    /// A record of several changes, which are durable together or not at all.
    pub(in crate::leader) fn record(changes: &[Self]) -> LeaderRecord {
        let room = 64 + changes.iter().map(Self::room).sum::<usize>();
        // Serialising plain fields into a vector has no way to fail.
        let bytes = postcard::to_extend(changes, Vec::with_capacity(room)).unwrap_or_default();
        let steps = |change: &Self| matches!(change, Self::KemTerms(_));
        LeaderRecord { state: Snapshot::new(bytes), erases: changes.iter().any(steps) }
    }

    /// Enough bytes, so that serialising leaves no copy of a secret in memory that was outgrown.
    fn room(&self) -> usize {
        match self {
            Self::Pending(bytes) | Self::Revocations(bytes) | Self::Evidence(bytes) => bytes.len() + 16,
            Self::Enrolled { public, secret } => public.len() + secret.len() + 16,
            Self::Member { public, .. } => public.len() + 16,
            Self::Notice(bytes) => bytes.len() + 16,
            Self::Refused { proof, .. } => proof.len() + 64,
            Self::Away { name, .. } => name.len() + 64,
            Self::Departed { slots, .. } => 5 * slots.len() + 32,
            _ => 192,
        }
    }
}

pub(in crate::leader) fn enrolled_change<S: Suite>(keypair: &DroneKeypair<S>) -> Change {
    Change::Enrolled { public: keypair.public().encode(), secret: keypair.to_bytes().to_vec() }
}

pub(in crate::leader) fn spare_change<S: Suite>(slot: Slot, spare: &Spare<S>) -> Change {
    let point = spare.point.as_ref().map(|point| point.as_ref().to_vec()).unwrap_or_default();
    Change::Spare { slot, q: spare.q, point, signature: spare.signature.to_vec() }
}

pub(in crate::leader) fn away_change(name: &Name, serial: &Serial) -> Change {
    Change::Away { name: name.as_bytes().to_vec(), serial: *serial }
}

pub(in crate::leader) fn departed_change(since: Epoch, slots: Vec<Slot>) -> Change {
    Change::Departed { term: since.term, counter: since.counter, slots }
}

pub(in crate::leader) fn held_change(epoch: Epoch, digest: [u8; 32]) -> Change {
    Change::Held { term: epoch.term, counter: epoch.counter, digest }
}

pub(in crate::leader) fn refused_change(serial: &Serial, proof: &[u8]) -> Change {
    Change::Refused { serial: *serial, proof: proof.to_vec() }
}

pub(in crate::leader) fn epoch_change(epoch: Epoch, digest: [u8; 32]) -> Change {
    Change::Epoch { term: epoch.term, counter: epoch.counter, digest }
}

pub(in crate::leader) fn notice_change<S: Suite>(
    deployment: &Deployment<S>,
    notice: &EvictionNotice<S>,
) -> Change {
    Change::Notice(Message::EvictionNotice(notice.clone()).encode(deployment))
}

/// The first change of a log.
pub(in crate::leader) fn origin<S: Suite>(deployment: &Deployment<S>) -> Change {
    Change::Origin { version: VERSION, deployment: deployment.fingerprint() }
}
