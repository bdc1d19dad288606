//! How many envelopes may cost pairings: whoever can gossip could otherwise keep a drone busy.

use core::time::Duration;

/// Openings that may come at once.
const BURST: u32 = 64;
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

    /// Takes one, if there is one.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let gained = now.saturating_sub(self.counted).as_nanos() / INTERVAL.as_nanos();
        let gained = u32::try_from(gained).unwrap_or(u32::MAX);
        if gained > 0 {
            self.left = self.left.saturating_add(gained).min(BURST);
            self.counted = now;
        }
        let had = self.left > 0;
        self.left = self.left.saturating_sub(1);
        had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_taken_and_after_it_eight_a_second() {
        let mut budget = Budget::new();
        let taken =
            |budget: &mut Budget, at| (0..1000).filter(|_| budget.take(Duration::from_secs(at))).count();
        assert_eq!(taken(&mut budget, 1), 64);
        assert_eq!(taken(&mut budget, 1), 0);
        assert_eq!(taken(&mut budget, 2), 8);
        assert_eq!(taken(&mut budget, 2000), 64);
    }
}
