//! Detects drones that join again and again: two processes with copies of one state take the slot from each
//! other.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use quiver_ainq::Name;
use tokio::time::Instant;

/// Time for which a join is remembered.
const WITHIN: Duration = Duration::from_secs(600);
/// Number of joins within that time that is suspicious: a drone that restarts keeps its seat.
const SUSPICIOUS: usize = 4;
/// Number of drones that are held whenever it was that they joined.
const SMALL: usize = 64;

/// Latest joins of each drone.
#[derive(Debug, Default)]
pub(crate) struct RepeatedJoins {
    lately: BTreeMap<Name, VecDeque<Instant>>,
    /// Size at which joins of long ago are looked for: not with each of thousands that join at once.
    tidy_at: usize,
}

impl RepeatedJoins {
    /// Notes a joining; returns how often it joined lately if that is suspicious.
    pub(crate) fn note(&mut self, name: &Name, now: Instant) -> Option<usize> {
        let lately = |at: &Instant| now.duration_since(*at) < WITHIN;
        if self.lately.len() >= self.tidy_at {
            self.lately.retain(|_, times| times.back().is_some_and(lately));
            self.tidy_at = (self.lately.len() * 2).max(SMALL);
        }
        let times = self.lately.entry(name.clone()).or_default();
        times.push_back(now);
        times.retain(lately);
        if times.len() > SUSPICIOUS {
            times.pop_front();
        }
        (times.len() >= SUSPICIOUS).then_some(times.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drone_that_joins_again_and_again_is_suspicious_and_others_are_not() {
        let (mut joins, start) = (RepeatedJoins::default(), Instant::now());
        let (copied, other) = (Name::new("edge-1").unwrap(), Name::new("edge-2").unwrap());
        let suspicious = |joins: &mut RepeatedJoins, name, seconds| {
            joins.note(name, start + Duration::from_secs(seconds)).is_some()
        };
        for (seconds, expected) in [(0, false), (60, false), (120, false), (180, true), (240, true)] {
            assert_eq!(suspicious(&mut joins, &copied, seconds), expected, "{seconds}");
            assert!(!suspicious(&mut joins, &other, seconds * 10));
        }
    }

    #[test]
    fn joinings_of_long_ago_are_forgotten() {
        let (mut joins, start) = (RepeatedJoins::default(), Instant::now());
        for number in 0..1000_u32 {
            let name = Name::new(&format!("edge-{number}")).unwrap();
            joins.note(&name, start + WITHIN * number);
        }
        assert!(joins.lately.len() <= SMALL);
    }
}
