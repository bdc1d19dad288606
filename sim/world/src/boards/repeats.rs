//! Repeats, by members, of a leader's broadcasts of an epoch (docs/protocol.md §7.5): when a member sends again
//! what it has, by the Trickle timer that boards have.

use std::time::Duration;

use quiver_link::{LinkError, Trickle, TrickleConfig};
use quiver_scenario_format::RepeatsTable;
use quiver_testbed::{NEVER, nanos};

/// Manner in which members repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Timers of the members.
    pub trickle: TrickleConfig,
    /// Intervals after which a message is repeated no more.
    pub intervals: u8,
}

impl Repeats {
    /// Repeats as this table of a scenario sets them.
    ///
    /// # Errors
    /// Errors of [`TrickleConfig::new`].
    pub(crate) fn read(table: RepeatsTable) -> Result<Self, LinkError> {
        let RepeatsTable { imin, doublings, k, intervals } = table;
        Ok(Self { trickle: TrickleConfig::new(imin.0, doublings, k)?, intervals: intervals.max(1) })
    }
}

/// Repeating of one broadcast by one member.
#[derive(Debug)]
pub(crate) struct Repeating {
    trickle: Trickle,
    intervals: u8,
    /// Intervals after which it ends.
    most: u8,
    /// The time has come, and the channel has not been free since.
    due: bool,
    wake: u64,
}

impl Repeating {
    /// A member has the broadcast from this time on.
    pub(crate) fn begin(repeats: Repeats, at: u64, random: u64) -> Self {
        let trickle = Trickle::new(repeats.trickle, Duration::from_nanos(at), random);
        let wake = nanos(trickle.timeout());
        Self { trickle, intervals: 0, most: repeats.intervals, due: false, wake }
    }

    /// Time at which it is to be served next.
    pub(crate) const fn wake(&self) -> u64 {
        self.wake
    }

    /// The member heard another repeat all of the broadcast.
    pub(crate) fn hear(&mut self) {
        self.trickle.handle_consistent();
    }

    /// The member's time has come; the channel is taken until `busy`. Says whether it repeats the broadcast now,
    /// and when it is to be served next.
    pub(crate) fn serve(&mut self, now: u64, busy: u64, random: u64, backoff: u64) -> (bool, Option<u64>) {
        self.due &= self.trickle.is_needed();
        let step = self.trickle.handle_timeout(Duration::from_nanos(now), random);
        self.due |= step.transmit;
        self.intervals = self.intervals.saturating_add(step.expired.into());
        let sends = self.due && busy <= now;
        self.due &= !sends;
        self.wake = match (self.due, self.intervals < self.most) {
            (true, _) => busy.max(now).saturating_add(1 + backoff),
            (false, true) => nanos(self.trickle.timeout()).max(now + 1),
            (false, false) => NEVER,
        };
        (sends, Some(self.wake).filter(|wake| *wake < NEVER))
    }
}
