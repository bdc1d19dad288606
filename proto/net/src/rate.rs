//! Limits the rate of group messages that a hub relays for a peer.

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
    /// That of a leader or relay, which passes on what many publish.
    pub(crate) const fn of_many(self) -> Self {
        Self { messages: self.messages.saturating_mul(64), bytes: self.bytes.saturating_mul(64), ..self }
    }
}

/// A token bucket for each of the two units of a [`Rate`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    messages: f64,
    bytes: f64,
    at: Instant,
}

impl Bucket {
    pub(crate) fn full(rate: Rate, now: Instant) -> Self {
        let burst = f64::from(rate.burst);
        Self { messages: f64::from(rate.messages) * burst, bytes: f64::from(rate.bytes) * burst, at: now }
    }

    /// Whether a message of this length is within the rate; if so it is paid for.
    pub(crate) fn allows(&mut self, rate: Rate, length: usize, now: Instant) -> bool {
        let full = Self::full(rate, now);
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.messages = full.messages.min(self.messages + elapsed * f64::from(rate.messages));
        self.bytes = full.bytes.min(self.bytes + elapsed * f64::from(rate.bytes));
        self.at = now;
        // Lengths are at most 2^20, well within what f64 holds exactly.
        let length = length as f64;
        // A message longer than the whole burst may pass when the bucket is full; the debt is paid off
        // afterwards.
        let affordable = self.bytes >= length.min(full.bytes);
        if self.messages < 1.0 || !affordable {
            return false;
        }
        self.messages -= 1.0;
        self.bytes -= length;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const RATE: Rate = Rate { messages: 2, bytes: 100, burst: 2 };

    #[test]
    fn burst_passes_and_then_the_sustained_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::full(RATE, start);
        assert_eq!((0..9).filter(|_| bucket.allows(RATE, 10, start)).count(), 4);
        let later = start + Duration::from_secs(1);
        assert_eq!((0..9).filter(|_| bucket.allows(RATE, 10, later)).count(), 2);
    }

    #[test]
    fn bytes_are_limited_as_well_as_messages() {
        let start = Instant::now();
        let mut bucket = Bucket::full(RATE, start);
        assert!(bucket.allows(RATE, 150, start));
        assert!(!bucket.allows(RATE, 150, start));
    }

    #[test]
    fn message_longer_than_the_burst_passes_once_and_is_paid_off() {
        let start = Instant::now();
        let mut bucket = Bucket::full(RATE, start);
        assert!(bucket.allows(RATE, 500, start));
        assert!(!bucket.allows(RATE, 1, start + Duration::from_secs(2)));
        assert!(bucket.allows(RATE, 1, start + Duration::from_secs(4)));
    }
}
