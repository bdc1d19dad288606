//! Keeps wraps of a key tree that came too early, until the epoch that they build on is there.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_ainq::{Delta, GroupMembership, Suite, VerifiedHeader};
use quiver_message::ShortRekey;

/// Maximum number of epochs whose wraps are kept (§8.4), and the same of short re-keys (§7.6).
const MAX_KEPT: usize = 4;
/// Maximum number of bytes of wraps of a short re-key that is kept: nothing shows yet that a leader made it.
const MAX_SHORT: usize = 2048;
/// Maximum number of runs of removed and added slots of a short re-key that is kept, of 8 bytes each: what has more is as
/// large as a message may be.
const MAX_RUNS: usize = 64;

/// Wraps that are known to be the leader's, but not yet of use.
#[derive(Debug)]
pub(super) struct EarlyUpdate<S: Suite> {
    pub(super) header: VerifiedHeader<S>,
    pub(super) delta: Delta,
}

/// Updates that came early. Mostly there are none.
#[derive(Debug)]
pub(super) struct EarlyUpdates<S: Suite>(Option<Box<KeptUpdates<S>>>);

#[derive(Debug)]
struct KeptUpdates<S: Suite> {
    /// Wraps by ascending epoch, none twice.
    verified: Vec<EarlyUpdate<S>>,
    /// Short re-keys, unverified, in the order in which they came.
    short: Vec<ShortRekey<S>>,
}

impl<S: Suite> EarlyUpdates<S> {
    pub(super) const fn new() -> Self {
        Self(None)
    }

    fn kept(&mut self) -> &mut KeptUpdates<S> {
        self.0.get_or_insert_with(|| Box::new(KeptUpdates { verified: Vec::new(), short: Vec::new() }))
    }

    /// Keeps a wrap. Of too many the oldest go: a member that catches up gets past those first.
    pub(super) fn keep(&mut self, early: EarlyUpdate<S>) {
        let kept = &mut self.kept().verified;
        let place = kept.partition_point(|kept| kept.header.epoch() < early.header.epoch());
        if kept.get(place).is_some_and(|kept| kept.header.epoch() == early.header.epoch()) {
            return;
        }
        kept.insert(place, early);
        if kept.len() > MAX_KEPT {
            kept.remove(0);
        }
    }

    /// §7.6: Keeps a short re-key that builds on an epoch that is not held. Of too many those go that came first:
    /// anybody can have made them.
    pub(super) fn keep_short(&mut self, early: &ShortRekey<S>) {
        let runs = early.header.removed.runs().len() + early.header.added.runs().len();
        if early.wraps.as_bytes().len() > MAX_SHORT || runs > MAX_RUNS {
            return;
        }
        let kept = &mut self.kept().short;
        if kept.iter().any(|kept| kept.header.tag == early.header.tag && kept.wraps == early.wraps) {
            return;
        }
        if kept.len() >= MAX_KEPT {
            kept.remove(0);
        }
        kept.push(early.clone());
    }

    /// Takes the wraps that build on what the member holds now. Those that it is past are dropped.
    pub(super) fn next(&mut self, membership: &GroupMembership<S>) -> Option<EarlyUpdate<S>> {
        let kept = &mut self.0.as_mut()?.verified;
        kept.retain(|kept| kept.header.epoch() > membership.epoch());
        // §8.4: wraps are applied only to the epoch that they build on.
        let place = kept.iter().position(|kept| builds_on(membership, &kept.header))?;
        Some(kept.remove(place))
    }

    /// Takes a short re-key that says that it builds on what the member holds now. Those that it is past are dropped.
    pub(super) fn next_short(&mut self, membership: &GroupMembership<S>) -> Option<ShortRekey<S>> {
        let kept = &mut self.0.as_mut()?.short;
        kept.retain(|kept| kept.header.epoch > membership.epoch());
        let (epoch, digest) = (membership.epoch(), membership.digest());
        let place = kept.iter().position(|kept| kept.header.builds_on(epoch, digest));
        let next = place.map(|place| kept.remove(place));
        self.0.take_if(|kept| kept.short.is_empty() && kept.verified.is_empty());
        next
    }
}

/// §8.4: Whether the wraps of this epoch can be of use to the member as it is.
pub(super) fn builds_on<S: Suite>(membership: &GroupMembership<S>, header: &VerifiedHeader<S>) -> bool {
    // §8.4: `prev` is the D held, and the path is not missing.
    membership.has_path() && header.core().prev == *membership.digest()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use quiver_ainq::{Epoch, Ristretto255, ShortHeader, Signature, SlotSet};

    use super::*;

    /// A short re-key with the form of one: its signature is the base point of ristretto255 (RFC 9496, A.1) and 1.
    fn short(number: u8, removed: SlotSet) -> ShortRekey<Ristretto255> {
        let mut signature = vec![
            0xe2, 0xf2, 0xae, 0x0a, 0x6a, 0xbc, 0x4e, 0x71, 0xa8, 0x84, 0xa9, 0x61, 0xc5, 0x00, 0x51, 0x5f,
            0x58, 0xe3, 0x0b, 0x6a, 0xa5, 0x82, 0xdd, 0x8d, 0xb6, 0xa6, 0x59, 0x45, 0xe0, 0x8d, 0x2d, 0x76,
            1,
        ];
        signature.resize(Signature::<Ristretto255>::LEN, 0);
        let header = ShortHeader {
            epoch: Epoch { term: 1 << 16, counter: 9 },
            prev: [0; 8],
            nonce: [0; 32],
            issued_at: 1_800_000_000,
            valid_until: 1_800_000_600,
            point: None,
            removed,
            added: SlotSet::new(),
            changes: None,
            roster_hash: None,
            revocation_number: None,
            tag: [number; 32],
            signature: Signature::decode(&signature).unwrap(),
        };
        // Of two slots the left one is refreshed, and the right one is sent the wrap.
        let mut wraps = vec![0x21, 0];
        wraps.resize(2 + 32, 0);
        ShortRekey { header, wraps: Delta::from_bytes(wraps).unwrap() }
    }

    #[test]
    fn four_short_rekeys_are_kept_and_none_of_many_slots() {
        let mut early = EarlyUpdates::new();
        let kept = |early: &EarlyUpdates<_>| {
            let short = early.0.as_ref().map(|kept| kept.short.iter().map(|short| short.header.tag[0]));
            short.map(Vec::from_iter).unwrap_or_default()
        };
        let slots = |runs: u32| -> SlotSet { (0..runs).map(|run| run * 2).collect() };
        for number in 0..10 {
            early.keep_short(&short(number, slots(u32::from(number))));
            early.keep_short(&short(number, slots(u32::from(number))));
        }
        assert_eq!(kept(&early), [6, 7, 8, 9]);
        early.keep_short(&short(10, slots(MAX_RUNS as u32 + 1)));
        assert_eq!(kept(&early), [6, 7, 8, 9]);
        early.keep_short(&short(11, slots(MAX_RUNS as u32)));
        assert_eq!(kept(&early), [7, 8, 9, 11]);
    }
}
