//! Times retries: a deadline that recurs with backoff until it is stopped.

use core::time::Duration;

use quiver_machine::{Backoff, due};
use rand_core::CryptoRngCore;

/// A deadline that recurs at growing distances, until it is stopped.
#[derive(Debug)]
pub(super) struct RetryTimer {
    backoff: Backoff,
    due: Option<Duration>,
}

impl RetryTimer {
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self { backoff: Backoff::new(first, longest), due: None }
    }

    /// Starts over: something has changed.
    pub(super) fn restart(&mut self, now: Duration, rng: &mut dyn CryptoRngCore) {
        self.backoff.reset();
        self.due = Some(now.saturating_add(self.backoff.next(rng)));
    }

    /// Starts unless it runs.
    pub(super) fn start(&mut self, now: Duration, rng: &mut dyn CryptoRngCore) {
        if self.due.is_none() {
            self.restart(now, rng);
        }
    }

    /// Comes at once, or after this wait, and then as before.
    pub(super) fn hurry(&mut self, at: Duration) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    pub(super) fn stop(&mut self) {
        self.due = None;
    }

    /// Returns true if the time has come, and sets the next one. If so, it is set for the next time.
    pub(super) fn has_come(&mut self, now: Duration, rng: &mut dyn CryptoRngCore) -> bool {
        let come = due(self.due, now);
        if come {
            self.due = Some(now.saturating_add(self.backoff.next(rng)));
        }
        come
    }

    pub(super) const fn deadline(&self) -> Option<Duration> {
        self.due
    }
}
