//! The allocator of the simulator.

use quiver_allocator::MiMalloc;

/// A million drones are some ten million small blocks: the system's allocator takes a fifth of the time of a
/// virtual run, and more memory for the same blocks.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
