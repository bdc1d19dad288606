//! How many envelopes may cost pairings: whoever can gossip could otherwise keep a drone busy.

use core::time::Duration;

/// Openings that may come at once, if they are small.
const BURST: u32 = 64;
/// Bytes of an encapsulated key for which it counts once more: policies with many leaves take longer.
const UNIT: usize = 4096;
/// One more for each of these.
const INTERVAL: Duration = Duration::from_millis(125);

/// A bucket that fills with time.
#[derive(Debug)]
pub(super) struct Budget {
    left: u32,
    counted: Duration,
}

impl Budget {
    pub(super) const fn new() -> Self {
        Self { left: BURST, counted: Duration::ZERO }
    }

    /// Takes what an encapsulated key of so many bytes costs, if that is left.
    pub(super) fn take(&mut self, now: Duration, len: usize) -> bool {
        let gained = now.saturating_sub(self.counted).as_nanos() / INTERVAL.as_nanos();
        let gained = u32::try_from(gained).unwrap_or(u32::MAX);
        if gained > 0 {
            self.left = self.left.saturating_add(gained).min(BURST);
            self.counted = now;
        }
        let cost = u32::try_from(len / UNIT).unwrap_or(BURST).saturating_add(1).min(BURST);
        let left = self.left.checked_sub(cost);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(budget: &mut Budget, at: u64, len: usize) -> usize {
        (0..1000).filter(|_| budget.take(Duration::from_secs(at), len)).count()
    }

    #[test]
    fn a_burst_is_taken_and_after_it_eight_a_second() {
        let mut budget = Budget::new();
        assert_eq!(taken(&mut budget, 1, 700), 64);
        assert_eq!(taken(&mut budget, 1, 700), 0);
        assert_eq!(taken(&mut budget, 2, 700), 8);
        assert_eq!(taken(&mut budget, 2000, 700), 64);
    }

    #[test]
    fn large_policies_count_for_more_and_yet_the_largest_comes_through() {
        let mut budget = Budget::new();
        assert_eq!(taken(&mut budget, 1, 80_000), 3);
        let mut budget = Budget::new();
        assert_eq!(taken(&mut budget, 1, usize::MAX), 1);
    }
}
