//! Memory of a receiver that hostile members and strangers flood.

#[path = "datagrams/swarm.rs"]
#[expect(dead_code, reason = "the other tests' members; few are needed here")]
mod swarm;

use cap::Cap;
use quiver_datagram::Config;

use crate::swarm::Swarm;

#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// A hostile member announces itself from every slot with ever new starts, and a stranger floods the rest.
#[test]
fn a_board_takes_no_more_than_64_kilobytes_whatever_comes() {
    let config = Config { manifest_memory: 0, ..Config::board() };
    let mut swarm = Swarm::new(2, config);
    let mut hostile = Swarm::new(2, config);
    hostile.nodes[1].signs = false;
    let before = ALLOCATOR.allocated();
    let (mut most, mut bytes) = (0, 0);
    for round in 0..6_000_u32 {
        hostile.nodes[1].slot = 2 + round % 4_000;
        hostile.nodes[1].boot_no = 1 + round;
        hostile.open(1, None);
        hostile.telemetry(1, &[7; 200]);
        // Its own carrier is not what bounds it.
        hostile.now += std::time::Duration::from_secs(1);
        hostile.nodes[1].datagrams.handle_timeout(hostile.now);
        hostile.telemetry(1, &[7; 200]);
        let datagrams = hostile.take(1);
        bytes += datagrams.iter().map(Vec::len).sum::<usize>();
        for datagram in &datagrams {
            swarm.deliver(0, datagram);
            let mut of_another_epoch = datagram.clone();
            of_another_epoch[0] ^= 2;
            swarm.deliver(0, &of_another_epoch);
        }
        swarm.nodes[0].inbox = Vec::new();
        swarm.nodes[0].impostors = Vec::new();
        if round % 1_000 == 999 {
            swarm.rekey([0], false);
            hostile.epoch = swarm.epoch;
        }
        drop(datagrams);
        most = most.max(ALLOCATOR.allocated().saturating_sub(before));
    }
    assert!(bytes > 1_000_000, "{bytes} bytes");
    let counters = swarm.nodes[0].datagrams.counters();
    assert!(counters.too_many_senders > 100 && counters.overflowed > 100, "{counters:?}");
    // With the hostile member's own machine, which lives here too.
    assert!(most < 64 * 1_024, "{most} bytes");
}
