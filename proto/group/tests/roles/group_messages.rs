//! Group messages.

use std::time::Duration;

use quiver_ainq::Name;
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand, LeaderEvent, MessageOrigin};
use quiver_machine::Route;
use quiver_message::Message;

use quiver_testbed::matching;

use crate::world::{Node, Packet, World, decode};

fn heard(world: &World, edge: usize) -> Vec<(Vec<u8>, MessageOrigin)> {
    let events = world.edge_events(edge).iter();
    events
        .filter_map(matching!(EdgeEvent::Message { data, source, .. } => (data.to_vec(), source.clone())))
        .collect()
}

fn say(world: &mut World, edge: usize, data: &[u8], signed: bool) {
    let channel = Name::new("chat").unwrap();
    world.command_edge(edge, EdgeCommand::Send { channel, data: data.to_vec(), signed });
    world.run_for(Duration::from_millis(100));
}

#[test]
fn every_member_hears_what_a_member_says_once() {
    let mut world = World::grouped(1, 5);
    say(&mut world, 3, b"unsigned", false);
    say(&mut world, 3, b"signed", true);
    for edge in [0, 1, 2, 4] {
        let messages = heard(&world, edge);
        assert_eq!(messages.len(), 2);
        assert!(matches!(messages[0], (_, MessageOrigin::Unauthenticated { .. })));
        let (data, MessageOrigin::Signed { name, .. }) = &messages[1] else {
            panic!("not signed: {messages:?}")
        };
        assert_eq!((data.as_slice(), name.as_str()), (b"signed".as_slice(), "edge-3"));
    }
    let at_leader = world.leader_events().iter().filter(|event| matches!(event, LeaderEvent::Message { .. }));
    assert_eq!(at_leader.count(), 2);
}

#[test]
fn a_leaders_word_is_signed() {
    let mut world = World::grouped(2, 3);
    world.command_leader(LeaderCommand::Send { channel: Name::new("orders").unwrap(), data: b"go".to_vec() });
    world.run_for(Duration::from_millis(100));
    for edge in 0..3 {
        let messages = heard(&world, edge);
        assert!(
            matches!(&messages[..], [(data, MessageOrigin::Signed { name, .. })] if data == b"go" && name.as_str() == "leader")
        );
    }
}

#[test]
fn replayed_messages_are_dropped_also_across_epochs() {
    let mut world = World::grouped(3, 3);
    say(&mut world, 0, b"once", true);
    let bytes = world.newest(|f| f.from == Node::Edge(0) && f.to == Node::Edge(1)).bytes;
    for _ in 0..3 {
        world.inject(Node::Leader, Node::Edge(1), &bytes);
        world.run_for(Duration::from_millis(10));
    }
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(5));
    world.inject(Node::Leader, Node::Edge(1), &bytes);
    world.run_for(Duration::from_millis(10));
    assert_eq!(heard(&world, 1).len(), 1);
}

#[test]
fn messages_under_way_during_a_renewal_are_still_heard() {
    let mut world = World::grouped(4, 3);
    let channel = Name::new("chat").unwrap();
    // Said before the renewal, delivered after it.
    world.lose_where(|packet| packet.from == Node::Edge(0) && packet.to == Node::Edge(1));
    world.command_edge(0, EdgeCommand::Send { channel, data: b"late".to_vec(), signed: false });
    let late = world.newest(|f| f.from == Node::Edge(0) && f.to == Node::Edge(1));
    world.tamper = None;
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_millis(500));
    world.inject(Node::Leader, Node::Edge(1), &late.bytes);
    world.run_for(Duration::from_millis(10));
    assert_eq!(heard(&world, 1).len(), 1);
}

/// Lets edge 0 say something that does not reach edge 1, and gives it.
fn said_but_not_delivered(world: &mut World) -> Vec<u8> {
    world.lose_where(|packet| packet.from == Node::Edge(0));
    let channel = Name::new("chat").unwrap();
    world.command_edge(0, EdgeCommand::Send { channel, data: b"late".to_vec(), signed: false });
    world.tamper = None;
    world.newest(|f| f.from == Node::Edge(0)).bytes
}

#[test]
fn messages_of_the_epoch_before_are_not_heard_once_the_overlap_is_over() {
    let mut world = World::grouped(7, 3);
    let late = said_but_not_delivered(&mut world);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(3));
    world.inject(Node::Leader, Node::Edge(1), &late);
    world.run_for(Duration::from_millis(10));
    assert!(heard(&world, 1).is_empty());
}

#[test]
fn no_overlap_reaches_across_a_missed_epoch() {
    let mut world = World::grouped(8, 4);
    let late = said_but_not_delivered(&mut world);
    // A member is evicted, which edge 1 does not receive; the epoch after does not mention it.
    world.disconnect_all(Node::Edge(1));
    world.command_leader(LeaderCommand::Evict(Name::new("edge-3").unwrap()));
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_millis(10));
    world.connect(Node::Edge(1), Node::Leader, Route::Leader);
    world.run_for(Duration::from_millis(10));
    assert!(world.agree(0..3));
    world.inject(Node::Leader, Node::Edge(1), &late);
    world.run_for(Duration::from_millis(10));
    assert!(heard(&world, 1).is_empty());
}

#[test]
fn an_evicted_drone_cannot_speak_in_the_overlap() {
    let mut world = World::grouped(5, 3);
    let channel = Name::new("chat").unwrap();
    world.isolated.insert(Node::Edge(2));
    world.command_leader(LeaderCommand::Evict(Name::new("edge-2").unwrap()));
    world.run_for(Duration::from_millis(10));
    world.command_edge(2, EdgeCommand::Send { channel, data: b"still me".to_vec(), signed: false });
    let bytes = world.recorded.iter().rev().find(|f| f.from == Node::Edge(2)).unwrap().bytes.clone();
    for edge in 0..2 {
        world.inject(Node::Leader, Node::Edge(edge), &bytes);
    }
    world.run_for(Duration::from_millis(100));
    assert!(heard(&world, 0).is_empty() && heard(&world, 1).is_empty());
}

#[test]
fn a_member_that_starts_or_resumes_hears_nothing_twice() {
    for resumed in [false, true] {
        let mut world = World::grouped(33, 3);
        say(&mut world, 0, b"once", true);
        say(&mut world, 0, b"unsigned", false);
        let channel = Name::new("orders").unwrap();
        world.command_leader(LeaderCommand::Send { channel, data: b"fire".to_vec() });
        world.run_for(Duration::from_millis(100));
        let to_one = world.recorded.iter().filter(|packet| packet.to == Node::Edge(1));
        let is_message = |packet: &&Packet| matches!(decode(&world, packet), Message::GroupMessage(_));
        let said: Vec<_> = to_one.filter(is_message).cloned().collect();
        assert!(said.len() >= 3 && heard(&world, 1).len() == 3);
        let play = |world: &mut World| {
            for packet in &said {
                world.inject(Node::Leader, Node::Edge(1), &packet.bytes);
                world.run_for(Duration::from_millis(10));
            }
        };
        if resumed {
            world.resume(Node::Edge(1));
        } else {
            world.restart_edge(1);
        }
        play(&mut world);
        world.run_until("synced", |world| world.synced(1));
        play(&mut world);
        world.run_for(Duration::from_secs(1));
        play(&mut world);
        assert_eq!(heard(&world, 1).len(), 3, "resumed: {resumed}");
        // Messages sent since then are received.
        say(&mut world, 0, b"again", true);
        assert_eq!(heard(&world, 1).len(), 4, "resumed: {resumed}");
    }
}

#[test]
fn too_long_a_message_and_an_outsiders_are_not_sent() {
    let mut world = World::grouped(6, 2);
    say(&mut world, 0, &vec![0; 65_537], false);
    say(&mut world, 0, &vec![0; 65_536], false);
    assert_eq!(heard(&world, 1).len(), 1);
    world.command_edge(0, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(5));
    say(&mut world, 0, b"from outside", false);
    assert_eq!(heard(&world, 1).len(), 1);
    let failed = world.edge_events(0).iter().filter(|event| matches!(event, EdgeEvent::SendFailed(_)));
    assert_eq!(failed.count(), 2);
}
