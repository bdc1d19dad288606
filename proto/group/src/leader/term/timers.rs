//! Times at which a term makes a new key, and looks for members without a message.

use core::time::Duration;

use quiver_machine::{Now, due, earlier};

use crate::leader::interface::LeaderTiming;

/// Pause after an epoch that could not be made.
pub(in crate::leader) const RETRY_FAILED: Duration = Duration::from_secs(10);
/// Minimum time between two renewals of the key because of members' restarts.
const RESTART_PAUSE: Duration = Duration::from_secs(10);

/// Times of a term, on the monotonic clock.
#[derive(Debug)]
pub(super) struct TermTimers {
    /// Time to make a new key because this one grows old.
    renew: Duration,
    /// Time of the next removal of members without a message in this term.
    sweep: Duration,
    /// Time at which the first anonymous membership ends.
    anonymous_end: Option<Duration>,
    /// Time to renew the key because a member restarted, and the time of the last such renewal.
    restart_renewal: Option<Duration>,
    last_restart: Option<Duration>,
}

impl TermTimers {
    pub(super) fn new(now: Now, timing: &LeaderTiming) -> Self {
        Self {
            renew: renewal(now, timing),
            sweep: now.monotonic.saturating_add(timing.absence),
            anonymous_end: None,
            restart_renewal: None,
            last_restart: None,
        }
    }

    /// Returns true if it is time for a new key.
    pub(super) fn renewal_is_due(&mut self, now: Now) -> bool {
        let clock = now.monotonic;
        let restart = due(self.restart_renewal, clock);
        if restart {
            self.restart_renewal = None;
            self.last_restart = Some(clock);
        }
        // §7.1: a key before t_g; §11.2: for members that lost theirs; §A5.2: at the end of a period.
        self.renew <= clock || restart || due(self.anonymous_end, clock)
    }

    /// Returns true if it is time to look for members without a message, and sets the next time.
    pub(super) fn sweep_is_due(&mut self, now: Now, timing: &LeaderTiming) -> bool {
        let come = self.sweep <= now.monotonic;
        if come {
            self.sweep = now.monotonic.saturating_add(timing.absence);
        }
        come
    }

    /// The new key could not be made: another attempt comes after a pause.
    pub(super) fn postpone(&mut self, now: Now) {
        self.renew = self.renew.max(now.monotonic + RETRY_FAILED);
    }

    /// A key was made, under which the first anonymous membership ends then.
    pub(super) fn start_epoch(&mut self, now: Now, timing: &LeaderTiming, anonymous_end: Option<Duration>) {
        self.anonymous_end = anonymous_end;
        self.renew = renewal(now, timing);
    }

    /// A member restarted and lost the key of an epoch that it must not continue.
    pub(super) fn renew_after_restart(&mut self, now: Now) {
        let now = now.monotonic;
        let earliest = self.last_restart.map_or(now, |last| last + RESTART_PAUSE);
        self.restart_renewal.get_or_insert(earliest.max(now));
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        let renewal = earlier(self.anonymous_end, self.restart_renewal);
        earlier(Some(self.renew.min(self.sweep)), renewal)
    }
}

/// Renewal time of a key made now: after four fifths of its validity.
fn renewal(now: Now, timing: &LeaderTiming) -> Duration {
    now.monotonic + timing.validity.mul_f64(0.8)
}
