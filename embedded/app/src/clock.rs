//! Clock: UTC from the gateway, as far as it can be trusted.

use core::time::Duration;

/// Seconds since 1970 on a board without a clock. Never below a floor, and never back while a session with a
/// gateway lasts.
///
/// A gateway that lies can make the board take something expired for valid no further back than the floor, or
/// make everything expire until the next session: delay and denial, which are a gateway's anyway.
#[derive(Debug, Default)]
pub(crate) struct GatewayClock {
    floor: u64,
    base: u64,
    /// Monotonic time at which the base was read.
    since: Duration,
}

impl GatewayClock {
    /// Sets the least possible time.
    pub(crate) fn set_floor(&mut self, floor: u64, now: Duration) {
        self.floor = floor;
        (self.base, self.since) = (self.unix(now).max(floor), now);
    }

    /// A session begins.
    pub(crate) fn begin(&mut self, claimed: u64, now: Duration) {
        (self.base, self.since) = (claimed.max(self.floor), now);
    }

    /// Adjusts to the time that the gateway claims.
    pub(crate) fn adjust(&mut self, claimed: u64, now: Duration) {
        (self.base, self.since) = (claimed.max(self.unix(now)), now);
    }

    /// Seconds since 1970.
    pub(crate) const fn unix(&self, now: Duration) -> u64 {
        self.base.saturating_add(now.saturating_sub(self.since).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_and_never_below_the_floor_or_back_within_a_session() {
        let at = Duration::from_secs;
        let mut clock = GatewayClock::default();
        clock.set_floor(1_000, at(5));
        assert_eq!((clock.unix(at(5)), clock.unix(at(9))), (1_000, 1_004));
        clock.begin(10, at(9));
        assert_eq!(clock.unix(at(9)), 1_000);
        clock.begin(5_000, at(10));
        clock.adjust(4_000, at(20));
        assert_eq!(clock.unix(at(20)), 5_010);
        clock.adjust(6_000, at(21));
        assert_eq!(clock.unix(at(31)), 6_010);
        clock.begin(2_000, at(31));
        assert_eq!(clock.unix(at(31)), 2_000, "a new session may correct a lie");
        clock.adjust(u64::MAX, at(32));
        assert_eq!(clock.unix(at(99)), u64::MAX);
    }
}
