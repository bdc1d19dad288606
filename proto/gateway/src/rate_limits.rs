//! Rates at which a line may make the gateway work.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quiver_machine::TokenBucket;
use tokio::time::Instant;

/// Bytes per second that are read from a line; more than USB CDC at full speed carries in practice.
const BYTES_PER_SECOND: u32 = 1 << 20;
/// Greatest lead of a line over that rate.
const BURST: Duration = Duration::from_millis(250);
/// The time between two nodes that are started for the boards of a line.
const BETWEEN_STARTS: Duration = Duration::from_millis(100);

/// Bounds the bytes that are read from a line. Unread bytes stay with the sender.
#[derive(Debug)]
pub(crate) struct ReadLimiter {
    start: Instant,
    bucket: TokenBucket,
}

impl ReadLimiter {
    pub(crate) fn new(now: Instant) -> Self {
        Self { start: now, bucket: TokenBucket::default() }
    }

    /// Time to read again after having read so many bytes.
    pub(crate) fn after(&mut self, now: Instant, bytes: usize) -> Instant {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let cost = Duration::from_secs(1).saturating_mul(bytes) / BYTES_PER_SECOND;
        self.bucket.spend(now.saturating_duration_since(self.start), cost);
        // A quarter of a second's bytes may come at once, as a driver's buffer does.
        self.start + self.bucket.out_of_debt(BURST)
    }
}

/// Bounds how often the boards of a line have nodes started.
#[derive(Debug)]
pub(crate) struct StartLimiter {
    start: Instant,
    bucket: Mutex<TokenBucket>,
}

impl StartLimiter {
    pub(crate) fn new(now: Instant) -> Self {
        Self { start: now, bucket: Mutex::default() }
    }

    /// Time at which the next one may start.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        // Each start waits for those before it, so that boards that come together start one after the other.
        let at = now.max(self.start + bucket.out_of_debt(Duration::ZERO));
        bucket.spend(now.saturating_duration_since(self.start), BETWEEN_STARTS);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_is_read_at_the_allowed_rate() {
        let start = Instant::now();
        let mut limiter = ReadLimiter::new(start);
        let mut now = start;
        let mut read = 0_u32;
        while now < start + Duration::from_secs(10) {
            read += 4096;
            now = limiter.after(now, 4096).max(now);
        }
        assert!((10 << 20..=11 << 20).contains(&read), "{read}");
    }

    #[test]
    fn slow_line_never_waits() {
        let start = Instant::now();
        let mut limiter = ReadLimiter::new(start);
        for second in 0..100 {
            let now = start + Duration::from_secs(second);
            assert!(limiter.after(now, 11_520) <= now);
        }
    }

    #[test]
    fn starts_are_spread() {
        let start = Instant::now();
        let limiter = StartLimiter::new(start);
        let last = (0..11).map(|_| limiter.next(start)).last();
        assert_eq!(last, Some(start + 10 * BETWEEN_STARTS));
        let later = start + Duration::from_secs(60);
        assert_eq!(limiter.next(later), later);
    }
}
