//! A deputy dies between any two outputs, while it copies the group and while it takes over.

use std::time::Duration;

use quiver_group::LeaderCommand;

use quiver_testbed::matching;

use crate::world::{Node, World, name};

/// Members join, one is evicted, the leader is lost for good; the deputy dies after `outputs` outputs and
/// comes back. Returns whether it died.
fn life(outputs: u32) -> bool {
    let mut world = World::new(u64::from(outputs), 2);
    world.crash_after(Node::Leader(1), outputs);
    let mut died = false;
    for second in 0..60 {
        world.run_for(Duration::from_secs(1));
        if !world.alive(Node::Leader(1)) && !died {
            died = true;
            world.start(Node::Leader(1));
        }
        match second {
            5 => (0..4).for_each(|index| assert_eq!(world.add_edge(&format!("edge-{index}")), index)),
            14 => world.command_leader(0, LeaderCommand::Rekey),
            16 => world.command_leader(0, LeaderCommand::Evict(name("edge-3"))),
            22 => world.stop(Node::Leader(0)),
            _ => {}
        }
    }
    world.spare(Node::Leader(1));
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.leading(), [1], "after {outputs} outputs");
    assert!(world.follow(1, 0..3), "after {outputs} outputs");
    assert_ne!(world.key(3), world.leader_key(1), "after {outputs} outputs the evicted drone is back");
    for edge in world.edge_nodes() {
        let epochs = edge
            .events
            .iter()
            .filter_map(matching!(quiver_group::EdgeEvent::KeyActivated { epoch, .. } => *epoch));
        assert!(epochs.collect::<Vec<_>>().is_sorted(), "an epoch went back after {outputs} outputs");
    }
    died
}

#[test]
fn a_deputy_may_die_between_any_two_outputs() {
    let mut outputs = 0;
    while life(outputs) {
        outputs += 1;
    }
    assert!(outputs > 50, "it lived too quietly to prove anything: {outputs}");
}
