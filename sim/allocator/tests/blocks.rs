//! Blocks that are hardly touched take hardly any memory, however often they are allocated.
#![cfg(target_os = "linux")]

use quiver_allocator::{MiMalloc, map_large_blocks};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The receive buffer of a QUIC endpoint.
const BUFFER: usize = 32 * 64 * 1472;
const BUFFERS: usize = 64;

/// Memory that the process holds, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[test]
fn untouched_pages_of_large_blocks_take_no_memory() {
    map_large_blocks();
    let before = resident();
    // Freed blocks are allocated again.
    for round in 1..=3 {
        let mut buffers = vec![vec![0_u8; 0]; BUFFERS];
        for buffer in &mut buffers {
            *buffer = vec![0; BUFFER];
            // A datagram in two of 32 places.
            buffer[0] = round;
            buffer[BUFFER / 2] = round;
        }
        let grown = resident().saturating_sub(before);
        assert!(grown < BUFFERS * BUFFER / 16, "round {round}: {grown} bytes");
        assert!(buffers.iter().all(|buffer| buffer[1] == 0));
    }
}
