//! `sim`: thousands of Quiver drones in one process, with the real protocol code.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A million drones are some ten million small blocks: the system's allocator takes a fifth of the time of a virtual run, and
/// more memory for the same blocks.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    quiver_sim::main()
}
