//! The token bucket, and one for each peer or drone: limits of how often it is answered.

use alloc::collections::BTreeMap;
use core::time::Duration;

use crate::Peer;

/// A token bucket. A token is the time until it is there again, so a bucket is the time at which it is full;
/// its depth and what a token costs are arguments. Beyond its depth it may be in debt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    full: Duration,
}

impl TokenBucket {
    /// A full one.
    #[must_use]
    pub const fn new() -> Self {
        Self { full: Duration::ZERO }
    }

    /// Time to wait until it holds this much; zero if it does. Never zero if that is more than its depth.
    #[must_use]
    pub fn wait(&self, now: Duration, needed: Duration, depth: Duration) -> Duration {
        let missing = self.full.saturating_sub(now).saturating_add(needed);
        missing.saturating_sub(depth)
    }

    /// Earliest time at which it is not in debt.
    #[must_use]
    pub fn out_of_debt(&self, depth: Duration) -> Duration {
        self.full.saturating_sub(depth)
    }

    /// Takes so much, which need not be there.
    pub fn spend(&mut self, now: Duration, cost: Duration) {
        self.full = self.full.max(now).saturating_add(cost);
    }

    /// Returns true if the bucket is full.
    #[must_use]
    pub fn is_full(&self, now: Duration) -> bool {
        self.full <= now
    }
}

/// Rate of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Number allowed at once.
    pub burst: u32,
    /// Time until one more is allowed.
    pub refill: Duration,
}

impl Rate {
    fn depth(&self) -> Duration {
        self.refill.saturating_mul(self.burst)
    }
}

/// A token bucket for each key, for a bounded number of keys. Those that are full are not kept for longer
/// than it takes to fill one.
#[derive(Debug)]
pub struct TokenBuckets<K = Peer> {
    rate: Rate,
    /// Buckets that are not full, and some that are again.
    buckets: BTreeMap<K, TokenBucket>,
    /// Greatest number of them.
    capacity: usize,
    /// Time at which full buckets are forgotten.
    sweep: Duration,
}

impl TokenBuckets {
    /// A full bucket for every peer that is connected.
    pub const fn new(rate: Rate) -> Self {
        Self::bounded(rate, usize::MAX)
    }

    /// The peer is gone, and its handle is not used again.
    pub fn disconnected(&mut self, peer: Peer) {
        self.buckets.remove(&peer);
    }
}

impl<K> TokenBuckets<K> {
    /// A full bucket for every key, and room to remember so many that are not full.
    pub const fn bounded(rate: Rate, capacity: usize) -> Self {
        Self { rate, buckets: BTreeMap::new(), capacity, sweep: Duration::ZERO }
    }
}

impl<K: Ord> TokenBuckets<K> {
    /// Forgets the buckets that are full, if that was not done lately.
    pub fn tick(&mut self, clock: Duration) {
        if self.sweep <= clock {
            self.buckets.retain(|_, bucket| !bucket.is_full(clock));
            self.sweep = clock.saturating_add(self.rate.depth());
        }
    }

    /// Returns true if there is a token. It stays there.
    #[must_use]
    pub fn has(&self, clock: Duration, key: &K) -> bool {
        let bucket = self.buckets.get(key).copied().unwrap_or_default();
        bucket.wait(clock, self.rate.refill, self.rate.depth()).is_zero()
    }

    /// Takes a token.
    ///
    /// # Errors
    /// The time to wait for one.
    pub fn take(&mut self, clock: Duration, key: K) -> Result<(), Duration> {
        self.tick(clock);
        let Rate { refill, .. } = self.rate;
        let mut bucket = self.buckets.get(&key).copied().unwrap_or_default();
        let wait = bucket.wait(clock, refill, self.rate.depth());
        if !wait.is_zero() {
            return Err(wait);
        }
        // A key that is not remembered has a full bucket: only buckets that are full again are forgotten.
        if self.buckets.len() >= self.capacity && !self.buckets.contains_key(&key) {
            self.buckets.retain(|_, bucket| !bucket.is_full(clock));
            if self.buckets.len() >= self.capacity {
                return Err(refill);
            }
        }
        bucket.spend(clock, refill);
        self.buckets.insert(key, bucket);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_peer_takes_its_burst_and_then_the_rate_whatever_others_take() {
        let mut buckets = TokenBuckets::new(Rate { burst: 3, refill: Duration::from_secs(2) });
        let take = |buckets: &mut TokenBuckets, second, peer| {
            (0..9).filter(|_| buckets.take(Duration::from_secs(second), Peer(peer)).is_ok()).count()
        };
        assert_eq!(take(&mut buckets, 100, 1), 3);
        assert_eq!(take(&mut buckets, 100, 2), 3);
        assert_eq!(take(&mut buckets, 101, 1), 0);
        assert_eq!(take(&mut buckets, 104, 1), 2);
        assert_eq!(take(&mut buckets, 10_000, 1), 3);
        buckets.disconnected(Peer(1));
        assert_eq!(take(&mut buckets, 10_000, 1), 3);
    }

    #[test]
    fn buckets_that_are_full_again_are_forgotten() {
        let mut buckets = TokenBuckets::new(Rate { burst: 3, refill: Duration::from_secs(2) });
        for peer in 0..100 {
            assert_eq!(buckets.take(Duration::from_secs(100), Peer(peer)), Ok(()));
        }
        buckets.tick(Duration::from_secs(101));
        assert_eq!(buckets.buckets.len(), 100);
        buckets.tick(Duration::from_secs(106));
        assert_eq!(buckets.buckets.len(), 0);
    }

    #[test]
    fn drone_waits_for_its_own_interval_and_for_nobody_elses() {
        let mut limiter = TokenBuckets::bounded(Rate { burst: 1, refill: 10 * SECOND }, 8);
        assert_eq!(limiter.take(5 * SECOND, ([1; 32], [1; 16])), Ok(()));
        assert_eq!(limiter.take(7 * SECOND, ([1; 32], [1; 16])), Err(8 * SECOND));
        assert_eq!(limiter.take(7 * SECOND, ([1; 32], [2; 16])), Ok(()));
        assert_eq!(limiter.take(7 * SECOND, ([2; 32], [1; 16])), Ok(()));
        assert_eq!(limiter.take(15 * SECOND, ([1; 32], [1; 16])), Ok(()));
    }

    #[test]
    fn burst_is_spent_and_comes_back_one_by_one() {
        let mut limiter = TokenBuckets::bounded(Rate { burst: 3, refill: 2 * SECOND }, 8);
        let now = 100 * SECOND;
        for _ in 0..3 {
            assert_eq!(limiter.take(now, 1), Ok(()));
        }
        assert_eq!(limiter.take(now, 1), Err(2 * SECOND));
        assert_eq!(limiter.take(now, 2), Ok(()), "nobody waits for another");
        assert_eq!(limiter.take(now + SECOND, 1), Err(SECOND));
        assert_eq!(limiter.take(now + 2 * SECOND, 1), Ok(()));
        assert_eq!(limiter.take(now + 2 * SECOND, 1), Err(2 * SECOND));
    }

    #[test]
    fn memory_is_bounded_and_freed_by_time() {
        for (burst, refill, later) in [(1, 10 * SECOND, 11 * SECOND), (3, SECOND, 3 * SECOND)] {
            let mut limiter = TokenBuckets::bounded(Rate { burst, refill }, 8192);
            for number in 0..8192 {
                assert_eq!(limiter.take(SECOND, number), Ok(()));
            }
            assert_eq!(limiter.take(SECOND, 8192), Err(refill));
            assert_eq!(limiter.buckets.len(), 8192);
            let known = if burst > 1 { Ok(()) } else { Err(refill) };
            assert_eq!(limiter.take(SECOND, 0), known, "who is known goes on");
            assert_eq!(limiter.take(later, 8192), Ok(()));
            assert_eq!(limiter.buckets.len(), 1);
        }
    }

    #[test]
    fn debt_is_paid_off_before_anything_is_taken_again() {
        let (mut bucket, depth) = (TokenBucket::default(), 2 * SECOND);
        assert_eq!(bucket.wait(SECOND, 2 * SECOND, depth), Duration::ZERO);
        assert_eq!(bucket.wait(SECOND, 3 * SECOND, depth), SECOND, "deeper than it is");
        bucket.spend(SECOND, 5 * SECOND);
        assert_eq!(bucket.out_of_debt(depth), 4 * SECOND);
        assert_eq!(bucket.wait(4 * SECOND, SECOND, depth), SECOND);
        assert!(!bucket.is_full(5 * SECOND) && bucket.is_full(6 * SECOND));
    }
}
