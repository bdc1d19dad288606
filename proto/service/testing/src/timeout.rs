//! Waiting with a deadline.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time limit of every wait. A loaded machine is slow, and an emulated one slower.
pub const TIMEOUT: Duration = Duration::from_secs(240);

/// The time for tests.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a test of real processes runs in real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// A moment at which patience ends.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// A deadline.
    #[must_use]
    pub fn after(timeout: Duration) -> Self {
        Self(now() + timeout)
    }

    /// Time left until it.
    #[must_use]
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(now())
    }
}

/// Waits until `look` finds something.
///
/// # Panics
/// After [`TIMEOUT`], with `what`.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Deadline::after(TIMEOUT);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(!deadline.left().is_zero(), "waited in vain: {what}");
        sleep(Duration::from_millis(20));
    }
}
