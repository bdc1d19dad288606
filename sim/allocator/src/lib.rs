//! The allocator of the simulator: mimalloc, and where it has large blocks from.
//!
//! Every QUIC endpoint allocates a receive buffer of 3 MB (32 datagrams of 64 segments of 1,472 bytes) and
//! touches a few pages of it. mimalloc would place it in an arena that the system backs with pages of 2 MB,
//! and overwrite one that was in use before with zeros: thousands of drones in one process then hold all of
//! their buffers. Connections have buffers of 8 KiB of which most is never touched, too, some twelve of them for
//! each drone.

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

/// Takes the system's small pages for all memory from now on, where there is a choice: what is not touched takes
/// none. In pages of 2 MB a process of thousands of connections holds a third more.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "sets an attribute of the process")]
pub fn use_small_pages() {
    // SAFETY: the call takes four integers and no pointer, and changes only how memory is paged. If the system
    // refuses, the pages stay as they are.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

/// Other systems have no such choice.
#[cfg(not(target_os = "linux"))]
pub fn use_small_pages() {}
