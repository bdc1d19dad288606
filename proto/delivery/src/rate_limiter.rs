//! Limits how often one drone is delivered something: each delivery costs curve arithmetic and a line in the
//! registry.

use alloc::collections::BTreeMap;
use core::time::Duration;

use quiver_machine::Rate;

/// Greatest number of remembered drones.
const MAX_REMEMBERED: usize = 8192;

/// A token bucket for each key, for a bounded number of keys.
#[derive(Debug)]
pub(crate) struct RateLimiter<K> {
    rate: Rate,
    /// Time at which each bucket will be full again.
    full: BTreeMap<K, Duration>,
}

impl<K: Ord> RateLimiter<K> {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, full: BTreeMap::new() }
    }

    /// Takes a token, or returns the time to wait for one.
    pub(crate) fn take(&mut self, now: Duration, key: K) -> Result<(), Duration> {
        let Rate { burst, refill } = self.rate;
        let used = self.full.get(&key).map_or(now, |full| (*full).max(now)) + refill;
        let wait = used.saturating_sub(now).saturating_sub(refill.saturating_mul(burst));
        if !wait.is_zero() {
            return Err(wait);
        }
        // A peer that is not remembered has a full bucket: only buckets that are full again are forgotten.
        if self.full.len() >= MAX_REMEMBERED && !self.full.contains_key(&key) {
            self.full.retain(|_, full| *full > now);
            if self.full.len() >= MAX_REMEMBERED {
                return Err(refill);
            }
        }
        self.full.insert(key, used);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn drone_waits_for_its_own_interval_and_for_nobody_elses() {
        let mut limiter = RateLimiter::new(Rate { burst: 1, refill: 10 * SECOND });
        assert_eq!(limiter.take(5 * SECOND, ([1; 32], [1; 16])), Ok(()));
        assert_eq!(limiter.take(7 * SECOND, ([1; 32], [1; 16])), Err(8 * SECOND));
        assert_eq!(limiter.take(7 * SECOND, ([1; 32], [2; 16])), Ok(()));
        assert_eq!(limiter.take(7 * SECOND, ([2; 32], [1; 16])), Ok(()));
        assert_eq!(limiter.take(15 * SECOND, ([1; 32], [1; 16])), Ok(()));
    }

    #[test]
    fn burst_is_spent_and_comes_back_one_by_one() {
        let mut limiter = RateLimiter::new(Rate { burst: 3, refill: 2 * SECOND });
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
            let mut limiter = RateLimiter::new(Rate { burst, refill });
            for number in 0..MAX_REMEMBERED {
                assert_eq!(limiter.take(SECOND, number), Ok(()));
            }
            assert_eq!(limiter.take(SECOND, MAX_REMEMBERED), Err(refill));
            assert_eq!(limiter.full.len(), MAX_REMEMBERED);
            let known = if burst > 1 { Ok(()) } else { Err(refill) };
            assert_eq!(limiter.take(SECOND, 0), known, "who is known goes on");
            assert_eq!(limiter.take(later, MAX_REMEMBERED), Ok(()));
            assert_eq!(limiter.full.len(), 1);
        }
    }
}
