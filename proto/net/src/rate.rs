//! Limits the rate of group messages that a hub relays for a peer.

use std::time::Duration;

use quiver_machine::TokenBucket;
use tokio::time::Instant;

/// A sustained rate with a burst, in messages and in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Messages per second.
    pub messages: u32,
    /// Bytes per second.
    pub bytes: u32,
    /// Maximum burst, in seconds' worth of the rate.
    pub burst: u32,
}

impl Rate {
    /// Rate of a leader or relay, which passes on the messages of many publishers.
    pub(crate) const fn of_many(self) -> Self {
        Self { messages: self.messages.saturating_mul(64), bytes: self.bytes.saturating_mul(64), ..self }
    }
}

/// A token bucket for each of the two units of a [`Rate`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    start: Instant,
    messages: TokenBucket,
    bytes: TokenBucket,
}

impl Bucket {
    pub(crate) fn full(now: Instant) -> Self {
        Self { start: now, messages: TokenBucket::default(), bytes: TokenBucket::default() }
    }

    /// Takes a message of this length from the bucket; returns false if the rate does not allow it.
    pub(crate) fn allows(&mut self, rate: Rate, length: usize, now: Instant) -> bool {
        let (now, depth) =
            (now.saturating_duration_since(self.start), Duration::from_secs(rate.burst.into()));
        let costs = (cost(1, rate.messages), cost(u32::try_from(length).unwrap_or(u32::MAX), rate.bytes));
        let (Some(message), Some(bytes)) = costs else { return false };
        // A message longer than the whole burst may pass when the bucket is full; the debt is paid off
        // afterwards.
        let affordable = self.bytes.wait(now, bytes.min(depth), depth).is_zero();
        if !affordable || !self.messages.wait(now, message, depth).is_zero() {
            return false;
        }
        self.messages.spend(now, message);
        self.bytes.spend(now, bytes);
        true
    }
}

/// Time in which so much is allowed once more; `None` if nothing ever is.
fn cost(units: u32, per_second: u32) -> Option<Duration> {
    Duration::from_secs(1).saturating_mul(units).checked_div(per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { messages: 2, bytes: 100, burst: 2 };

    #[test]
    fn burst_passes_and_then_the_sustained_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        assert_eq!((0..9).filter(|_| bucket.allows(RATE, 10, start)).count(), 4);
        let later = start + Duration::from_secs(1);
        assert_eq!((0..9).filter(|_| bucket.allows(RATE, 10, later)).count(), 2);
    }

    #[test]
    fn bytes_are_limited_as_well_as_messages() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        assert!(bucket.allows(RATE, 150, start));
        assert!(!bucket.allows(RATE, 150, start));
    }

    #[test]
    fn message_longer_than_the_burst_passes_once_and_is_paid_off() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        assert!(bucket.allows(RATE, 500, start));
        assert!(!bucket.allows(RATE, 1, start + Duration::from_secs(2)));
        assert!(bucket.allows(RATE, 1, start + Duration::from_secs(4)));
    }
}
