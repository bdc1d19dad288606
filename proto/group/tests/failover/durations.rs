//! Durations, in the world's own time.

use std::time::Duration;

use crate::world::{Node, SILENCE, World};

#[test]
#[ignore = "a thousand drones take a while"]
fn a_thousand_drones_hold_the_new_terms_key_soon_after_the_silence() {
    let mut world = World::new(1, 2);
    world.set_latency(Duration::from_millis(20));
    world.recording = false;
    world.run_until("leader 0 leads", |world| world.leading() == [0]);
    for index in 0..1000 {
        world.add_edge(&format!("edge-{index}"));
    }
    world.run_until("all edges joined", |world| (0..1000).all(|edge| world.synced(edge)));
    world.run_for(Duration::from_secs(10));
    let joins = world.joins();
    world.stop(Node::Leader(0));
    let lost = world.time();
    world.run_until("the deputy leads", |world| world.leading() == [1]);
    let opened = world.time();
    world.run_until("all follow", |world| world.follow(1, 0..1000));
    let (silence, opening, following) = (SILENCE, opened - lost, world.time() - opened);
    // Two messages' time: the entry's, and no more. The rest is the silence and the deputy's turn.
    assert!(following <= world.latency() * 2, "{following:?}");
    assert!(opening <= silence * 3 / 2 + world.latency() * 4, "{opening:?}");
    assert_eq!(world.joins(), joins);
}
