//! A leader that takes a member for another, as a relay can make it do (docs/protocol.md, 21.1).

use std::time::Duration;

use quiver_group::LeaderCommand;
use quiver_message::Message;

use crate::world::{Node, World, decode};

#[test]
fn member_that_is_sent_the_entry_of_another_asks_for_its_own() {
    let mut world = World::grouped(6, 2);
    world.lose_where(|packet| packet.to == Node::Edge(0));
    world.command_leader(LeaderCommand::Rekey);
    let of_another = world.recorded.iter().rev().find(|packet| packet.to == Node::Edge(1)).unwrap().clone();
    assert!(matches!(decode(&world, &of_another), Message::Rekey(_)));
    world.tamper = None;
    let mark = world.recorded.len();
    world.inject(Node::Leader, Node::Edge(0), &of_another.bytes);
    world.run_for(Duration::from_millis(500));
    let sent = world.recorded[mark..].iter().filter(|packet| packet.from == Node::Edge(0));
    assert_eq!(sent.filter(|packet| matches!(decode(&world, packet), Message::CatchUpRequest(_))).count(), 1);
    assert!(world.agree(0..2), "it has the answer long before the leader sends its entry again");
}
