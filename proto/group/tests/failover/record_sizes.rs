//! Records of a deputy and a leader do not grow with repeated messages, nor with the inventions of a member.

use std::time::Duration;

use quiver_ainq::{DroneKeypair, Role, SpareStatement};
use quiver_message::{Message, SparePublication};

use crate::world::{GROUP, Node, S, SILENCE, World, decode, name};

fn written(world: &World, leader: usize) -> usize {
    world.leader_records(leader).iter().map(|record| record.as_bytes().len()).sum()
}

#[test]
fn deputy_that_comes_back_a_hundred_times_does_not_write_the_group_a_hundred_times() {
    let mut world = World::grouped(1, 2, 20);
    let group = written(&world, 1);
    let records = world.leader_records(1).len();
    for _ in 0..100 {
        world.restart(Node::Leader(1));
        world.run_until("a copy is taken over", |world| world.held(1) == world.epoch(0));
        world.run_for(Duration::from_millis(200));
    }
    world.command_leader(0, quiver_group::LeaderCommand::Evict(name("edge-7")));
    world.run_for(SILENCE);
    assert_eq!((world.held(1), world.status(1).unwrap().members), (world.epoch(0), 19));
    let (written, records) = (written(&world, 1) - group, world.leader_records(1).len() - records);
    // The boot number each time, and little more; the roster alone takes some 6 KB.
    assert!(written < 100 * 200, "{written} bytes for a hundred sessions, {group} before");
    assert!(records < 100 * 4, "{records} records");
    // Its records are enough.
    world.stop(Node::Leader(0));
    world.run_until("the deputy leads", |world| world.leading() == [1]);
    world.run_until("all follow", |world| world.follow(1, (0..20).filter(|edge| *edge != 7)));
}

/// A spare statement of an edge, signed with the key that its file gives away.
fn statement(world: &mut World, keypair: &DroneKeypair<S>, slot: u32, q: u64) -> Vec<u8> {
    let pair = quiver_ainq::SparePair::<S>::generate(q, &mut world.rng);
    let spare: SpareStatement<S> = pair.statement(keypair, &world.deployment, &name(GROUP), &mut world.rng);
    Message::SparePublication(SparePublication { group: name(GROUP), slot, spare }).encode(&world.deployment)
}

#[test]
fn member_that_floods_signed_spare_points_makes_a_record_in_some_seconds() {
    let mut world = World::grouped(2, 2, 3);
    let slot = world.recorded.iter().rev().find_map(|packet| match decode(&world, packet) {
        Message::SparePublication(spare) if packet.from == Node::Edge(1) => Some(spare.slot),
        _ => None,
    });
    let slot = slot.unwrap();
    let own = world.edge(1).keypair().unwrap();
    let (public, secret) = (own.public().clone(), own.to_bytes());
    let keypair = DroneKeypair::<S>::restore(&world.deployment, public, &secret).unwrap();
    assert_eq!(keypair.public().identity.role, Role::Edge);
    for leader in [0, 1] {
        let before = world.leader_records(leader).len();
        let began = world.time();
        for n in 0..500 {
            let bytes = statement(&mut world, &keypair, slot, 100 + 1000 * leader as u64 + n);
            world.inject(Node::Edge(1), Node::Leader(leader), &bytes);
            world.run_for(Duration::from_millis(40));
        }
        let took = (world.time() - began).as_secs();
        let records = world.leader_records(leader).len() - before;
        // One in five seconds, and three at once; the deputy also writes down what the leader tells it.
        let bound = 2 * (took / 5 + 4) as usize;
        assert!(records >= 3 && records <= bound, "leader {leader}: {records} records in {took} s");
        assert!(world.blamed_by(Node::Leader(leader)).is_empty());
    }
}
