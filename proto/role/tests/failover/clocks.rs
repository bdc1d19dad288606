//! Clocks that disagree: who stands by takes over from nobody because of its own clock.

use std::time::Duration;

use quiver_role::leader::ClockWitness;
use quiver_role::{LeaderCommand, LeaderEvent};

use crate::world::{Node, SILENCE, World};

/// Longer than a group key is valid.
const AHEAD: u64 = 14_400;
/// Long enough for any deputy to lose its patience.
const LONG: Duration = Duration::from_secs(SILENCE.as_secs() * 20);

fn took_over(world: &World, leader: usize) -> bool {
    world.leaders[leader].events.iter().any(|event| matches!(event, LeaderEvent::TookOver { .. }))
}

#[test]
fn deputy_whose_clock_is_ahead_leaves_a_healthy_leader_alone_and_says_why() {
    let mut world = World::grouped(41, 2, 3);
    let deputy = Node::Leader(1);
    world.ahead.insert(deputy, AHEAD);
    for _ in 0..3 {
        world.lead(0, LeaderCommand::Rekey);
        world.run(LONG);
    }
    assert!(!took_over(&world, 1));
    assert_eq!(world.leading(), [0]);
    assert!(world.follow(0, 0..3));
    assert_eq!(world.held(1), world.epoch(0), "its copy of the group is kept up to date");
    let doubt = world.leaders[1].machine.as_ref().unwrap().clock_doubt(world.now_at(deputy).unix).unwrap();
    assert!(matches!(doubt.witness, ClockWitness::Deputised(_)), "{doubt:?}");
    // And started anew, it still does.
    world.crash(deputy);
    world.start(deputy);
    world.run(LONG);
    assert!(!took_over(&world, 1) && world.leading() == [0]);
}

#[test]
fn deputy_whose_clock_is_ahead_takes_over_from_a_leader_that_is_gone() {
    let mut world = World::grouped(42, 2, 3);
    world.ahead.insert(Node::Leader(1), AHEAD);
    world.lead(0, LeaderCommand::Rekey);
    world.run(LONG);
    world.crash(Node::Leader(0));
    world.run_until("the members follow", |world| world.follow(1, 0..3));
}

#[test]
fn deputy_whose_clock_others_confirm_takes_over_from_a_leader_whose_keys_have_run_out() {
    let mut world = World::grouped(43, 2, 3);
    for node in world.nodes().into_iter().filter(|node| *node != Node::Leader(0)) {
        world.ahead.insert(node, AHEAD);
    }
    world.lead(1, LeaderCommand::ClockConfirmed(true));
    world.lead(0, LeaderCommand::Rekey);
    world.run_until("the members follow", |world| world.follow(1, 0..3) && world.leading() == [1]);
    // When its confirmation is withdrawn it is as before.
    world.lead(1, LeaderCommand::ClockConfirmed(false));
    world.run(LONG);
    assert_eq!(world.leading(), [1]);
}
