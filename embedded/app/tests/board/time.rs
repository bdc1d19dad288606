//! Virtual time, one for each test's thread.

use std::cell::Cell;
use std::task::Waker;
use std::time::Duration;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
    static ALARM: Cell<u64> = const { Cell::new(u64::MAX) };
}

struct Virtual;

impl embassy_time_driver::Driver for Virtual {
    fn now(&self) -> u64 {
        NOW.get()
    }

    fn schedule_wake(&self, at: u64, _: &Waker) {
        // The executor polls at the alarm or earlier.
        ALARM.set(ALARM.get().min(at));
    }
}

embassy_time_driver::time_driver_impl!(static DRIVER: Virtual = Virtual);

const TICK: u64 = 1_000_000 / embassy_time_driver::TICK_HZ;

pub(crate) fn now() -> Duration {
    Duration::from_micros(NOW.get() * TICK)
}

/// Sets the clock forward.
pub(crate) fn set(time: Duration) {
    NOW.set((time.as_micros() as u64).div_ceil(TICK).max(NOW.get()));
}

/// Forgets alarms: each poll sets its own.
pub(crate) fn forget_alarms() {
    ALARM.set(u64::MAX);
}

/// The earliest alarm since.
pub(crate) fn alarm() -> Duration {
    Duration::from_micros(ALARM.get().saturating_mul(TICK))
}
