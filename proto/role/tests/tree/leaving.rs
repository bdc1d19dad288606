//! Who leaves, alone and in masses.

use std::time::Duration;

use quiver_role::{EdgeCommand, EdgeEvent, LeaderCommand, LeaderEvent};

use crate::questions;
use crate::world::World;

#[test]
fn who_is_out_takes_no_notice_of_what_follows() {
    let mut world = World::grouped(1, 5);
    world.command(2, EdgeCommand::Leave);
    world.lead(LeaderCommand::Evict(quiver_ainq::Name::new("edge-3").unwrap()));
    world.run(Duration::from_secs(2));
    assert!(world.edges[2].events.contains(&EdgeEvent::Left));
    assert!(world.edges[3].events.contains(&EdgeEvent::Evicted));
    let mark = world.recorded.len();
    let heard = [2, 3].map(|edge| world.edges[edge].events.len());
    for _ in 0..5 {
        world.lead(LeaderCommand::Rekey);
        world.run(Duration::from_millis(10));
    }
    assert!(world.agree([0, 1, 4]));
    for (edge, heard) in [2, 3].into_iter().zip(heard) {
        assert_eq!(world.edges[edge].events.len(), heard, "{:?}", world.edges[edge].events);
        assert_eq!((world.key(edge), questions(&world, edge, mark)), (None, 0));
    }
}

#[test]
fn a_mass_departure_takes_several_epochs_that_follow_at_once() {
    const LEAVERS: usize = 1_030;
    let mut world = World::grouped(2, LEAVERS + 4);
    let before = world.leader_epoch().counter;
    for edge in 4..LEAVERS + 4 {
        world.command(edge, EdgeCommand::Leave);
    }
    world.run(Duration::from_secs(1));
    assert_eq!(world.leader.as_ref().unwrap().status().members, 4);
    assert!(world.agree(0..4));
    let removals = world.leader_events.iter().filter_map(|event| match event {
        LeaderEvent::EpochActivated { epoch, removed, .. } if epoch.counter > before => Some(*removed),
        _ => None,
    });
    assert_eq!(removals.collect::<Vec<_>>(), [1024, 6]);
    assert!((4..LEAVERS + 4).all(|edge| world.edges[edge].events.contains(&EdgeEvent::Left)));
}
