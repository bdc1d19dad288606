//! Benchmarks on the console.

use core::fmt::Write;
use core::ops::ControlFlow;
use core::time::Duration;

use embassy_time::Instant;
use quiver_bench::{About, BenchTarget};
use quiver_firmware::Hooks;

use super::BoardHooks;
use crate::{board, memory};

/// Runs a line of the console that begins with `bench`.
pub(super) async fn run(hooks: &mut BoardHooks, line: &str, out: &mut dyn Write) {
    let about = About { board: board::NAME, mcu: "nRF52840" };
    // Errors are in the output.
    let _ = quiver_bench::run(line, &about, &mut HookedTarget(hooks), out).await;
}

/// The host of the bench shell on this board: time to 30.5 µs, and no counter of instructions.
struct HookedTarget<'a>(&'a mut BoardHooks);

impl BenchTarget for HookedTarget<'_> {
    fn now(&mut self) -> Duration {
        Duration::from_micros(Instant::now().as_micros())
    }

    fn free_heap(&mut self) -> Option<usize> {
        let memory = memory::figures();
        let free = memory.heap_size?.saturating_sub(memory.heap?);
        usize::try_from(free).ok()
    }

    async fn pause(&mut self) -> ControlFlow<()> {
        self.0.alive();
        embassy_futures::yield_now().await;
        ControlFlow::Continue(())
    }
}
