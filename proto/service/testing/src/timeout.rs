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
pub fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(TIMEOUT, look).unwrap_or_else(|| panic!("waited in vain: {what}"))
}

/// Waits for so long until `look` finds something; `None` if it does not.
pub fn within<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Deadline::after(patience);
    loop {
        let found = look();
        if found.is_some() || deadline.left().is_zero() {
            return found;
        }
        sleep(Duration::from_millis(20));
    }
}
