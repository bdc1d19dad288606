//! How many key shares one drone may have released in which time: each costs curve arithmetic and a line in the registry.

use alloc::collections::BTreeMap;
use core::time::Duration;

/// Drones that are remembered.
const MAX_REMEMBERED: usize = 8192;

/// How many shares a drone gets at once, and how soon further ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// As many at once.
    pub burst: u32,
    /// One more after each such time.
    pub interval: Duration,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { burst: 32, interval: Duration::from_secs(2) }
    }
}

/// What drones have used of their allowance.
#[derive(Debug)]
pub(super) struct Pace {
    allowance: Allowance,
    /// When a drone will have all of it again.
    whole: BTreeMap<[u8; 16], Duration>,
}

impl Pace {
    pub(super) fn new(allowance: Allowance) -> Self {
        Self { allowance, whole: BTreeMap::new() }
    }

    /// Notes a share for the drone with this serial, unless its allowance is used up; then says how long to wait.
    pub(super) fn take(&mut self, now: Duration, serial: &[u8; 16]) -> Result<(), Duration> {
        let Allowance { burst, interval } = self.allowance;
        let used = self.whole.get(serial).map_or(now, |whole| (*whole).max(now)) + interval;
        let wait = used.saturating_sub(now).saturating_sub(interval.saturating_mul(burst));
        if !wait.is_zero() {
            return Err(wait);
        }
        if self.whole.len() >= MAX_REMEMBERED && !self.whole.contains_key(serial) {
            self.whole.retain(|_, whole| *whole > now);
            if self.whole.len() >= MAX_REMEMBERED {
                return Err(interval);
            }
        }
        self.whole.insert(*serial, used);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn burst_is_spent_and_comes_back_one_by_one() {
        let mut pace = Pace::new(Allowance { burst: 3, interval: 2 * SECOND });
        let now = 100 * SECOND;
        for _ in 0..3 {
            assert_eq!(pace.take(now, &[1; 16]), Ok(()));
        }
        assert_eq!(pace.take(now, &[1; 16]), Err(2 * SECOND));
        assert_eq!(pace.take(now, &[2; 16]), Ok(()), "nobody waits for another");
        assert_eq!(pace.take(now + SECOND, &[1; 16]), Err(SECOND));
        assert_eq!(pace.take(now + 2 * SECOND, &[1; 16]), Ok(()));
        assert_eq!(pace.take(now + 2 * SECOND, &[1; 16]), Err(2 * SECOND));
    }

    #[test]
    fn memory_is_bounded_and_freed_by_time() {
        let mut pace = Pace::new(Allowance { burst: 3, interval: SECOND });
        let serial = |number: usize| {
            let mut serial = [0; 16];
            serial[..8].copy_from_slice(&number.to_be_bytes());
            serial
        };
        for number in 0..MAX_REMEMBERED {
            assert_eq!(pace.take(SECOND, &serial(number)), Ok(()));
        }
        assert_eq!(pace.take(SECOND, &serial(MAX_REMEMBERED)), Err(SECOND));
        assert_eq!(pace.take(SECOND, &serial(0)), Ok(()), "who is known goes on");
        assert_eq!(pace.take(3 * SECOND, &serial(MAX_REMEMBERED)), Ok(()));
        assert_eq!(pace.whole.len(), 1);
    }
}
