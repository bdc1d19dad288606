//! The watchdog: resets the machine if it is not fed.

use tock_registers::interfaces::Writeable;

use crate::machine::{self, TICK_HZ};

/// Seconds until the warning, and from there until the reset. On a busy host, emulation is slow.
const PERIOD: u32 = 15;
const RUN: u32 = 1;
const RESET: u32 = 1 << 1;

/// Starts it.
pub(crate) fn start() {
    let watchdog = machine::watchdog();
    watchdog.load.set(PERIOD * TICK_HZ);
    watchdog.control.set(RUN | RESET);
}

/// Feeds it: it starts over.
pub(crate) fn feed() {
    machine::watchdog().clear.set(1);
}
