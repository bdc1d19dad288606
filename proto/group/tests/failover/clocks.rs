//! Clocks that disagree: who stands by takes over from nobody because of its own clock.

use std::time::Duration;

use quiver_group::leader::ClockWitness;
use quiver_group::{LeaderCommand, LeaderEvent};

use crate::world::{Node, SILENCE, World};

/// Longer than a group key is valid.
const AHEAD: u64 = 14_400;
/// Long enough for any deputy to lose its patience.
const LONG: Duration = Duration::from_secs(SILENCE.as_secs() * 20);

fn took_over(world: &World, leader: usize) -> bool {
    world.leader_events(leader).iter().any(|event| matches!(event, LeaderEvent::TookOver { .. }))
}

#[test]
fn deputy_whose_clock_is_ahead_leaves_a_healthy_leader_alone_and_says_why() {
    let mut world = World::grouped(41, 2, 3);
    let deputy = Node::Leader(1);
    world.set_ahead(deputy, AHEAD);
    for _ in 0..3 {
        world.command_leader(0, LeaderCommand::Rekey);
        world.run_for(LONG);
    }
    assert!(!took_over(&world, 1));
    assert_eq!(world.leading(), [0]);
    assert!(world.follow(0, 0..3));
    assert_eq!(world.held(1), world.epoch(0), "its copy of the group is kept up to date");
    let doubt = world.leader(1).clock_doubt(world.clock_of(deputy).unix).unwrap();
    assert!(matches!(doubt.witness, ClockWitness::Deputised(_)), "{doubt:?}");
    // And started anew, it still does.
    world.restart(deputy);
    world.run_for(LONG);
    assert!(!took_over(&world, 1) && world.leading() == [0]);
}

#[test]
fn deputy_whose_clock_is_ahead_takes_over_from_a_leader_that_is_gone() {
    let mut world = World::grouped(42, 2, 3);
    world.set_ahead(Node::Leader(1), AHEAD);
    world.command_leader(0, LeaderCommand::Rekey);
    world.run_for(LONG);
    world.stop(Node::Leader(0));
    world.run_until("the members follow", |world| world.follow(1, 0..3));
}

#[test]
fn deputy_whose_clock_others_confirm_takes_over_from_a_leader_whose_keys_have_run_out() {
    let mut world = World::grouped(43, 2, 3);
    for node in world.ids().into_iter().filter(|node| *node != Node::Leader(0)) {
        world.set_ahead(node, AHEAD);
    }
    world.command_leader(1, LeaderCommand::ClockConfirmed(true));
    world.command_leader(0, LeaderCommand::Rekey);
    world.run_until("the members follow", |world| world.follow(1, 0..3) && world.leading() == [1]);
    // Withdrawing its confirmation makes it as before.
    world.command_leader(1, LeaderCommand::ClockConfirmed(false));
    world.run_for(LONG);
    assert_eq!(world.leading(), [1]);
}
