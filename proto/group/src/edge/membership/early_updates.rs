//! Keeps wraps of a key tree that came too early, until the epoch that they build on is there.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_ainq::{Delta, Membership, Suite, VerifiedHeader};
use quiver_message::ShortRekey;

/// Maximum number of epochs whose wraps are kept (§8.4), and the same of short re-keys (§7.6).
const MAX_KEPT: usize = 4;
/// Maximum number of bytes of wraps of a short re-key that is kept: nothing shows yet that a leader made it.
const MAX_SHORT: usize = 2048;

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
        if early.wraps.as_bytes().len() > MAX_SHORT {
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
    pub(super) fn next(&mut self, membership: &Membership<S>) -> Option<EarlyUpdate<S>> {
        let kept = &mut self.0.as_mut()?.verified;
        kept.retain(|kept| kept.header.epoch() > membership.epoch());
        // §8.4: wraps are applied only to the epoch that they build on.
        let place = kept.iter().position(|kept| builds_on(membership, &kept.header))?;
        Some(kept.remove(place))
    }

    /// Takes a short re-key that says that it builds on what the member holds now. Those that it is past are dropped.
    pub(super) fn next_short(&mut self, membership: &Membership<S>) -> Option<ShortRekey<S>> {
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
pub(super) fn builds_on<S: Suite>(membership: &Membership<S>, header: &VerifiedHeader<S>) -> bool {
    // §8.4: `prev` is the D held, and the path is not missing.
    membership.has_path() && header.core().prev == *membership.digest()
}
