//! Wraps of a key tree that came too early: kept until the epoch that they build on is there.

use alloc::vec::Vec;

use quiver_ainq::{Delta, Part, Suite, VerifiedHeader};
use rand_core::CryptoRngCore;

use crate::edge::{Edge, Member, Standing};
use quiver_machine::{Now, Peer};

/// How many epochs' wraps are held back at most.
const MAX_HELD: usize = 4;

/// Wraps that are known to be the leader's, but not yet of use.
#[derive(Debug)]
pub(in crate::edge) struct EarlyUpdate<S: Suite> {
    pub(in crate::edge) header: VerifiedHeader<S>,
    pub(in crate::edge) delta: Delta,
}

/// EarlyUpdate wraps by ascending epoch, none twice.
#[derive(Debug)]
pub(in crate::edge) struct EarlyUpdates<S: Suite>(Vec<EarlyUpdate<S>>);

impl<S: Suite> EarlyUpdates<S> {
    pub(in crate::edge) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Of too many the oldest go: who catches up gets past those first.
    fn keep(&mut self, early: EarlyUpdate<S>) {
        let place = self.0.partition_point(|held| held.header.epoch() < early.header.epoch());
        if self.0.get(place).is_some_and(|held| held.header.epoch() == early.header.epoch()) {
            return;
        }
        self.0.insert(place, early);
        if self.0.len() > MAX_HELD {
            self.0.remove(0);
        }
    }

    /// The wraps that build on what the member holds now. Those that it is past are dropped.
    fn next(&mut self, member: &Member<S>) -> Option<EarlyUpdate<S>> {
        let membership = &member.membership;
        self.0.retain(|held| held.header.epoch() > membership.epoch());
        let fits = |held: &EarlyUpdate<S>| held.header.core().prev == *membership.digest();
        let place = self.0.iter().position(fits).filter(|_| membership.has_path())?;
        Some(self.0.remove(place))
    }
}

/// Whether the wraps of this epoch can be of use to the member as it is.
pub(in crate::edge) fn builds_on<S: Suite>(member: &Member<S>, header: &VerifiedHeader<S>) -> bool {
    let membership = &member.membership;
    membership.has_path() && header.core().prev == *membership.digest()
}

impl<S: Suite> Edge<S> {
    /// An epoch was missed, or the path of keys: asks for them, and goes on with these wraps then.
    pub(in crate::edge) fn keep_early_update(
        &mut self,
        now: Now,
        early: EarlyUpdate<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        if let Standing::Member(member) = &mut self.standing {
            member.early.keep(early);
            self.catch_up(now, rng);
        }
    }

    /// The epoch held is a new one: perhaps the next is there already.
    pub(in crate::edge) fn apply_early_update(&mut self, now: Now, from: Peer, rng: &mut dyn CryptoRngCore) {
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
        let mut updates = core::mem::replace(&mut member.early, EarlyUpdates::new());
        let early = updates.next(member);
        member.early = updates;
        let (Some(early), Standing::Member(member)) = (early, &self.standing) else {
            return;
        };
        let (header, part) = (early.header, Part::Delta(early.delta));
        match self.meaning(member, &header, Some(&part)) {
            Err(error) => self.blame(from, error),
            Ok(step) => self.take(now, from, step, header.header(), rng),
        }
    }
}
