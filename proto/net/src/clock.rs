//! The two clocks a machine is told about.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quiver_role::Now;
use tokio::time::Instant;

/// Reads the clocks. The monotonic one starts when the driver is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// What both clocks say. A system clock before 1970 reads as 1970.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the driver: the only place that reads the system clock"
    )]
    pub(crate) fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { monotonic: self.start.elapsed(), unix: unix.as_secs() }
    }

    /// The instant at which the monotonic clock reads `at`; `None` if it is further away than the clock can count.
    pub(crate) fn instant(&self, at: Duration) -> Option<Instant> {
        self.start.checked_add(at)
    }
}
