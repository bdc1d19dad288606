//! Time limits of calls of the application, and the other events that end them.

use std::fmt;
use std::time::{Duration, Instant};

/// Interval at which a call that waits asks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Time limit of a call. A [`Duration`] becomes one; [`Duration::MAX`] is for ever.
///
/// A language whose signal handlers run only between two calls, as Python's do, or a program that wants to give a
/// call up from another thread, adds [`Self::until`].
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    /// `None` for ever.
    end: Option<Instant>,
    stop: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Wait<'a> {
    /// No limit.
    pub(super) const FOR_EVER: Self = Self { end: None, stop: None };

    /// Limits the wait to `time`, from now.
    #[must_use]
    pub fn at_most(time: Duration) -> Self {
        Self { end: now().checked_add(time), stop: None }
    }

    /// Ends the call as if its time were over once `stop` says so. It is asked ten times a second on the thread
    /// that waits, which holds no lock of the drone meanwhile.
    #[must_use]
    pub fn until(self, stop: &'a dyn Fn() -> bool) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Time until the caller has to look again, at the end or at `stop`; `None` if it never has to.
    pub(super) fn step(&self) -> Option<Duration> {
        let left = self.end.map(|end| end.saturating_duration_since(now()));
        match self.stop {
            Some(_) => Some(left.map_or(LOOK, |left| left.min(LOOK))),
            None => left,
        }
    }

    /// Returns true if there is no time left.
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some_and(|end| end <= now())
    }

    /// Returns true if the application wants it to stop. Must be called without a lock, because `stop` may do
    /// anything.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop())
    }
}

#[expect(clippy::disallowed_methods, reason = "the application waits in real time")]
fn now() -> Instant {
    Instant::now()
}

impl From<Duration> for Wait<'_> {
    fn from(time: Duration) -> Self {
        Self::at_most(time)
    }
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("end", &self.end).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_ever_has_no_end_and_is_looked_at_only_for_a_stop() {
        for forever in [Wait::from(Duration::MAX), Wait::FOR_EVER] {
            assert_eq!(forever.step(), None);
            assert!(!forever.has_ended() && !forever.is_stopped());
            assert_eq!(forever.until(&|| false).step(), Some(LOOK));
        }
    }

    #[test]
    fn limited_wait_ends() {
        let day = Wait::at_most(Duration::from_secs(86_400));
        assert!(day.step() > Some(Duration::from_secs(86_000)) && !day.has_ended());
        assert_eq!(day.until(&|| false).step(), Some(LOOK));
        let over = Wait::at_most(Duration::ZERO).until(&|| true);
        assert!(over.step() == Some(Duration::ZERO) && over.has_ended() && over.is_stopped());
    }
}
