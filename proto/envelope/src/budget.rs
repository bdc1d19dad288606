//! Budget of work that other drones may cause: a drone that can gossip could otherwise keep another busy.

use core::time::Duration;

use quiver_machine::{Rate, TokenBucket};

/// Bytes of an encapsulated key for which it counts once more: policies with many leaves take longer.
const UNIT: usize = 4096;
/// Steps of a session's chain that count as one.
const STEPS: u32 = 512;

/// A token bucket from which works of several sizes take.
#[derive(Debug)]
pub(super) struct WorkBudget {
    rate: Rate,
    bucket: TokenBucket,
}

impl WorkBudget {
    /// Allows `burst` at once, and one more after each interval.
    pub(super) const fn new((burst, interval): (u32, Duration)) -> Self {
        Self { rate: Rate { burst, refill: interval }, bucket: TokenBucket::new() }
    }

    /// Makes the budget of broadcasts that answer a request: eight at once, one a second.
    pub(super) const fn of_broadcasts() -> Self {
        Self::new((8, Duration::from_secs(1)))
    }

    /// Takes what an encapsulated key of so many bytes costs, if that is left.
    pub(super) fn take_opening(&mut self, now: Duration, len: usize) -> bool {
        // §E4.2: large policies count for more.
        self.take(now, u32::try_from(len / UNIT).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// Takes what so many steps cost, if that is left.
    pub(super) fn take_jump(&mut self, now: Duration, steps: u32) -> bool {
        self.take(now, (steps / STEPS).saturating_add(1))
    }

    /// Takes so much, or all that fits in at once if it is more than that, if it is left.
    pub(super) fn take(&mut self, now: Duration, cost: u32) -> bool {
        let Rate { burst, refill } = self.rate;
        let cost = refill.saturating_mul(cost.min(burst));
        let is_left = self.bucket.wait(now, cost, refill.saturating_mul(burst)).is_zero();
        if is_left {
            self.bucket.spend(now, cost);
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EnvelopeLimits;

    fn of_openings() -> WorkBudget {
        WorkBudget::new(EnvelopeLimits::default().openings)
    }

    fn taken(budget: &mut WorkBudget, at: u64, len: usize) -> usize {
        (0..1000).filter(|_| budget.take_opening(Duration::from_secs(at), len)).count()
    }

    #[test]
    fn a_burst_is_taken_and_after_it_eight_a_second() {
        let mut budget = of_openings();
        assert_eq!(taken(&mut budget, 1, 700), 64);
        assert_eq!(taken(&mut budget, 1, 700), 0);
        assert_eq!(taken(&mut budget, 2, 700), 8);
        assert_eq!(taken(&mut budget, 2000, 700), 64);
    }

    #[test]
    fn what_is_gained_does_not_depend_on_how_often_it_is_asked_for() {
        let mut budget = WorkBudget::new((8, Duration::from_millis(125)));
        assert!((0..8).all(|_| budget.take(Duration::ZERO, 1)));
        let taken = (1..=40).filter(|tick| budget.take(Duration::from_millis(tick * 25), 1)).count();
        assert_eq!(taken, 8);
    }

    #[test]
    fn the_longest_jumps_come_through_eight_at_once_and_then_one_a_second() {
        let mut budget = WorkBudget::new(EnvelopeLimits::default().jumps);
        let mut taken = |at| (0..100).filter(|_| budget.take_jump(Duration::from_secs(at), 4095)).count();
        assert_eq!([taken(0), taken(0), taken(1), taken(9)], [8, 0, 1, 8]);
    }

    #[test]
    fn large_policies_count_for_more_and_yet_the_largest_comes_through() {
        let mut budget = of_openings();
        assert_eq!(taken(&mut budget, 1, 80_000), 3);
        let mut budget = of_openings();
        assert_eq!(taken(&mut budget, 1, usize::MAX), 1);
    }
}
