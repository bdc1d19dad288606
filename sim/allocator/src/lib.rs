//! The allocator of the simulator: mimalloc, and where it has large blocks from.
//!
//! Every QUIC endpoint allocates a receive buffer of 3 MB (32 datagrams of 64 segments of 1,472 bytes) and
//! touches a few pages of it. mimalloc would place it in an arena that the system backs with pages of 2 MB,
//! and overwrite one that was in use before with zeros: thousands of drones in one process then hold all of
//! their buffers.

use std::ffi::{c_int, c_long};

pub use mimalloc::MiMalloc;

/// `mi_option_arena_max_object_size` of mimalloc 3: the largest block of an arena, in KiB.
const ARENA_MAX_OBJECT_SIZE: c_int = 45;
/// Blocks beyond this size are mapped, in KiB.
const LARGEST_IN_ARENA: c_long = 1024;

#[expect(unsafe_code, reason = "declares functions of mimalloc's C library")]
unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
}

/// Maps blocks of more than 1 MiB from now on, each on its own and in the system's small pages: what is not
/// touched takes no memory, and what is freed goes back at once. Costs a system call for each such block; for
/// processes that hold many sparsely used buffers.
#[expect(unsafe_code, reason = "calls a function of mimalloc's C library")]
pub fn map_large_blocks() {
    // SAFETY: the function takes any option and value, and stores a word. The allocator reads it for every
    // block that it takes from an arena, and stores options itself when it first reads them, on any thread.
    unsafe { mi_option_set(ARENA_MAX_OBJECT_SIZE, LARGEST_IN_ARENA) }
}
