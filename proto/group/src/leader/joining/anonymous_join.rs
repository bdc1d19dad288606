//! Joins of drones that showed that they satisfy the policy of the group, and nothing else about themselves
//! (§6.5).
//!
//! They are known by a pseudonym of one membership. They are members like others, but in no record: a term
//! that ends, or a leader that restarts, forgets them, and they prove again that they satisfy the policy.

use alloc::vec::Vec;

use quiver_ainq::{Admission, KemKey, Suite};
use quiver_machine::{Now, Peer};
use quiver_message::{Nonce, RefusalReason};

use super::LeaderJoins;
use crate::leader::context::LeaderContext;
use crate::leader::interface::LeaderTiming;
use crate::leader::term::Term;

/// A drone that showed that it satisfies the policy and waits for the next epoch.
#[derive(Debug)]
pub(in crate::leader) struct AnonymousJoin<S: Suite> {
    pub(in crate::leader) peer: Peer,
    pub(in crate::leader) nonce: Nonce,
    pub(in crate::leader) admission: Admission<S>,
}

impl<S: Suite> LeaderJoins<S> {
    /// Takes a drone into the next batch.
    pub(in crate::leader) fn admit(&mut self, now: Now, timing: &LeaderTiming, join: AnonymousJoin<S>) {
        self.queue.push_anonymous(now, timing, join);
    }

    /// Takes as many anonymous joins as there is room for beside `joins` by name.
    pub(super) fn anonymous_that_fit(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        term: &Term<S>,
        joins: usize,
    ) -> Vec<AnonymousJoin<S>> {
        let taken = term.roster().len() + term.pending.all_joins() + joins;
        let room = (cx.config.max_members as usize).saturating_sub(taken);
        // §24.3: one whose κ is of another term would spoil the epoch of all.
        let kem = term.kem();
        let (mut anonymous, stale): (Vec<_>, Vec<_>) = self
            .queue
            .take_anonymous()
            .into_iter()
            .partition(|one| one.admission.kem.as_ref().map(KemKey::term) == kem);
        for one in stale {
            cx.refuse(one.peer, RefusalReason::NotReady, &one.nonce, cx.config.timing.batching_max);
        }
        for one in anonymous.split_off(room.min(anonymous.len())) {
            cx.refuse(one.peer, RefusalReason::Full, &one.nonce, cx.config.timing.batching_max);
        }
        anonymous
    }
}
