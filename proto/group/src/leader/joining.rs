//! Joining: challenges, requests, batches. docs/protocol.md §6.
//!
//! | module | what it does |
//! |---|---|
//! | [`join_request`] | challenges, and the checks of a request that cost nothing |
//! | [`join_queue`] | requests that wait for the next batch |
//! | [`batch_verify`] | verifies signatures, of a batch in one product |
//! | [`kem_exchange`] | makes the second factor, or finds it |
//! | [`anonymous_join`] | joins of drones that showed that they satisfy a policy |

pub(super) mod anonymous_join;
pub(super) mod batch_verify;
pub(super) mod join_queue;
pub(super) mod join_request;
pub(super) mod kem_exchange;

use core::time::Duration;

use quiver_ainq::Suite;
use quiver_machine::{Peer, due, earlier};

use self::join_queue::JoinQueue;
use super::context::LeaderContext;
use super::interface::LeaderConfig;
use super::term::Term;

/// State of joins at a leader.
#[derive(Debug)]
pub(super) struct LeaderJoins<S: Suite> {
    pub(super) queue: JoinQueue<S>,
    /// True if joins by name are refused.
    pub(super) anonymous_only: bool,
    /// Number of signatures verified.
    #[cfg(test)]
    pub(super) checks: core::cell::Cell<usize>,
}

impl<S: Suite> LeaderJoins<S> {
    pub(super) fn new(config: &LeaderConfig<S>) -> Self {
        Self {
            queue: JoinQueue::new(config.max_members, config.timing.challenge_lifetime()),
            anonymous_only: false,
            #[cfg(test)]
            checks: core::cell::Cell::new(0),
        }
    }

    /// Closes the batch: waiting drones join and leavers leave, in one epoch or in as few as it takes.
    pub(super) fn close_batch(&mut self, cx: &mut LeaderContext<'_, S>, term: &mut Term<S>) {
        // §6.3: joins that come together enter one epoch.
        let joins = self.verified_joins(cx, term);
        let anonymous = self.anonymous_that_fit(cx, term, joins.len());
        let changes = joins.len() + anonymous.len() + term.pending.requested_leaves();
        if term.pending.close_batch(joins, anonymous) {
            self.queue.made_epoch(cx.now, changes);
            term.rekey(cx);
        }
    }

    pub(super) fn disconnected(&mut self, peer: Peer) {
        self.queue.disconnected(peer);
        self.queue.forget_anonymous(peer);
    }

    pub(super) fn tick(&mut self, cx: &mut LeaderContext<'_, S>, term: Option<&mut Term<S>>) {
        if due(self.queue.tidying(), cx.now.monotonic) {
            self.queue.forget_old(cx.now);
        }
        if due(self.batch_deadline(cx.config, term.as_deref()), cx.now.monotonic)
            && let Some(term) = term
        {
            self.close_batch(cx, term);
        }
    }

    fn batch_deadline(&self, config: &LeaderConfig<S>, term: Option<&Term<S>>) -> Option<Duration> {
        self.queue.deadline(&config.timing, term.and_then(|term| term.arriving(&config.timing)))
    }

    pub(super) fn deadline(&self, config: &LeaderConfig<S>, term: Option<&Term<S>>) -> Option<Duration> {
        earlier(self.batch_deadline(config, term), self.queue.tidying())
    }
}
