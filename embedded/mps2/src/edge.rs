//! The edge role: what this machine has, handed to the firmware's application.

mod flash;
mod options;
mod random;

use quiver_firmware::{About, Board, Hooks, IndicatorState, Memory, ResetCause, SerialLine};

use self::flash::Flash;
use self::options::EmulationOptions;
use self::random::Random;
use crate::machine::Interrupt;
use crate::machine::retained::{StartCause, retained};
use crate::uart::{self, ReceiveBuffer, Uart, UartState};
use crate::{machine, watchdog};

/// The line to the gateway.
pub(crate) static LINK: UartState = {
    static RECEIVED: ReceiveBuffer = ReceiveBuffer::new();
    UartState::new(machine::uart::<0>, &RECEIVED)
};

/// Hooks of this machine. It has no LEDs and no button.
struct Mps2;

impl Hooks for Mps2 {
    fn alive(&mut self) {
        watchdog::feed();
    }

    fn indicate(&mut self, _state: IndicatorState) {}

    fn memory(&self) -> Memory {
        let (used, free, peak) = machine::heap();
        let bytes = |bytes| u32::try_from(bytes).ok();
        Memory {
            heap: bytes(used),
            heap_peak: bytes(peak),
            heap_size: bytes(used + free),
            stack_peak: bytes(machine::stack_peak()),
            stack_size: bytes(machine::stack_size()),
        }
    }

    #[cfg(feature = "bench")]
    async fn bench(&mut self, line: &str, out: &mut dyn core::fmt::Write) {
        crate::shell::run(line, out).await;
    }

    async fn reset(&mut self) -> ! {
        retained().reset(StartCause::Asked)
    }
}

/// Runs the edge role.
///
/// # Panics
/// If called twice: there is one line to the gateway.
pub fn start() -> ! {
    crate::start(|spawner| spawner.spawn(task().expect("there is one")))
}

#[embassy_executor::task]
async fn task() {
    let mut words = [0; 512];
    let options = EmulationOptions::parse(machine::arguments(&mut words));
    let (boots, cause) = retained().start();
    let reset = match cause {
        StartCause::Power => ResetCause::Power,
        StartCause::Asked => ResetCause::Software,
        StartCause::Watchdog => ResetCause::Watchdog,
    };
    let rng = Random::new(&options, boots);
    let link = Uart::start(&LINK, &[Interrupt::Uart0Received, Interrupt::Uart0Sent]);
    let console = Uart::start(&uart::CONSOLE, &[Interrupt::Uart1Received, Interrupt::Uart1Sent]);
    let about = About { name: "mps2-an386", mcu: "Cortex-M4 (QEMU)", clock_hz: machine::TICK_HZ, reset };
    let flash = Flash::new(&options);
    quiver_firmware::run(Board { link: SerialLine::new(link), console, flash, rng, hooks: Mps2, about })
        .await;
}
