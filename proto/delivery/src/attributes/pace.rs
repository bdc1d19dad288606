//! How often one drone may have a key made: making one costs as much curve arithmetic as its grant has leaves.

use alloc::collections::BTreeMap;
use core::time::Duration;

/// Drones whose last key is remembered.
const MAX_REMEMBERED: usize = 8192;

/// When which drone had its last key made at which authority.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    last: BTreeMap<([u8; 32], [u8; 16]), Duration>,
}

impl Pace {
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, last: BTreeMap::new() }
    }

    /// Notes a key, unless it comes too soon after the last; then says how long to wait.
    pub(super) fn take(
        &mut self,
        now: Duration,
        authority: &[u8; 32],
        serial: &[u8; 16],
    ) -> Result<(), Duration> {
        let key = (*authority, *serial);
        let wait = |last: &Duration| (*last + self.interval).saturating_sub(now);
        if let Some(wait) = self.last.get(&key).map(wait).filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        if self.last.len() >= MAX_REMEMBERED && !self.last.contains_key(&key) {
            let interval = self.interval;
            self.last.retain(|_, last| *last + interval > now);
            if self.last.len() >= MAX_REMEMBERED {
                return Err(self.interval);
            }
        }
        self.last.insert(key, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn drone_waits_for_its_own_interval_and_for_nobody_elses() {
        let mut pace = Pace::new(10 * SECOND);
        assert_eq!(pace.take(5 * SECOND, &[1; 32], &[1; 16]), Ok(()));
        assert_eq!(pace.take(7 * SECOND, &[1; 32], &[1; 16]), Err(8 * SECOND));
        assert_eq!(pace.take(7 * SECOND, &[1; 32], &[2; 16]), Ok(()));
        assert_eq!(pace.take(7 * SECOND, &[2; 32], &[1; 16]), Ok(()));
        assert_eq!(pace.take(15 * SECOND, &[1; 32], &[1; 16]), Ok(()));
    }

    #[test]
    fn memory_is_bounded_and_freed_by_time() {
        let mut pace = Pace::new(10 * SECOND);
        let serial = |number: usize| {
            let mut serial = [0; 16];
            serial[..8].copy_from_slice(&number.to_be_bytes());
            serial
        };
        for number in 0..MAX_REMEMBERED {
            assert_eq!(pace.take(SECOND, &[1; 32], &serial(number)), Ok(()));
        }
        assert_eq!(pace.take(SECOND, &[1; 32], &serial(MAX_REMEMBERED)), Err(10 * SECOND));
        assert_eq!(pace.last.len(), MAX_REMEMBERED);
        assert_eq!(pace.take(11 * SECOND, &[1; 32], &serial(MAX_REMEMBERED)), Ok(()));
        assert_eq!(pace.last.len(), 1);
    }
}
