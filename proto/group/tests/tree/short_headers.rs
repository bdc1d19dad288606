//! Broadcasts with short headers: who sends them, and what false ones cost.

use std::time::Duration;

use quiver_ainq::{EpochPart, Error};
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand};
use quiver_machine::Offence;
use quiver_message::{Message, Rekey, ShortRekey};

use crate::world::{Node, Packet, S, World, decode, name};
use crate::wraps::questions;
use crate::{is_epoch, withhold};

const A_MOMENT: Duration = Duration::from_millis(10);

/// The short re-key with these bytes, if it is one.
fn short(world: &World, packet: &Packet) -> Option<ShortRekey<S>> {
    match Message::<S>::decode(&world.deployment, &packet.bytes) {
        Ok(Message::ShortRekey(short)) => Some(short),
        _ => None,
    }
}

/// The short re-key of the next epoch, which an edge is not given.
fn next_short(world: &mut World, edge: usize) -> ShortRekey<S> {
    let held = withhold(world, edge, is_epoch);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(A_MOMENT);
    let packet = held.borrow_mut().remove(0);
    short(world, &packet).expect("it goes to everybody")
}

/// Publishes a short re-key as an edge that is no leader.
fn publish(world: &mut World, short: &ShortRekey<S>) {
    let bytes = Message::ShortRekey(short.clone()).encode(&world.deployment);
    world.publish(Node::Edge(1), &bytes);
}

#[test]
fn everybody_is_sent_short_headers_and_single_drones_whole_ones() {
    let mut world = World::grouped(1, 6);
    let mark = world.recorded.len();
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(A_MOMENT);
    let expiry: Vec<_> = world.recorded[mark..].iter().filter(|packet| packet.to == Node::Edge(0)).collect();
    assert_eq!(expiry.len(), 1);
    assert!(short(&world, expiry[0]).is_some_and(|short| short.header.roster_hash.is_none()));
    assert!(expiry[0].bytes.len() <= 250, "{} bytes", expiry[0].bytes.len());
    let mark = world.recorded.len();
    world.command_edge(5, EdgeCommand::Leave);
    world.add_edge("late");
    world.run_for(Duration::from_secs(3));
    assert!(world.agree([0, 1, 2, 3, 4, 6]));
    let of = |edge: usize| -> Vec<&Packet> {
        let sent = world.recorded[mark..].iter().filter(move |packet| packet.to == Node::Edge(edge));
        sent.filter(|packet| is_epoch(&decode(&world, packet))).collect()
    };
    let leave = of(0);
    assert!(!leave.is_empty() && leave.iter().all(|packet| short(&world, packet).is_some()));
    // The leaver is told by a whole header, and the newcomer by that of its welcome.
    assert!(of(5).iter().any(|packet| short(&world, packet).is_none()));
    let welcomes = world.recorded[mark..].iter().filter(|packet| packet.to == Node::Edge(6));
    assert!(welcomes.into_iter().any(|packet| matches!(decode(&world, packet), Message::Welcome(_))));
    // A member that does not acknowledge is sent the whole header.
    let mark = world.recorded.len();
    let _lost = withhold(&mut world, 2, |message| matches!(message, Message::ShortRekey(_)));
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(10));
    assert!(world.agree([0, 1, 2, 3, 4, 6]));
    let sent = world.recorded[mark..].iter().filter(|packet| packet.to == Node::Edge(2));
    assert!(sent.into_iter().any(|packet| matches!(
        Message::<S>::decode(&world.deployment, &packet.bytes),
        Ok(Message::Rekey(Rekey { part: Some(EpochPart::Delta(_)), .. }))
    )));
}

#[test]
fn false_short_headers_on_the_epoch_held_cost_a_question_and_no_membership() {
    let mut world = World::grouped(2, 4);
    let genuine = next_short(&mut world, 0);
    let held = world.edge(0).status();
    // A leader that answers nothing: what is false must not be made good by its answer.
    world.isolated.insert(Node::Leader);
    let mark = world.recorded.len();
    for number in 0..100_u8 {
        let mut forged = genuine.clone();
        match number % 4 {
            0 => forged.header.nonce[0] ^= number + 1,
            1 => forged.header.removed = (0..u32::from(number)).collect(),
            2 => forged.header.valid_until += u64::from(number),
            _ => forged.header.roster_hash = Some([number; 32]),
        }
        publish(&mut world, &forged);
        world.run_for(A_MOMENT);
    }
    let blamed = world.blamed_by_edge(0);
    assert_eq!(blamed.len(), 100);
    assert!(blamed.iter().all(|offence| **offence == Offence::Protocol(Error::InvalidSignature)));
    assert_eq!(questions(&world, 0, mark), 1, "in a second");
    let after = world.edge(0).status();
    assert_eq!((after.epoch, after.slot, after.digest), (held.epoch, held.slot, held.digest));
    // The genuine one is taken from whoever sends it.
    publish(&mut world, &genuine);
    world.run_for(A_MOMENT);
    assert!(world.agree(0..4));
    let ends = |event: &&EdgeEvent| matches!(event, EdgeEvent::Evicted | EdgeEvent::Left);
    assert_eq!(world.edge_events(0).iter().filter(ends).count(), 0);
}

#[test]
fn short_headers_on_epochs_that_are_not_held_cost_a_question_in_a_while() {
    let mut world = World::grouped(3, 4);
    let genuine = next_short(&mut world, 0);
    let held = world.edge(0).status();
    world.isolated.insert(Node::Leader);
    let mark = world.recorded.len();
    for number in 1..=100_u8 {
        let mut forged = genuine.clone();
        match number % 4 {
            0 => forged.header.epoch.counter += u64::from(number),
            1 => forged.header.epoch.term += 1 << 16,
            2 => forged.header.prev[3] ^= number,
            _ => forged.header.epoch.term -= 1 << 16,
        }
        publish(&mut world, &forged);
        world.run_for(A_MOMENT);
    }
    // Those of the past are stale; nobody is blamed for an epoch that may well be.
    let blamed = world.blamed_by_edge(0);
    assert_eq!(blamed, [&Offence::Protocol(Error::Stale); 25]);
    assert_eq!(questions(&world, 0, mark), 1);
    assert_eq!(world.edge(0).status().epoch, held.epoch);
    publish(&mut world, &genuine);
    world.run_for(A_MOMENT);
    assert!(world.agree(0..4));
}

#[test]
fn a_short_header_of_the_epoch_held_is_acknowledged_to_its_leader_alone() {
    let mut world = World::grouped(4, 4);
    let genuine = next_short(&mut world, 0);
    world.tamper = None;
    publish(&mut world, &genuine);
    world.run_for(Duration::from_secs(1));
    assert!(world.agree(0..4));
    let acks = |world: &World, mark: usize| {
        let sent = world.recorded[mark..].iter();
        sent.filter(|packet| matches!(decode(world, packet), Message::Ack(_))).count()
    };
    let mark = world.recorded.len();
    (0..5).for_each(|_| publish(&mut world, &genuine));
    world.run_for(A_MOMENT);
    assert_eq!(acks(&world, mark), 0);
    let bytes = Message::ShortRekey(genuine.clone()).encode(&world.deployment);
    world.inject(Node::Leader, Node::Edge(0), &bytes);
    world.run_for(A_MOMENT);
    assert_eq!(acks(&world, mark), 1);
    // Another one for the epoch held, which its leader did not sign, is no proof of anything.
    let mut forged = genuine;
    forged.header.nonce[0] ^= 1;
    publish(&mut world, &forged);
    world.run_for(Duration::from_secs(1));
    assert!(world.agree(0..4));
    assert!(world.blamed_by_edge(0).is_empty(), "{:?}", world.blamed_by_edge(0));
}

#[test]
fn who_is_no_member_takes_nothing_from_a_short_header() {
    let mut world = World::grouped(5, 3);
    let genuine = next_short(&mut world, 0);
    world.tamper = None;
    world.isolated.insert(Node::Leader);
    let late = world.add_edge("late");
    world.run_for(Duration::from_secs(1));
    let bytes = Message::ShortRekey(genuine).encode(&world.deployment);
    world.inject(Node::Leader, Node::Edge(late), &bytes);
    // Nor does a leader, which is sent whole headers.
    world.inject(Node::Edge(1), Node::Leader, &bytes);
    world.run_for(A_MOMENT);
    assert_eq!(world.edge(late).status().epoch, None);
    world.isolated.clear();
    world.run_until("all follow", |world| world.agree(0..3) && world.synced(late));
    let channel = name("chat");
    world.command_edge(late, EdgeCommand::Send { channel, data: b"here".to_vec(), signed: true });
    world.run_for(Duration::from_secs(1));
    assert!(world.blamed_by_leader().is_empty(), "{:?}", world.blamed_by_leader());
}
