//! The old leader comes back: to a group that has another leader, and without its memory.

use std::time::Duration;

use quiver_group::leader::Stance;
use quiver_group::{LeaderCommand, LeaderEvent};

use crate::world::{Node, World, name};

#[test]
fn the_old_leader_returns_steps_down_and_stands_by() {
    let mut world = World::grouped(1, 2, 5);
    world.stop(Node::Leader(0));
    world.run_until("all follow", |world| world.follow(1, 0..5));
    world.command_leader(1, LeaderCommand::Evict(name("edge-4")));
    let term = world.epoch(1).unwrap().term;
    world.start(Node::Leader(0));
    world.run_for(Duration::from_secs(120));
    assert_eq!(world.leading(), [1]);
    assert_eq!(world.epoch(1).unwrap().term, term, "nobody opened a term because of it");
    assert_eq!(world.held(0), world.epoch(1), "its roster is the new leader's");
    assert_eq!(world.status(0).unwrap().members, 4);
    assert!(world.follow(1, 0..4));
    // And it is a deputy like any other.
    world.stop(Node::Leader(1));
    world.run_until("all follow", |world| world.follow(0, 0..4));
    world.run_for(Duration::from_secs(60));
    assert_ne!(world.key(4), world.leader_key(0));
}

#[test]
fn a_leader_that_leads_steps_down_at_once_when_it_sees_a_higher_term() {
    let mut world = World::grouped(2, 2, 4);
    let edges: Vec<Node> = (0..4).map(Node::Edge).collect();
    // The old leader is only cut off, and goes on leading nobody.
    world.part(&[Node::Leader(0)], &edges);
    world.part(&[Node::Leader(0)], &[Node::Leader(1)]);
    world.run_until("all follow", |world| world.follow(1, 0..4));
    assert_eq!(world.leading(), [0, 1]);
    world.network.heal();
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.leading(), [1]);
    assert!(world.leader_events(0).iter().any(|event| matches!(event, LeaderEvent::SteppedDown { .. })));
    assert!(world.follow(1, 0..4));
    assert_eq!(world.held(0), world.epoch(1));
}

#[test]
fn a_leader_with_an_empty_disk_learns_the_newest_term_before_it_opens_one() {
    let mut world = World::grouped(3, 2, 4);
    let before = world.epoch(0).unwrap();
    // Its key is lost with the rest: the operator gives it a new token, of another ordinal, as the lost key has
    // its own until it is revoked. The deputy is gone, too.
    world.stop(Node::Leader(0));
    world.stop(Node::Leader(1));
    world.set_leader_records(0, Vec::new());
    let again = world.leader_token("leader-0-again", 2);
    world.leader_tokens[0] = again;
    world.start(Node::Leader(0));
    world.run_until("all are in again", |world| world.follow(0, 0..4));
    let after = world.epoch(0).unwrap();
    assert!(after.round() > before.round(), "{after} after {before}: members showed it where they are");
    // It opened one term, not one that nobody follows and then another.
    let opened = world.leader_events(0).iter().rev().filter(|event| {
        matches!(event, LeaderEvent::EpochActivated { kind: quiver_ainq::EpochKind::Open, .. })
    });
    assert_eq!(opened.count(), 2, "one before the loss, one after");
}

#[test]
fn a_leader_with_an_empty_disk_stands_by_if_somebody_leads() {
    let mut world = World::grouped(4, 2, 4);
    world.stop(Node::Leader(0));
    world.run_until("all follow", |world| world.follow(1, 0..4));
    let term = world.epoch(1).unwrap().term;
    world.set_leader_records(0, Vec::new());
    let again = world.leader_token("leader-0-again", 2);
    world.leader_tokens[0] = again;
    world.start(Node::Leader(0));
    world.run_for(Duration::from_secs(120));
    assert_eq!(world.leading(), [1]);
    assert_eq!(world.epoch(1).unwrap().term, term);
    assert_eq!(world.held(0), world.epoch(1));
    assert_eq!(world.joins(), 4);
}

#[test]
fn no_epoch_is_ever_used_for_two_points() {
    let mut world = World::grouped(5, 3, 3);
    for round in 0..4 {
        let Some(leader) = world.leading().first().copied() else { panic!("nobody leads in {round}") };
        world.stop(Node::Leader(leader));
        world.run_for(Duration::from_secs(20));
        world.start(Node::Leader(leader));
        world.run_for(Duration::from_secs(20));
    }
    let mut points = std::collections::BTreeMap::new();
    for packet in &world.recorded {
        if let quiver_message::Message::Rekey(rekey) = crate::world::decode(&world, packet) {
            let digest = rekey.header.digest(&world.deployment);
            let known = points.entry(rekey.header.core.epoch).or_insert(digest);
            assert_eq!(*known, digest, "two headers for {}", rekey.header.core.epoch);
        }
    }
    assert!(points.len() >= 5, "{points:?}");
    let leader = world.leading();
    assert_eq!(leader.len(), 1);
    assert!(world.follow(leader[0], 0..3));
    assert!(matches!(world.status((leader[0] + 1) % 3).unwrap().stance, Stance::StandingBy { .. }));
}
