//! The allocator of the simulator.

use mimalloc::MiMalloc;
use peakmem_alloc::PeakMemAlloc;

/// A million drones are some ten million small blocks: the system's allocator takes a fifth of the time of a virtual run, and
/// more memory for the same blocks.
///
/// It counts the bytes that are held, for the experiments that measure memory: two atomic additions for each block.
#[global_allocator]
pub(crate) static ALLOCATOR: PeakMemAlloc<MiMalloc> = PeakMemAlloc::new(MiMalloc);
