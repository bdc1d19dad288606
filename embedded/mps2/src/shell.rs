//! The bench shell on the console: a line in, its benchmark's output out, and a line `ready`.

use alloc::string::String;
use core::ops::ControlFlow;
use core::time::Duration;

use embassy_futures::yield_now;
use embassy_time::{Duration as Wait, with_timeout};
use embedded_io_async::{Read, Write};
use quiver_bench::{About, BenchTarget, Peaks};

use crate::machine::Interrupt;
use crate::uart::{self, Uart};
use crate::{clock, machine, watchdog};

/// The longest line that is understood.
const LINE: usize = 128;
const ABOUT: About<'static> = About { board: "mps2-an386", mcu: "Cortex-M4 (QEMU)" };

/// Nanoseconds in a tick: as many instructions under `-icount shift=0`, because each takes one.
const TICK_NANOSECONDS: u64 = 1_000_000_000 / machine::TICK_HZ as u64;

/// Memory in use when the measurement began, in bytes.
#[derive(Default)]
struct Mps2Host {
    heap: usize,
    stack: usize,
}

impl BenchTarget for Mps2Host {
    fn now(&mut self) -> Duration {
        Duration::from_nanos(nanoseconds())
    }

    /// True under `-icount shift=0` alone.
    fn instructions(&mut self) -> Option<u64> {
        Some(nanoseconds())
    }

    fn free_heap(&mut self) -> Option<usize> {
        Some(machine::heap().1)
    }

    fn watch_memory(&mut self) {
        machine::watch_heap();
        machine::watch_stack();
        (self.heap, self.stack) = (machine::heap().0, machine::stack_used());
    }

    fn peaks(&mut self) -> Peaks {
        let heap = machine::heap().2.saturating_sub(self.heap);
        let stack = machine::stack_peak().saturating_sub(self.stack);
        Peaks { heap: Some(heap), stack: Some(stack) }
    }

    async fn pause(&mut self) -> ControlFlow<()> {
        watchdog::feed();
        yield_now().await;
        ControlFlow::Continue(())
    }
}

/// Nanoseconds since the start, in steps of 40.
fn nanoseconds() -> u64 {
    critical_section::with(clock::ticks) * TICK_NANOSECONDS
}

/// Runs a line and writes its output, or its error.
pub(crate) async fn run(line: &str, out: &mut dyn core::fmt::Write) {
    let _ = quiver_bench::run(line, &ABOUT, &mut Mps2Host::default(), out).await;
}

/// Runs the bench shell, on the console.
///
/// # Panics
/// If called twice: there is one console.
pub fn start() -> ! {
    crate::start(|spawner| spawner.spawn(task().expect("there is one")))
}

#[embassy_executor::task]
async fn task() {
    let mut console = Uart::start(&uart::CONSOLE, &[Interrupt::Uart1Received, Interrupt::Uart1Sent]);
    loop {
        say(&mut console, "ready\n").await;
        let line = line(&mut console).await;
        let mut out = String::new();
        run(&line, &mut out).await;
        say(&mut console, &out).await;
    }
}

async fn say(console: &mut Uart, text: &str) {
    // A UART that cannot fail.
    let Ok(()) = console.write_all(text.as_bytes()).await;
}

/// The next line that is not empty; of one that is too long, the beginning.
async fn line(console: &mut Uart) -> String {
    let mut line = String::with_capacity(LINE);
    loop {
        let mut byte = [0];
        // The watchdog is for what hangs, not for who has nothing to say.
        while with_timeout(Wait::from_secs(1), console.read(&mut byte)).await.is_err() {
            watchdog::feed();
        }
        match byte[0] {
            b'\n' | b'\r' if line.is_empty() => {}
            b'\n' | b'\r' => return line,
            byte if line.len() < LINE && byte.is_ascii() => line.push(byte.into()),
            _ => {}
        }
    }
}
