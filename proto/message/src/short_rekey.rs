//! A re-key for all members that hold the epoch before, without what they know of it (§7.6).

use quiver_ainq::{Delta, Epoch, ShortHeader, Suite};

use crate::{MessageError, field, wire};

/// A new epoch of a tree for everybody who holds the one before.
#[derive(Clone, Debug)]
pub struct ShortRekey<S: Suite> {
    /// Fields that the header has of its own, unverified.
    pub header: ShortHeader<S>,
    /// The wraps, all or a part of them.
    pub wraps: Delta,
}

impl<S: Suite> ShortRekey<S> {
    pub(crate) fn from_wire(wire: wire::ShortRekey) -> Result<Self, MessageError> {
        let point = if wire.point.is_empty() { None } else { Some(field::element("point", &wire.point)?) };
        let digest = |name, bytes: &[u8]| match bytes {
            [] => Ok(None),
            bytes => field::array(name, bytes).map(Some),
        };
        // §22.7: t_g counts from issued_at.
        let valid_until = wire.issued_at.checked_add(wire.lifetime);
        let header = ShortHeader {
            epoch: Epoch { term: wire.term, counter: wire.counter },
            prev: field::array("prev", &wire.prev)?,
            nonce: field::array("nonce", &wire.nonce)?,
            issued_at: wire.issued_at,
            valid_until: valid_until.ok_or(MessageError::Invalid("lifetime"))?,
            point,
            removed: field::slots("removed", &wire.removed)?,
            added: field::slots("added", &wire.added)?,
            changes: digest("changes", &wire.changes)?,
            roster_hash: digest("roster_hash", &wire.roster_hash)?,
            // §22.7: 0 stands for the number before.
            revocation_number: Some(wire.revocation_number).filter(|number| *number > 0),
            tag: field::array("tag", &wire.tag)?,
            signature: field::signature("signature", &wire.signature)?,
        };
        let wraps = Delta::from_bytes(wire.delta);
        Ok(Self { header, wraps: wraps.map_err(|error| MessageError::Field { field: "delta", error })? })
    }

    pub(crate) fn to_wire(&self) -> wire::ShortRekey {
        let header = &self.header;
        let digest =
            |digest: &Option<[u8; 32]>| digest.map_or_else(Default::default, |digest| digest.to_vec());
        wire::ShortRekey {
            term: header.epoch.term,
            counter: header.epoch.counter,
            prev: header.prev.to_vec(),
            nonce: header.nonce.to_vec(),
            issued_at: header.issued_at,
            lifetime: header.valid_until.saturating_sub(header.issued_at),
            point: header.point.as_ref().map_or_else(Default::default, |point| point.as_bytes().to_vec()),
            removed: field::slots_to_wire(&header.removed).to_vec(),
            added: field::slots_to_wire(&header.added).to_vec(),
            changes: digest(&header.changes),
            roster_hash: digest(&header.roster_hash),
            revocation_number: header.revocation_number.unwrap_or(0),
            tag: header.tag.to_vec(),
            signature: header.signature.encode(),
            delta: self.wraps.encode(),
        }
    }
}
