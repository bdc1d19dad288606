//! Keeps wraps of a key tree that came too early, until the epoch that they build on is there.

use alloc::vec::Vec;

use quiver_ainq::{Delta, Membership, Suite, VerifiedHeader};

/// Maximum number of epochs whose wraps are kept (§8.4).
const MAX_KEPT: usize = 4;

/// Wraps that are known to be the leader's, but not yet of use.
#[derive(Debug)]
pub(super) struct EarlyUpdate<S: Suite> {
    pub(super) header: VerifiedHeader<S>,
    pub(super) delta: Delta,
}

/// Early wraps by ascending epoch, none twice.
#[derive(Debug)]
pub(super) struct EarlyUpdates<S: Suite>(Vec<EarlyUpdate<S>>);

impl<S: Suite> EarlyUpdates<S> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Keeps a wrap. Of too many the oldest go: a member that catches up gets past those first.
    pub(super) fn keep(&mut self, early: EarlyUpdate<S>) {
        let place = self.0.partition_point(|kept| kept.header.epoch() < early.header.epoch());
        if self.0.get(place).is_some_and(|kept| kept.header.epoch() == early.header.epoch()) {
            return;
        }
        self.0.insert(place, early);
        if self.0.len() > MAX_KEPT {
            self.0.remove(0);
        }
    }

    /// Takes the wraps that build on what the member holds now. Those that it is past are dropped.
    pub(super) fn next(&mut self, membership: &Membership<S>) -> Option<EarlyUpdate<S>> {
        self.0.retain(|kept| kept.header.epoch() > membership.epoch());
        // §8.4: wraps are applied only to the epoch that they build on.
        let place = self.0.iter().position(|kept| builds_on(membership, &kept.header))?;
        Some(self.0.remove(place))
    }
}

/// §8.4: Whether the wraps of this epoch can be of use to the member as it is.
pub(super) fn builds_on<S: Suite>(membership: &Membership<S>, header: &VerifiedHeader<S>) -> bool {
    // §8.4: `prev` is the D held, and the path is not missing.
    membership.has_path() && header.core().prev == *membership.digest()
}
