//! Messages of a leader, and their numbers.

use std::time::Duration;

use quiver_ainq::{EpochPart, Name, StrategyKind};
use quiver_group::{Leader, LeaderCommand, LeaderEvent};
use quiver_machine::{Destination, Input, Machine};
use quiver_message::Message;
use quiver_testbed::Outputs;

use crate::world::{Node, S, World, decode};
use crate::wraps::questions;
use crate::{is_delta, pushed_path};

/// Gives a leader an order and counts what it sends before it comes to rest.
fn transmissions(world: &mut World, command: LeaderCommand) -> Vec<(Destination, usize)> {
    let now = world.now();
    let mut rng = world.rng.clone();
    let leader = world.node_mut::<Leader<S>>(Node::Leader).machine_mut().unwrap();
    leader.handle_input(now, Input::Command(command), &mut rng);
    Outputs::of(leader).effects.sent.into_iter().map(|(to, payload)| (to, payload.len())).collect()
}

#[test]
fn a_new_key_is_one_message_to_all_however_many_they_are() {
    for n in [5, 40] {
        let mut world = World::grouped(1, n);
        let sent = transmissions(&mut world, LeaderCommand::Rekey);
        assert!(matches!(sent[..], [(Destination::Group, _)]), "{n} members: {sent:?}");
    }
}

#[test]
fn an_eviction_tells_the_evicted_and_the_group_and_nobody_else() {
    let mut world = World::grouped(2, 20);
    let sent = transmissions(&mut world, LeaderCommand::Evict(Name::new("edge-7").unwrap()));
    let [(Destination::Peer(_), _), (Destination::Group, _), (Destination::Group, delta)] = sent[..] else {
        panic!("{sent:?}");
    };
    assert!(delta < 1200, "{delta} bytes");
}

#[test]
fn a_restarted_leader_opens_flat_and_gives_everybody_a_path() {
    let mut world = World::grouped(3, 20);
    world.stop(Node::Leader);
    let mark = world.recorded.len();
    world.start_leader();
    world.run_for(Duration::from_secs(1));
    assert!(world.agree(0..20));
    for edge in 0..20 {
        let to_it = world.recorded[mark..].iter().filter(|packet| packet.to == Node::Edge(edge));
        let paths = to_it.clone().filter(|packet| pushed_path(&world, packet).is_some());
        assert_eq!(paths.count(), 1, "edge {edge}");
        // Nothing authenticates the question, so that the answer is a re-key as any, without a tag.
        let opening = |message| matches!(message, Message::Rekey(rekey) if matches!(rekey.part, Some(EpochPart::Entry(_))));
        assert_eq!(to_it.filter(|packet| opening(decode(&world, packet))).count(), 1, "edge {edge}");
    }
    // So the next delta is of use to everybody, and nobody has to ask.
    let mark = world.recorded.len();
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_millis(10));
    assert!(world.agree(0..20));
    assert!((0..20).all(|edge| questions(&world, edge, mark) == 0));
}

#[test]
fn members_follow_a_leader_from_one_strategy_to_the_other_and_back() {
    let mut world = World::grouped(6, 6);
    for strategy in [StrategyKind::Flat, StrategyKind::Tree, StrategyKind::Flat] {
        world.stop(Node::Leader);
        world.strategy = strategy;
        world.start_leader();
        world.run_for(Duration::from_secs(1));
        assert!(world.agree(0..6), "{strategy:?}, opened");
        let mark = world.recorded.len();
        world.command_leader(LeaderCommand::Rekey);
        world.run_for(Duration::from_secs(1));
        assert!(world.agree(0..6), "{strategy:?}, renewed");
        let deltas = world.recorded[mark..].iter().filter(|packet| is_delta(&world, packet)).count();
        assert_eq!(deltas > 0, strategy == StrategyKind::Tree);
    }
}

#[test]
fn more_paths_than_one_slice_has_are_pushed_all_the_same() {
    let mut world = World::grouped(4, 300);
    world.restart_leader();
    let mark = world.recorded.len();
    world.run_for(Duration::from_secs(1));
    assert!(world.agree(0..300));
    let pushed = world.recorded[mark..].iter().filter(|packet| pushed_path(&world, packet).is_some());
    assert_eq!(pushed.count(), 300);
}

#[test]
fn who_does_not_acknowledge_is_sent_the_wraps_again() {
    let mut world = World::grouped(5, 4);
    world.isolated.insert(Node::Edge(2));
    world.command_leader(LeaderCommand::Rekey);
    let epoch = world.leader_epoch();
    world.run_for(Duration::from_secs(1));
    assert!(!world.leader_events().contains(&LeaderEvent::Delivered { epoch, members: 4 }));
    world.isolated.clear();
    let mark = world.recorded.len();
    world.run_for(Duration::from_secs(6));
    assert!(world.agree(0..4));
    assert!(world.leader_events().contains(&LeaderEvent::Delivered { epoch, members: 4 }));
    let again: Vec<Node> = world.recorded[mark..]
        .iter()
        .filter(|packet| is_delta(&world, packet))
        .map(|packet| packet.to)
        .collect();
    assert_eq!(again, [Node::Edge(2)]);
}
