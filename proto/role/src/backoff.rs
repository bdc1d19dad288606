//! How long to wait before trying again.

use core::time::Duration;

use rand_core::CryptoRngCore;

/// Doubling waits with jitter, so that thousands of drones that lost the same leader do not return in step.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    current: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, current: first }
    }

    /// The next wait: between three quarters and five quarters of the current one, which then doubles.
    pub(crate) fn next(&mut self, rng: &mut dyn CryptoRngCore) -> Duration {
        // In whole numbers: not every processor has others.
        let half = self.current / 2;
        let wait = half + half / 2 + half * (rng.next_u32() >> 16) / 0xFFFF;
        self.current = (self.current * 2).min(self.longest);
        wait
    }

    /// The first wait, without jitter.
    #[cfg(feature = "threshold")]
    pub(crate) fn first(&self) -> Duration {
        self.first
    }

    /// Start over: something worked.
    pub(crate) fn reset(&mut self) {
        self.current = self.first;
    }
}

/// The earlier of two deadlines, where none means never.
pub(crate) fn earlier(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Whether a deadline has come.
pub(crate) fn due(deadline: Option<Duration>, now: Duration) -> bool {
    deadline.is_some_and(|deadline| deadline <= now)
}
