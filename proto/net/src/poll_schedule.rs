//! The time of the next round of questions to peers.

use tokio::time::Instant;

/// The time of the next round, if there is one.
#[derive(Debug, Default)]
pub(crate) struct PollSchedule {
    due: Option<Instant>,
}

impl PollSchedule {
    /// The round comes at this time at the latest.
    pub(crate) fn by(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Time at which the node has to be woken for it.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.due
    }

    /// Begins a round if it is time, and returns true if so. The round is over then, also for a node that
    /// asks no peer: else it would be woken for it for ever.
    pub(crate) fn begins(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_soonest_of_all_times_counts_and_only_once() {
        let now = Instant::now();
        let [soon, late] = [1, 60].map(|seconds| now + Duration::from_secs(seconds));
        let mut round = PollSchedule::default();
        assert!(!round.begins(now), "none is to come");
        for at in [late, soon, late] {
            round.by(at);
        }
        assert_eq!(round.wake_at(), Some(soon));
        assert!(!round.begins(now));
        assert!(round.begins(soon));
        assert_eq!(round.wake_at(), None);
        assert!(!round.begins(late));
    }
}
