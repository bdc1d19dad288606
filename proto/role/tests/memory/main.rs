//! How much a leader keeps in memory for each member. A test of its own, for nothing else may allocate beside it.

use std::alloc::System;
use std::time::Duration;

use cap::Cap;
use quiver_ainq::StrategyKind;

use self::roles::world;
use self::world::{Node, World};

#[path = "../roles"]
#[allow(dead_code, reason = "most of it is for the tests of what the roles do")]
mod roles {
    pub(crate) mod world;
}

/// The strategy that keeps more.
const STRATEGY: StrategyKind = StrategyKind::Tree;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// What the leader of a group of `n` has allocated, in bytes.
fn held(n: usize, restarted: bool) -> usize {
    let mut world = World::grouped(1, n);
    if restarted {
        world.crash(Node::Leader);
        world.start_leader();
    }
    // Long enough for what is kept a minute to be forgotten.
    world.run(Duration::from_secs(90));
    assert!(world.agree(0..n));
    let before = ALLOCATOR.allocated();
    world.leader = None;
    before - ALLOCATOR.allocated()
}

#[test]
#[expect(clippy::print_stdout, reason = "a measurement prints what it measured")]
fn a_leader_holds_less_than_a_kilobyte_per_member() {
    for restarted in [false, true] {
        // Tables grow by doubling: just below a power of two they are as full as those of a million members.
        let (few, many) = (held(250, restarted), held(1000, restarted));
        let each = (many - few) / 750;
        println!("{each} bytes per member, restarted: {restarted}");
        assert!(each < 1000, "{each} bytes per member, restarted: {restarted}");
    }
}
