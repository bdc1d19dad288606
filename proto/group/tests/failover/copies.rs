//! Two machines that began with one state: somebody copied a data directory.
//!
//! Each start draws its own salts, so even in one seat, one epoch and under one boot number they would seal
//! under different keys; and the leader, which takes no question of a lower number than before, has one of
//! them join again.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_group::{EdgeCommand, LeaderCommand, LeaderEvent};
use quiver_message::Message;

use crate::world::{Node, World, decode, name};

#[test]
fn copies_of_one_edge_never_seal_two_messages_under_one_key_and_nonce() {
    let mut world = World::grouped(51, 1, 3);
    world.stop(Node::Edge(0));
    let twin = world.copy_edge(0);
    world.start(Node::Edge(0));
    let copies = [0, twin];
    for round in 0..40 {
        world.run_for(Duration::from_secs(7));
        for edge in copies {
            for signed in [false, true] {
                let data = vec![round, edge as u8];
                world.command_edge(edge, EdgeCommand::Send { channel: name("c"), data, signed });
            }
        }
        world.command_leader(0, LeaderCommand::Rekey);
        if round % 10 == 9 {
            world.restart(Node::Edge(copies[usize::from(round / 10) % 2]));
        }
    }
    let mut spoken = [0, 0];
    // The inputs of the key besides the epoch's, and the nonce.
    let mut used = BTreeSet::new();
    // Gossip goes to many.
    let mut told = BTreeSet::new();
    for packet in &world.recorded {
        let Some(index) = copies.iter().position(|edge| packet.from == Node::Edge(*edge)) else { continue };
        if !told.insert(&packet.bytes) {
            continue;
        }
        if let Message::GroupMessage(message) = decode(&world, packet) {
            let frame = &message.frame;
            let fresh = used.insert((message.epoch, frame.slot, frame.boot_no, frame.salt, frame.counter));
            assert!(fresh, "{message:?} of edge {}", copies[index]);
            spoken[index] += 1;
        }
    }
    assert!(spoken.iter().all(|count| *count > 3), "both spoke: {spoken:?}");
    let joined =
        |event: &&LeaderEvent| matches!(event, LeaderEvent::Joined { name, .. } if name.as_str() == "edge-0");
    let joins = world.leader_events(0).iter().filter(joined).count();
    assert!(joins > 4, "they take the seat from each other: {joins}");
}
