//! Connected peers that are no members: their publications and questions are answered never, or seldom.

use std::time::Duration;

use quiver_enrolment::KgcCommand;
use quiver_group::LeaderCommand;
use quiver_machine::Misdeed;
use quiver_message::{CatchUpRequest, Message, Rekey, RevocationQuery};

use super::hostile::forge_request;
use crate::world::{Node, S, World, decode};

/// Number of messages of this kind since so many had been sent.
fn sent_since(world: &World, before: usize, kind: impl Fn(&Message<S>) -> bool) -> usize {
    let decoded = |bytes: &[u8]| Message::<S>::decode(&world.deployment, bytes);
    world.recorded[before..].iter().filter(|f| decoded(&f.bytes).is_ok_and(|message| kind(&message))).count()
}

/// A group all of whose members hold a revocation list.
fn with_revocations(seed: u64, members: usize) -> World {
    let mut world = World::grouped(seed, members);
    world.command_kgc(KgcCommand::RevokeDrones(vec![quiver_ainq::Revoked::unknown([77; 16])]));
    world.run_for(Duration::from_secs(120));
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(5));
    world
}

#[test]
fn revocation_query_published_to_the_group_is_answered_by_nobody() {
    let mut world = with_revocations(31, 6);
    let query =
        Message::<S>::RevocationQuery(RevocationQuery { number: 0, max_len: 0 }).encode(&world.deployment);
    let before = world.recorded.len();
    for _ in 0..10 {
        world.publish(Node::Edge(0), &query);
    }
    world.run_for(Duration::ZERO);
    assert_eq!(sent_since(&world, before, |_| true), 0);
}

#[test]
fn revocation_list_is_sent_to_a_peer_that_asks_for_it_again_and_again_only_seldom() {
    let mut world = with_revocations(32, 2);
    let query =
        Message::<S>::RevocationQuery(RevocationQuery { number: 0, max_len: 0 }).encode(&world.deployment);
    for to in [Node::Leader, Node::Kgc, Node::Edge(1)] {
        let before = world.recorded.len();
        for _ in 0..100 {
            let from = if to == Node::Edge(1) { Node::Leader } else { Node::Edge(0) };
            world.inject(from, to, &query);
        }
        world.run_for(Duration::ZERO);
        let lists = sent_since(&world, before, |message| matches!(message, Message::RevocationList(_)));
        assert!(lists <= 4, "{lists} from {to:?}");
        assert_eq!(lists > 0, to != Node::Edge(1), "a leader and a KGC answer, edges are not asked: {to:?}");
    }
}

#[test]
fn known_epoch_published_to_the_group_is_acknowledged_by_nobody() {
    let mut world = World::grouped(33, 6);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(5));
    let rekey =
        |f: &&crate::world::Packet| f.from == Node::Leader && matches!(decode(&world, f), Message::Rekey(_));
    let Some(newest) = world.recorded.iter().rev().find(rekey) else {
        panic!("an epoch was distributed");
    };
    let Message::Rekey(newest) = decode(&world, newest) else { unreachable!() };
    let bare = Message::<S>::Rekey(Rekey::new(newest.header, None)).encode(&world.deployment);
    world.run_for(Duration::from_secs(5));
    let before = world.recorded.len();
    for _ in 0..10 {
        world.publish(Node::Edge(0), &bare);
    }
    world.run_for(Duration::ZERO);
    assert_eq!(sent_since(&world, before, |_| true), 0);
    // The leader itself gets its acknowledgement.
    world.inject(Node::Leader, Node::Edge(1), &bare);
    world.run_for(Duration::ZERO);
    assert_eq!(sent_since(&world, before, |message| matches!(message, Message::Ack(_))), 1);
}

#[test]
fn new_epoch_that_came_by_the_group_is_acknowledged() {
    let mut world = World::grouped(34, 4);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    assert!(world.agree(0..4));
    let before = world.recorded.len();
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    assert_eq!(sent_since(&world, before, |message| matches!(message, Message::Ack(_))), 4);
}

#[test]
fn questions_that_nothing_authenticates_are_answered_seldom_and_without_a_tag() {
    let mut world = World::grouped(35, 3);
    for opening_is_newest in [false, true] {
        if opening_is_newest {
            // A term that was just opened: its opening is the newest epoch.
            world.restart_leader();
            world.run_for(Duration::from_secs(120));
        }
        let before = world.recorded.len();
        for number in 0..200_u8 {
            let group = quiver_ainq::Name::new(crate::world::GROUP).unwrap();
            let question =
                CatchUpRequest { group, slot: 1, number: [number; 16], held: [0; 32], tag: [0; 32] };
            let question = Message::<S>::CatchUpRequest(question).encode(&world.deployment);
            world.inject(Node::Edge(0), Node::Leader, &question);
        }
        world.run_for(Duration::ZERO);
        assert_eq!(sent_since(&world, before, |message| matches!(message, Message::CatchUpReply(_))), 0);
        let answers = world.recorded[before..].iter().filter(|f| f.from == Node::Leader).count();
        assert!((1..=8).contains(&answers), "{answers}");
    }
    // Members are answered all the same.
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(60));
    assert!(world.agree(0..3));
}

#[test]
fn forged_join_is_reported_to_the_driver_as_a_forgery() {
    let mut world = World::grouped(36, 2);
    forge_request(&mut world);
    world.run_for(Duration::from_secs(1));
    assert!(world.penalized.contains(&(Node::Leader, Node::Edge(1), Misdeed::Forgery)));
}

#[test]
fn nobody_is_penalised_for_what_it_relayed() {
    let mut world = World::grouped(37, 3);
    let garbage = vec![0xff; 100];
    for _ in 0..100 {
        world.publish(Node::Edge(0), &garbage);
    }
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.penalized, []);
    for _ in 0..100 {
        world.inject(Node::Edge(0), Node::Leader, &garbage);
    }
    world.run_for(Duration::from_secs(1));
    assert!(world.penalized.contains(&(Node::Leader, Node::Edge(0), Misdeed::Garbage)));
}
