//! A member that lost its key and waits for the next epoch: a leader that wraps keys for every member cannot
//! give it back.

use std::time::Duration;

use quiver_group::EdgeEvent;
use quiver_message::Message;

use crate::world::{Node, S, World, decode};

#[test]
fn a_restarted_member_that_hears_no_epoch_asks_again_and_blames_nobody_meanwhile() {
    let mut world = World::grouped(1, 3);
    world.stop(Node::Edge(0));
    let deployment = world.deployment.clone();
    world.lose_where(move |packet| {
        let message = Message::<S>::decode(&deployment, &packet.bytes).unwrap();
        packet.to == Node::Edge(0) && matches!(message, Message::Rekey(_))
    });
    let (mark, events) = (world.recorded.len(), world.edge_events(0).len());
    let questions = |world: &World| {
        let sent = world.recorded[mark..].iter().filter(|packet| packet.from == Node::Edge(0));
        sent.filter(|packet| matches!(decode(world, packet), Message::CatchUpRequest(_))).count()
    };
    let activated = |world: &World| {
        let events = world.edge_events(0)[events..].iter();
        events.filter(|event| matches!(event, EdgeEvent::KeyActivated { .. })).count()
    };
    // It is told that the epoch it held is current. Of that one it has no key, and another one is to come.
    world.start_edge(0);
    world.run_for(Duration::from_secs(11));
    assert_eq!((questions(&world), activated(&world), world.synced(0)), (1, 0, false));
    assert!(world.blamed_by_edge(0).is_empty(), "{:?}", world.blamed_by_edge(0));
    // Its second question is answered with that epoch.
    world.run_for(Duration::from_secs(2));
    assert_eq!((questions(&world), activated(&world), world.synced(0)), (2, 1, true));
    assert!(world.agree(0..3));
}
