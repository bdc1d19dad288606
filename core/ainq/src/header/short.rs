//! The short form of a header: what its receiver cannot take from the header of the epoch before (§7.6).

use quiver_crypto::Digest;

use super::{Epoch, EpochKind, Header, HeaderCore, StrategyKind};
use crate::slots::SlotSet;
use crate::tree::Delta;
use crate::{Element, Error, Signature, Suite, UnixTime};

/// First bytes of the D of an epoch, by which a short header names the epoch that it builds on.
pub type PrevStart = [u8; 8];

/// A header of a re-key within a term of a tree, without the fields of the header before it.
///
/// Unverified: [`rebuild`](Self::rebuild) gives the header, whose signature covers all fields.
#[derive(Clone, Debug)]
pub struct ShortHeader<S: Suite> {
    /// The epoch.
    pub epoch: Epoch,
    /// First 8 bytes of `prev`.
    pub prev: PrevStart,
    /// Nonce of the header.
    pub nonce: [u8; 32],
    /// Time of the header, in seconds since 1970.
    pub issued_at: UnixTime,
    /// End of the epoch, in seconds since 1970.
    pub valid_until: UnixTime,
    /// V, present iff a member is added.
    pub point: Option<Element<S>>,
    /// Slots of removed members.
    pub removed: SlotSet,
    /// Slots of added members.
    pub added: SlotSet,
    /// Digest of the removed and added slots, in their place.
    pub changes: Option<Digest>,
    /// The roster's hash, if it is another than before.
    pub roster_hash: Option<Digest>,
    /// The newest revocation list, if it is another than before.
    pub revocation_number: Option<u64>,
    /// Tag of the header.
    pub tag: [u8; 32],
    /// The leader's signature over the D of the whole header.
    pub signature: Signature<S>,
}

impl<S: Suite> Header<S> {
    /// Short form of a re-key for members that hold the epoch before, of which this is the header's core. `None`
    /// unless the header is of the next epoch of the same term, of a tree.
    #[must_use]
    pub fn shorten(&self, before: &HeaderCore<S>) -> Option<ShortHeader<S>> {
        let core = &self.core;
        // §7.6: within a term of a tree; what a term keeps is left out.
        let follows = core.kind == EpochKind::Rekey
            && core.strategy == StrategyKind::Tree
            && before.strategy == core.strategy
            && before.next() == Some(core.epoch)
            && core.group == before.group
            && core.leader == before.leader
            && core.kem == before.kem
            && core.absent.is_empty();
        // §22.7: 0 stands for the number before.
        let list = (core.revocation_number != before.revocation_number).then_some(core.revocation_number);
        if !follows || list == Some(0) {
            return None;
        }
        Some(ShortHeader {
            epoch: core.epoch,
            prev: prev_start(&core.prev),
            nonce: core.nonce,
            issued_at: core.issued_at,
            valid_until: core.valid_until,
            point: core.point,
            removed: core.removed.clone(),
            added: core.added.clone(),
            changes: core.changes,
            roster_hash: (core.roster_hash != before.roster_hash).then_some(core.roster_hash),
            revocation_number: list,
            tag: self.tag,
            signature: self.signature,
        })
    }
}

impl<S: Suite> HeaderCore<S> {
    /// The epoch that follows in the same term.
    fn next(&self) -> Option<Epoch> {
        Some(Epoch { counter: self.epoch.counter.checked_add(1)?, ..self.epoch })
    }
}

impl<S: Suite> ShortHeader<S> {
    /// Returns true if it says that it builds on the epoch with this D.
    #[must_use]
    pub fn builds_on(&self, epoch: Epoch, digest: &Digest) -> bool {
        let counter = epoch.counter.checked_add(1);
        self.epoch.term == epoch.term
            && Some(self.epoch.counter) == counter
            && self.prev == prev_start(digest)
    }

    /// Rebuilds the whole header, unverified, from the core and the D of the epoch before, and the wraps that came with
    /// it, all or a part of them: these have its height and its entries_root.
    ///
    /// # Errors
    /// [`Error::Gap`] if it builds on another epoch; [`Error::UnsupportedStrategy`] if that is not of a tree;
    /// [`Error::Malformed`] if it has a field that is as before.
    pub fn rebuild(self, before: &HeaderCore<S>, digest: &Digest, wraps: &Delta) -> Result<Header<S>, Error> {
        if !self.builds_on(before.epoch, digest) {
            return Err(Error::Gap);
        }
        if before.strategy != StrategyKind::Tree {
            return Err(Error::UnsupportedStrategy);
        }
        // §22.7: one encoding for each header: what is as before is left out.
        if self.roster_hash == Some(before.roster_hash)
            || self.revocation_number == Some(before.revocation_number)
        {
            return Err(Error::Malformed("short header"));
        }
        // §7.6: the rest is the term's, or as before.
        let core = HeaderCore {
            group: before.group.clone(),
            leader: before.leader.clone(),
            epoch: self.epoch,
            prev: *digest,
            nonce: self.nonce,
            issued_at: self.issued_at,
            valid_until: self.valid_until,
            strategy: before.strategy,
            kind: EpochKind::Rekey,
            point: self.point,
            height: wraps.height(),
            removed: self.removed,
            added: self.added,
            changes: self.changes,
            absent: SlotSet::default(),
            roster_hash: self.roster_hash.unwrap_or(before.roster_hash),
            revocation_number: self.revocation_number.unwrap_or(before.revocation_number),
            kem: before.kem,
        };
        Ok(Header { core, entries_root: wraps.root(), tag: self.tag, signature: self.signature })
    }
}

/// The bytes of a D that a short header has.
fn prev_start(digest: &Digest) -> PrevStart {
    let [a, b, c, d, e, f, g, h, ..] = *digest;
    [a, b, c, d, e, f, g, h]
}
