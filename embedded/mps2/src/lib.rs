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
//! | `flash`, `machine::retained` | a flash that behaves like the nRF52840's; what outlives a reset |
//! | `edge` | the firmware's application |
//! | `random`, `options` | a seed from the command line in place of randomness; losses of power |
//! | `watchdog` | resets what hangs |
//! | `shell` | the bench shell |
#![no_std]

extern crate alloc;

mod clock;
#[cfg(feature = "edge")]
mod edge;
#[cfg(feature = "edge")]
#[path = "edge/flash.rs"]
mod flash;
mod machine;
#[cfg(feature = "edge")]
#[path = "edge/options.rs"]
mod options;
#[cfg(feature = "edge")]
#[path = "edge/random.rs"]
mod random;
#[cfg(feature = "bench")]
mod shell;
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

/// The edge role: the firmware's application.
///
/// # Panics
/// If called twice: there is one line to the gateway.
#[cfg(feature = "edge")]
pub fn edge() -> ! {
    start(|spawner| spawner.spawn(edge::task().expect("there is one")))
}

/// The bench shell, on the console.
///
/// # Panics
/// If called twice: there is one console.
#[cfg(feature = "bench")]
pub fn bench() -> ! {
    start(|spawner| spawner.spawn(shell::task().expect("there is one")))
}
