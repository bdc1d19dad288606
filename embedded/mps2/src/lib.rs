//! QEMU's machine mps2-an386, a Cortex-M4F with the memory of an nRF52840, as a board: the firmware's
//! application as it runs on a real one, over emulated devices, and the bench shell. For tests and for
//! counting instructions; the machine has no source of randomness and protects nothing.
//!
//! UART 0 is the line to the gateway, UART 1 the console. A program that gives up ends QEMU with exit status
//! 1.
//!
//! | module | what it has |
//! |---|---|
//! | `machine` | registers, memory, interrupts, semihosting: all `unsafe` code |
//! | `clock` | time for embassy, and the count of instructions |
//! | `uart` | lines |
//! | `edge` | the program `mps2-edge`: the firmware's application |
//! | `edge::flash`, `machine::retained` | a flash that behaves like the nRF52840's; what outlives a reset |
//! | `edge::random`, `edge::options` | a seed from the command line in place of randomness; losses of power |
//! | `watchdog` | resets what hangs |
//! | `shell` | the program `mps2-bench`: the bench shell |
#![no_std]

extern crate alloc;

mod clock;
#[cfg(feature = "edge")]
pub mod edge;
#[allow(dead_code, reason = "each program uses some of it")]
mod machine;
#[cfg(feature = "bench")]
pub mod shell;
mod uart;
mod watchdog;

use embassy_executor::Spawner;
use embassy_executor::raw::Executor;
use panic_semihosting as _;
use static_cell::StaticCell;

/// Starts what every program needs, then the program's task.
fn start(task: impl FnOnce(Spawner)) -> ! {
    static EXECUTOR: StaticCell<Executor> = StaticCell::new();
    machine::start_heap();
    clock::start();
    watchdog::start();
    let executor = EXECUTOR.init(Executor::new(core::ptr::null_mut()));
    task(executor.spawner());
    machine::run(executor)
}
