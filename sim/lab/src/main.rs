//! `lab`: reproduces published evaluations and compares Quiver with other systems.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use peakmem_alloc::PeakMemAlloc;

/// Counts the bytes that are held, for the experiments that measure memory: two atomic additions for each
/// block.
#[global_allocator]
static ALLOCATOR: PeakMemAlloc<MiMalloc> = PeakMemAlloc::new(MiMalloc);

fn main() -> ExitCode {
    quiver_lab::main(&ALLOCATOR)
}
