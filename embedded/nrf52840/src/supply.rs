//! Supply voltage: warns before the processor stops (brown-out), and blocks writes to flash until it has been
//! good for a while.

use core::sync::atomic::{AtomicU32, Ordering};

use embassy_nrf::interrupt::typelevel::{Binding, CLOCK_POWER, Handler, Interrupt as _};
use embassy_nrf::pac;
use embassy_nrf::pac::power::vals::Threshold;
use embassy_time::Instant;

use crate::region::Supply;

/// Seconds without a warning after which the supply counts as good again.
const RECOVERY_S: u32 = 2;

/// Settling time of the comparator: 200 µs.
const SETTLING_CYCLES: u32 = 12_800;

static WARNINGS: AtomicU32 = AtomicU32::new(0);
/// Time of the last warning; 0 before the first.
static LAST: AtomicU32 = AtomicU32::new(0);

/// Handles the warning; shares its interrupt with USB's.
pub struct InterruptHandler {
    _private: (),
}

#[expect(unsafe_code, reason = "the trait's method is unsafe: it may be called by the interrupt alone")]
impl Handler<CLOCK_POWER> for InterruptHandler {
    unsafe fn on_interrupt() {
        if pac::POWER.events_pofwarn().read() != 0 {
            pac::POWER.events_pofwarn().write_value(0);
            LAST.store(seconds(), Ordering::Relaxed);
            let _ = WARNINGS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1));
        }
    }
}

fn seconds() -> u32 {
    // From 1 on, for 136 years.
    (Instant::now().as_secs() as u32).saturating_add(1)
}

/// Switches the comparator on; if it was on, off before.
fn arm() {
    pac::POWER.pofcon().write(|w| w.set_pof(false));
    pac::POWER.pofcon().write(|w| {
        w.set_pof(true);
        w.set_threshold(Threshold::V21);
    });
}

/// The supply of this board.
#[derive(Clone, Copy)]
pub struct Monitor {
    _private: (),
}

impl Monitor {
    /// Asks for a warning below 2.1 V: flash can be written down to 1.7 V, and what was begun takes 85 ms at
    /// most (a page's erasure).
    pub fn start(_irq: impl Binding<CLOCK_POWER, InterruptHandler>) -> Self {
        arm();
        pac::POWER.intenset().write(|w| w.set_pofwarn(true));
        CLOCK_POWER::unpend();
        #[expect(
            unsafe_code,
            reason = "enabling an interrupt could break a critical section; there is none here"
        )]
        // SAFETY: no code relies on this interrupt being masked; its handlers are bound, as `_irq` proves.
        unsafe {
            CLOCK_POWER::enable();
        }
        Self { _private: () }
    }
}

/// Warnings since the start.
#[must_use]
pub fn warnings() -> u32 {
    WARNINGS.load(Ordering::Relaxed)
}

impl Supply for Monitor {
    fn is_low(&self) -> bool {
        let last = LAST.load(Ordering::Relaxed);
        if last == 0 {
            return false;
        }
        if seconds().saturating_sub(last) < RECOVERY_S {
            return true;
        }
        // The warning is an edge: when the supply falls, not while it is low. Switched on anew, the
        // comparator warns again.
        LAST.store(0, Ordering::Relaxed);
        arm();
        cortex_m::asm::delay(SETTLING_CYCLES);
        LAST.load(Ordering::Relaxed) != 0
    }
}
