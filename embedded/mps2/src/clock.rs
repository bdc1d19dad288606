//! Time: embassy's driver over the dual timer, and its ticks.
//!
//! The first timer runs freely, at 25 MHz; the second is the alarm. Under QEMU's `-icount shift=0` an
//! instruction takes one nanosecond, so that a tick is 40 instructions, exactly and repeatably; without it,
//! ticks are the host's time.

use core::cell::{Cell, RefCell};
use core::task::Waker;

use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::{Driver, time_driver_impl};
use embassy_time_queue_utils::Queue;
use tock_registers::interfaces::{Readable, Writeable};

use crate::machine::{self, Interrupt, TICK_HZ};

const TICKS_PER_MICROSECOND: u64 = TICK_HZ as u64 / 1_000_000;

const ONE_SHOT: u32 = 1;
const BITS_32: u32 = 1 << 1;
const INTERRUPT: u32 = 1 << 5;
const RUN: u32 = 1 << 7;

struct TimerClock {
    /// Ticks up to the last reading.
    ticks: Mutex<Cell<u64>>,
    alarms: Mutex<RefCell<Queue>>,
}

time_driver_impl!(static CLOCK: TimerClock = TimerClock {
    ticks: Mutex::new(Cell::new(0)),
    alarms: Mutex::new(RefCell::new(Queue::new())),
});

/// Starts the timers.
pub(crate) fn start() {
    let [free, _] = machine::timers();
    free.load.set(u32::MAX);
    // The interrupt at every wrap, after 171 s, extends the count to 64 bits if nothing else reads it.
    free.control.set(BITS_32 | INTERRUPT | RUN);
    machine::enable(&[Interrupt::Timers]);
}

/// Ticks since the start.
pub(crate) fn ticks(cs: CriticalSection<'_>) -> u64 {
    let ticks = CLOCK.ticks.borrow(cs);
    // It counts down, and is read more often than it wraps.
    let low = u32::MAX - machine::timers()[0].value.get();
    let passed = low.wrapping_sub(ticks.get() as u32);
    ticks.set(ticks.get() + u64::from(passed));
    ticks.get()
}

/// The timers' interrupt.
pub(crate) fn interrupted() {
    for timer in machine::timers() {
        timer.clear.set(1);
    }
    critical_section::with(|cs| {
        ticks(cs);
        rearm(cs, &mut CLOCK.alarms.borrow_ref_mut(cs));
    });
}

/// Wakes the timers that are due, and sets the alarm for the next.
fn rearm(cs: CriticalSection<'_>, alarms: &mut Queue) {
    let next = alarms.next_expiration(ticks(cs) / TICKS_PER_MICROSECOND);
    let [_, alarm] = machine::timers();
    alarm.control.set(0);
    if next == u64::MAX {
        return;
    }
    // A clock that has passed the moment since then: at once. A moment too far away: some wake-ups in
    // between.
    let wait = (next.saturating_mul(TICKS_PER_MICROSECOND)).saturating_sub(ticks(cs)).clamp(1, 1 << 31);
    alarm.load.set(wait as u32);
    alarm.control.set(ONE_SHOT | BITS_32 | INTERRUPT | RUN);
}

impl Driver for TimerClock {
    fn now(&self) -> u64 {
        critical_section::with(ticks) / TICKS_PER_MICROSECOND
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|cs| {
            let alarms = &mut CLOCK.alarms.borrow_ref_mut(cs);
            if alarms.schedule_wake(at, waker) {
                rearm(cs, alarms);
            }
        });
    }
}
