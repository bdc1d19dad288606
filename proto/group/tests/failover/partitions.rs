//! Two leaders at once, and the merge.

use std::time::Duration;

use quiver_group::{EdgeEvent, LeaderCommand, LeaderEvent};
use quiver_machine::Via;
use quiver_message::Message;

use crate::world::{Node, Packet, SILENCE, World, decode, name};

/// Leader 0 with the even edges on one side, leader 1 with the odd ones on the other.
fn parted(seed: u64) -> World {
    let mut world = World::grouped(seed, 2, 8);
    let side = |parity: usize| {
        let edges = (0..8).filter(move |edge| edge % 2 == parity).map(Node::Edge);
        [Node::Leader(parity)].into_iter().chain(edges).collect::<Vec<_>>()
    };
    world.part(&side(0), &side(1));
    world.run_until("both sides have a leader", |world| {
        world.leading() == [0, 1] && world.follow(0, [0, 2, 4, 6]) && world.follow(1, [1, 3, 5, 7])
    });
    world
}

#[test]
fn both_sides_of_a_partition_are_served_and_the_higher_term_wins_on_merge() {
    let mut world = parted(1);
    let joins = world.joins();
    world.command_leader(0, LeaderCommand::Rekey);
    world.command_leader(1, LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(60));
    assert!(world.follow(0, [0, 2, 4, 6]) && world.follow(1, [1, 3, 5, 7]));
    assert_ne!(world.leader_key(0), world.leader_key(1));
    world.network.heal();
    world.run_until("one group again", |world| world.leading() == [1] && world.follow(1, 0..8));
    assert_eq!(world.joins(), joins, "everybody followed, nobody joined again");
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.leading(), [1]);
    assert!(world.follow(1, 0..8));
    assert_eq!(world.held(0), world.epoch(1));
}

#[test]
fn evictions_of_both_sides_are_honoured_after_the_merge() {
    let mut world = parted(2);
    // Each side evicts one of its own and one of the other side.
    world.command_leader(0, LeaderCommand::Evict(name("edge-0")));
    world.command_leader(0, LeaderCommand::Evict(name("edge-1")));
    world.command_leader(1, LeaderCommand::Evict(name("edge-3")));
    world.command_leader(1, LeaderCommand::Evict(name("edge-2")));
    world.run_for(Duration::from_secs(5));
    assert!(world.follow(1, [1]), "best effort: this side has not heard of it");
    world.network.heal();
    world.run_until("one group again", |world| world.leading() == [1] && world.follow(1, 4..8));
    world.run_for(Duration::from_secs(60));
    for out in 0..4 {
        assert_ne!(world.key(out), world.leader_key(1), "edge-{out} is still in");
    }
    assert_eq!(world.status(1).unwrap().members, 4);
    assert!(world.edge_events(1).contains(&EdgeEvent::Evicted));
    assert_eq!(world.held(0), world.epoch(1));
}

#[test]
fn who_joined_the_losing_side_joins_again() {
    let mut world = parted(3);
    let late = world.add_edge("late");
    // It reaches leader 0 only.
    world.part(&[Node::Edge(late)], &[Node::Leader(1)]);
    world.run_until("let in by leader 0", |world| world.follow(0, [late]));
    world.network.heal();
    world.run_until("one group again", |world| world.leading() == [1] && world.follow(1, 0..8));
    world.run_until("in again", |world| world.follow(1, [late]));
}

#[test]
fn leaders_that_cannot_reach_each_other_do_not_take_turns_for_ever() {
    let mut world = World::grouped(4, 2, 4);
    // The members reach both.
    world.part(&[Node::Leader(0)], &[Node::Leader(1)]);
    world.run_for(SILENCE * 100);
    let before = world.terms();
    world.run_for(SILENCE * 60);
    assert!(world.terms() - before <= 3, "{} terms in a minute or four", world.terms() - before);
    assert!(world.terms() < 20, "{}", world.terms());
    world.network.heal();
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.leading().len(), 1);
    let leader = world.leading()[0];
    assert!(world.follow(leader, 0..4));
}

#[test]
fn eviction_that_nothing_but_a_deputys_copy_knows_of_holds_against_a_leader_that_has_not_heard() {
    let mut world = World::grouped(5, 2, 4);
    world.part(&[Node::Leader(1)], &[0, 1, 2, 3].map(Node::Edge));
    world.part(&[Node::Leader(1)], &[Node::Leader(0)]);
    world.command_leader(0, LeaderCommand::Evict(name("edge-0")));
    world.run_for(Duration::from_millis(500));
    // Nor does the newest header say so any more.
    world.command_leader(0, LeaderCommand::Rekey);
    // One that comes later copies the roster. It heard no notice.
    world.part(&[Node::Leader(1)], &[Node::Leader(2)]);
    let token = world.leader_token("leader-2", 2);
    world.add_leader(token);
    world.run_until("it has a copy", |world| world.held(2) == world.epoch(0));
    world.stop(Node::Leader(0));
    world.network.heal();
    world.run_until("who has not heard leads", |world| world.leading() == [1] && world.follow(1, 1..4));
    world.run_for(SILENCE * 5);
    assert_eq!((world.leading(), world.status(1).unwrap().members), (vec![1], 3));
    let removed = |event: &&LeaderEvent| matches!(event, LeaderEvent::Removed { name: out, evicted: true, .. } if *out == name("edge-0"));
    assert_eq!(world.leader_events(1).iter().filter(removed).count(), 1);
    assert_eq!(world.held(2), world.epoch(1));
}

#[test]
fn parted_leaders_find_each_other_though_no_member_and_no_kgc_is_there() {
    let mut world = World::grouped(6, 2, 0);
    world.part(&[Node::Leader(0)], &[Node::Leader(1)]);
    world.run_until("both lead", |world| world.leading() == [0, 1]);
    world.stop(Node::Kgc);
    world.run_for(Duration::from_secs(120));
    world.network.heal();
    world.run_for(SILENCE * 2);
    assert_eq!(world.leading(), [1]);
}

#[test]
fn a_leader_that_sends_a_past_term_is_sent_the_newest_at_once_and_one_that_publishes_it_is_not() {
    let mut world = parted(7);
    let past = world.recorded.iter().rev().find_map(|packet| match decode(&world, packet) {
        Message::Rekey(rekey) if packet.from == Node::Leader(0) => Some(Message::Rekey(rekey)),
        _ => None,
    });
    let past = past.unwrap().encode(&world.deployment);
    world.network.heal();
    let soon = world.latency() + Duration::from_millis(1);
    let answers = |world: &mut World, via: Via| {
        let before = world.recorded.len();
        world.insert(Packet { from: Node::Leader(0), to: Node::Leader(1), via, bytes: past.clone() });
        world.run_for(soon);
        let answers = world.recorded[before..].iter().filter(|packet| {
            (packet.from, packet.to, packet.via) == (Node::Leader(1), Node::Leader(0), Via::Peer)
                && matches!(decode(world, packet), Message::Rekey(_))
        });
        answers.count()
    };
    assert_eq!(answers(&mut world, Via::Group), 0);
    assert_eq!(world.leading(), [0, 1]);
    assert_eq!(answers(&mut world, Via::Peer), 1);
    world.run_for(soon);
    assert_eq!(world.leading(), [1]);
}
