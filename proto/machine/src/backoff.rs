//! Waiting times between attempts, with exponential backoff.

use core::time::Duration;

use rand_core::CryptoRngCore;

/// Doubling waits with jitter, so that thousands of drones that lost the same leader do not return in step.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    current: Duration,
    /// Number of slow answers in a row that did not come.
    missed: u32,
}

/// Maximum number of doublings of the patience.
const MAX_MISSED: u32 = 3;

impl Backoff {
    /// The first and the longest wait.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, current: first, missed: 0 }
    }

    /// The next wait: between three quarters and five quarters of the current one, which then doubles.
    pub fn next(&mut self, rng: &mut dyn CryptoRngCore) -> Duration {
        // In whole numbers: not every processor has others.
        let half = self.current / 2;
        let wait = half + half / 2 + half * (rng.next_u32() >> 16) / 0xFFFF;
        self.current = (self.current * 2).min(self.longest);
        wait
    }

    /// An answer that may take its time did not come.
    pub fn miss(&mut self) {
        self.missed = (self.missed + 1).min(MAX_MISSED);
    }

    /// Time to wait for an answer that may be slow: doubles with each answer that does not come, up to eight
    /// times `usual`. Without this, thousands of askers that all give up answers under way and ask again
    /// would never be served.
    pub fn patience(&self, usual: Duration) -> Duration {
        usual * (1 << self.missed)
    }

    /// The first wait, without jitter.
    pub fn first(&self) -> Duration {
        self.first
    }

    /// Start over: something worked.
    pub fn reset(&mut self) {
        (self.current, self.missed) = (self.first, 0);
    }
}

/// The earlier of two deadlines, where none means never.
// Inlined at every deadline it is 80 bytes in a board's image.
#[inline(never)]
pub fn earlier(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Returns true if a deadline has come.
pub fn due(deadline: Option<Duration>, now: Duration) -> bool {
    deadline.is_some_and(|deadline| deadline <= now)
}
