//! Leaves, one at a time and in masses.

use std::time::Duration;

use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand, LeaderEvent};

use quiver_testbed::matching;

use crate::questions;
use crate::world::World;

#[test]
fn who_is_out_takes_no_notice_of_what_follows() {
    let mut world = World::grouped(1, 5);
    world.command_edge(2, EdgeCommand::Leave);
    world.command_leader(LeaderCommand::Evict(quiver_ainq::Name::new("edge-3").unwrap()));
    world.run_for(Duration::from_secs(2));
    assert!(world.edge_events(2).contains(&EdgeEvent::Left));
    assert!(world.edge_events(3).contains(&EdgeEvent::Evicted));
    let mark = world.recorded.len();
    let heard = [2, 3].map(|edge| world.edge_events(edge).len());
    for _ in 0..5 {
        world.command_leader(LeaderCommand::Rekey);
        world.run_for(Duration::from_millis(10));
    }
    assert!(world.agree([0, 1, 4]));
    for (edge, heard) in [2, 3].into_iter().zip(heard) {
        assert_eq!(world.edge_events(edge).len(), heard, "{:?}", world.edge_events(edge));
        assert_eq!((world.key(edge), questions(&world, edge, mark)), (None, 0));
    }
}

#[test]
fn a_mass_departure_takes_one_epoch() {
    const LEAVERS: usize = 1_030;
    let mut world = World::grouped(2, LEAVERS + 4);
    let before = world.leader_epoch().counter;
    for edge in 4..LEAVERS + 4 {
        world.command_edge(edge, EdgeCommand::Leave);
    }
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.leader().status().members, 4);
    assert!(world.agree(0..4));
    let removals = world.leader_events().iter().filter_map(
        matching!(LeaderEvent::EpochActivated { epoch, removed, .. } if epoch.counter > before => *removed),
    );
    assert_eq!(removals.collect::<Vec<_>>(), [LEAVERS]);
    assert!((4..LEAVERS + 4).all(|edge| world.edge_events(edge).contains(&EdgeEvent::Left)));
}
