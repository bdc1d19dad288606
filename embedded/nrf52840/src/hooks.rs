//! Watchdog, LEDs, button and reset, as the node wants them.

#[cfg(feature = "bench")]
mod bench;

use core::sync::atomic::{AtomicU8, Ordering};

use cortex_m::peripheral::SCB;
use embassy_nrf::wdt::{self, HaltConfig, SleepConfig, Watchdog, WatchdogHandle};
use embassy_nrf::{Peri, peripherals};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::signal::Signal;
use embassy_time::{Duration, Ticker, Timer};
use quiver_firmware::{FaultCounters, Hooks, IndicatorState, Memory};

use crate::board::Panel;
use crate::memory;
use crate::panel::{Hold, Show, TICK_MS};
use crate::{serial, supply};

/// The watchdog's patience in ticks of 32,768 Hz: 8 s.
const PATIENCE: u32 = 8 * 32_768;

static SHOWN: AtomicU8 = AtomicU8::new(0);
static WIPE: Signal<CriticalSectionRawMutex, ()> = Signal::new();

const SHOWS: [Show; 5] = [Show::Idle, Show::Searching, Show::Busy, Show::Good, Show::Bad];

/// Sets what the LEDs display.
pub fn show(what: Show) {
    let at = SHOWS.iter().position(|show| *show == what).unwrap_or_default();
    SHOWN.store(at as u8, Ordering::Relaxed);
}

/// Starts the watchdog, or takes over one that runs on from before a reset by the program. `None` if that one
/// was set otherwise: then nobody feeds it, and the board starts anew within its time.
#[must_use]
pub fn watchdog(wdt: Peri<'static, peripherals::WDT>) -> Option<WatchdogHandle> {
    let mut config = wdt::Config::default();
    config.timeout_ticks = PATIENCE;
    config.action_during_sleep = SleepConfig::Run;
    config.action_during_debug_halt = HaltConfig::Pause;
    Watchdog::try_new(wdt, config).ok().map(|(_, [handle])| handle)
}

/// Runs LEDs and button for ever.
pub async fn panel(mut panel: Panel) -> ! {
    let mut ticker = Ticker::every(Duration::from_millis(TICK_MS));
    let mut hold = Hold::default();
    for tick in 0u32.. {
        if hold.tick(panel.button.is_low()) {
            WIPE.signal(());
        }
        let show = SHOWS.get(usize::from(SHOWN.load(Ordering::Relaxed))).copied().unwrap_or(Show::Bad);
        let lights = show.lights(tick, hold.is_held());
        panel.good.set(lights.good);
        panel.bad.set(lights.bad);
        ticker.next().await;
    }
    // After six years without a reset.
    restart()
}

/// Starts the board anew.
pub fn restart() -> ! {
    SCB::sys_reset()
}

/// The node's hooks on this board.
pub struct BoardHooks {
    watchdog: Option<WatchdogHandle>,
}

impl BoardHooks {
    /// Makes the hooks with this watchdog to feed.
    #[must_use]
    pub const fn new(watchdog: Option<WatchdogHandle>) -> Self {
        Self { watchdog }
    }
}

impl Hooks for BoardHooks {
    fn alive(&mut self) {
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.pet();
        }
    }

    fn indicate(&mut self, state: IndicatorState) {
        show(match state {
            IndicatorState::Unprovisioned => Show::Idle,
            IndicatorState::NoGateway | IndicatorState::NoLeader => Show::Searching,
            IndicatorState::Enrolling | IndicatorState::Joining => Show::Busy,
            IndicatorState::Member => Show::Good,
            _ => Show::Bad,
        });
    }

    fn memory(&self) -> Memory {
        memory::figures()
    }

    fn fault_counters(&self) -> FaultCounters {
        FaultCounters { supply_warnings: supply::warnings(), overruns: serial::overruns() }
    }

    #[cfg(feature = "bench")]
    async fn bench(&mut self, line: &str, out: &mut dyn core::fmt::Write) {
        bench::run(self, line, out).await;
    }

    async fn wipe_button(&mut self) {
        WIPE.wait().await;
    }

    async fn reset(&mut self) -> ! {
        // Time for the output on a port to leave.
        Timer::after_millis(100).await;
        restart()
    }
}
