//! Replicas of a deputy, and their times.

use std::time::Duration;

use quiver_group::leader::Stance;
use quiver_group::{EdgeCommand, LeaderCommand, LeaderEvent};
use quiver_message::Message;

use quiver_testbed::matching;

use crate::world::{GROUP, Node, S, World, decode, name};

#[test]
fn deputy_holds_the_roster_of_every_epoch_shortly_after_it_began() {
    let mut world = World::grouped(1, 2, 6);
    world.command_leader(0, LeaderCommand::Rekey);
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.held(1), world.epoch(0));
    world.command_edge(2, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(2));
    world.add_edge("late");
    world.run_for(Duration::from_secs(8));
    assert_eq!(world.held(1), world.epoch(0));
    assert_eq!(world.status(1).unwrap().members, 6);
    let members = |leader: usize| {
        let machine = world.leader(leader);
        machine.members().map(|(slot, name)| (slot, name.clone())).collect::<Vec<_>>()
    };
    assert_eq!(members(0), members(1));
    assert_eq!(world.status(0).unwrap().deputies, 1);
    assert!(world.blamed_by(Node::Leader(0)).is_empty() && world.blamed_by(Node::Leader(1)).is_empty());
}

#[test]
fn an_eviction_is_reported_as_replicated_once_a_deputy_has_it_on_its_disk() {
    let mut world = World::grouped(2, 2, 3);
    let replicated = |world: &World| {
        world.leader_events(0).iter().find_map(matching!(
            LeaderEvent::Replicated { epoch, names, deputy } => (*epoch, names.clone(), deputy.clone())
        ))
    };
    world.part(&[Node::Leader(0)], &[Node::Leader(1)]);
    world.command_leader(0, LeaderCommand::Evict(name("edge-1")));
    let epoch = world.epoch(0).unwrap();
    world.run_for(Duration::from_secs(1));
    assert_eq!(replicated(&world), None, "no deputy has heard of it");
    world.network.heal();
    world.run_for(Duration::from_secs(3));
    let expected = (epoch, vec![name("edge-1")], Some(name("leader-1")));
    assert_eq!(replicated(&world), Some(expected));
    // Reported evictions are on the disk: a deputy that restarts from it alone keeps the drone out.
    world.stop(Node::Leader(0));
    world.restart(Node::Leader(1));
    world.run_until("the deputy leads", |world| world.leading() == [1]);
    world.run_for(Duration::from_secs(60));
    assert!(world.follow(1, [0, 2]));
    assert_ne!(world.key(1), world.leader_key(1));
}

#[test]
fn a_deputy_that_restarts_goes_on_from_its_disk_and_catches_up() {
    let mut world = World::grouped(3, 2, 4);
    let held = world.held(1);
    world.stop(Node::Leader(1));
    world.run_for(Duration::from_secs(20));
    world.command_leader(0, LeaderCommand::Evict(name("edge-0")));
    world.start(Node::Leader(1));
    assert_eq!(world.held(1), held);
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.held(1), world.epoch(0));
    assert_eq!(world.leading(), [0]);
    assert_eq!(world.status(1).unwrap().members, 3);
}

#[test]
fn a_checkpoint_of_a_deputy_says_what_its_log_says() {
    let mut world = World::grouped(4, 2, 5);
    world.command_leader(0, LeaderCommand::Evict(name("edge-4")));
    world.run_for(Duration::from_secs(2));
    let machine = world.leader(1);
    let last = world.leader_records(1).last().unwrap().clone();
    let checkpoint = machine.checkpoint().into_iter().chain([last]);
    let restored = quiver_group::Leader::<S>::new(world.leader_config(1), checkpoint).unwrap();
    let log =
        quiver_group::Leader::<S>::new(world.leader_config(1), world.leader_records(1).to_vec()).unwrap();
    assert_eq!(restored.status(), log.status());
    assert_eq!(restored.status().members, 4);
}

#[test]
fn a_large_group_travels_in_chunks() {
    let mut world = World::new(5, 1);
    world.run_until("leader 0 leads", |world| world.leading() == [0]);
    for index in 0..20 {
        world.add_edge(&format!("edge-{index}"));
    }
    world.run_until("all edges joined", |world| (0..20).all(|edge| world.synced(edge)));
    // A deputy that comes late fetches everything.
    let token = world.leader_token("leader-1", 1);
    world.add_leader(token);
    world.run_until("up to date", |world| world.held(1) == world.epoch(0));
    assert_eq!(world.status(1).unwrap().members, 20);
    assert!(matches!(world.status(1).unwrap().stance, Stance::StandingBy { leader: Some(leader), .. }
        if leader == name("leader-0")));
}

#[test]
fn who_is_no_leader_of_the_group_is_told_nothing() {
    let mut world = World::grouped(6, 2, 3);
    let stranger = world.leader_token_of("other", "bravo", 7);
    let outsider = world.add_leader(stranger);
    world.run_for(Duration::from_secs(30));
    let told = |packet: &crate::world::Packet| {
        packet.to == Node::Leader(outsider) && matches!(decode(&world, packet), Message::Replica(_))
    };
    assert!(!world.recorded.iter().any(told));
    assert_eq!(world.status(outsider).unwrap().members, 0);
    assert_eq!(world.leading(), [0]);
    // Nor is anything secret in what the right deputy is told: it cannot read the group's traffic.
    assert_eq!(world.leader_key(1), None);
    assert_eq!(GROUP, "alpha");
}
