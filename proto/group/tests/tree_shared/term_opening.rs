//! A term opens by one broadcast, and by paths for those who miss it.

use std::time::Duration;

use quiver_ainq::{EpochKind, EpochPart, Error};
use quiver_group::{EdgeCommand, LeaderCommand, LeaderEvent};
use quiver_machine::{Offence, Route};
use quiver_message::{Message, Rekey};

use crate::world::{Node, S, World, decode};
use crate::wraps::{change_wraps, questions};

/// Longer than a leader waits for others after the first question.
const A_WHILE: Duration = Duration::from_secs(1);

/// Parts of an opening that came to one member.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    /// Wraps with those of the member.
    own: usize,
    /// Wraps of others.
    others: usize,
    entries: usize,
    paths: usize,
    /// Answers that only who holds the opening understands.
    replies: usize,
}

/// Parts of openings that came to an edge since `mark`.
fn told(world: &World, edge: usize, mark: usize) -> Told {
    let slot = world.edge(edge).status().slot.unwrap();
    let mut told = Told::default();
    for packet in world.recorded[mark..].iter().filter(|packet| packet.to == Node::Edge(edge)) {
        match decode(world, packet) {
            Message::Rekey(rekey) if rekey.header.core.kind == EpochKind::Open => match rekey.part {
                Some(EpochPart::Delta(delta)) if delta.covers(slot) => told.own += 1,
                Some(EpochPart::Delta(_)) => told.others += 1,
                Some(EpochPart::Entry(_)) => told.entries += 1,
                Some(EpochPart::Path(_)) => told.paths += 1,
                None => {}
            },
            Message::CatchUpReply(_) => told.replies += 1,
            _ => {}
        }
    }
    told
}

const BROADCAST: Told = Told { own: 1, others: 0, entries: 0, paths: 0, replies: 0 };
const PATH: Told = Told { own: 0, others: 0, entries: 0, paths: 1, replies: 0 };

fn is_opening(message: &Message<S>) -> bool {
    let of_opening = |rekey: &Rekey<S>| {
        rekey.header.core.kind == EpochKind::Open && matches!(rekey.part, Some(EpochPart::Delta(_)))
    };
    matches!(message, Message::Rekey(rekey) if of_opening(rekey))
}

/// Keeps the broadcast of an opening from edges.
fn lose_opening(world: &mut World, edges: std::ops::Range<usize>) {
    let deployment = world.deployment.clone();
    world.tamper = Some(Box::new(move |packet| {
        let message = Message::<S>::decode(&deployment, &packet.bytes).unwrap();
        let loses = edges.clone().any(|edge| packet.to == Node::Edge(edge)) && is_opening(&message);
        if loses { vec![] } else { vec![packet] }
    }));
}

#[test]
fn a_restarted_leader_opens_by_one_broadcast_and_nobody_needs_more() {
    let mut world = World::grouped(1, 20);
    let mark = world.recorded.len();
    world.restart_leader();
    world.run_for(A_WHILE);
    assert!(world.agree(0..20));
    for edge in 0..20 {
        assert_eq!(told(&world, edge, mark), BROADCAST, "edge {edge}");
        assert_eq!(questions(&world, edge, mark), 1, "edge {edge} asks as it connects");
    }
    let epoch = world.leader_epoch();
    assert!(world.leader_events().contains(&LeaderEvent::Delivered { epoch, members: 20 }));
    // Everybody has its path: the next wraps are of use to all.
    let mark = world.recorded.len();
    world.command_edge(7, EdgeCommand::Leave);
    world.run_for(A_WHILE);
    assert!(world.agree((0..20).filter(|edge| *edge != 7)));
    assert!((0..20).filter(|edge| *edge != 7).all(|edge| questions(&world, edge, mark) == 0));
    assert!(world.blamed_by_leader().is_empty(), "{:?}", world.blamed_by_leader());
}

#[test]
fn of_an_opening_in_parts_each_member_takes_its_own() {
    let mut world = World::grouped(2, 600);
    let mark = world.recorded.len();
    world.restart_leader();
    world.run_for(A_WHILE);
    assert!(world.agree(0..600));
    for edge in 0..600 {
        let told = told(&world, edge, mark);
        // A member between two parts may find its nodes in both.
        assert!((1..=2).contains(&told.own) && (2..=3).contains(&told.others), "edge {edge}: {told:?}");
        assert_eq!((told.entries, told.paths, told.replies), (0, 0, 0), "edge {edge}");
        assert!(world.blamed_by_edge(edge).is_empty(), "{:?}", world.blamed_by_edge(edge));
    }
}

#[test]
fn who_misses_the_broadcast_is_sent_its_path() {
    let mut world = World::grouped(3, 80);
    let mark = world.recorded.len();
    lose_opening(&mut world, 3..6);
    world.restart_leader();
    world.run_for(A_WHILE);
    assert!(world.agree((0..80).filter(|edge| !(3..6).contains(edge))) && !world.agree([3]));
    // It is not sent again; they ask again, and by then are answered for themselves.
    world.run_for(Duration::from_secs(20));
    assert!(world.agree(0..80));
    for edge in 0..80 {
        // Lost messages are recorded as well.
        let expected = if (3..6).contains(&edge) { Told { own: 1, ..PATH } } else { BROADCAST };
        assert_eq!(told(&world, edge, mark), expected, "edge {edge}");
    }
    let mark = world.recorded.len();
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_millis(10));
    assert!(world.agree(0..80) && (0..80).all(|edge| questions(&world, edge, mark) == 0));
}

/// Restarts the leader of five edges, of which one is away.
fn restart_leader_without(world: &mut World, away: usize) {
    world.disconnect_all(Node::Edge(away));
    world.stop(Node::Leader);
    world.start_leader_alone();
    for edge in (0..5).filter(|edge| *edge != away) {
        world.connect(Node::Edge(edge), Node::Leader, Route::Leader);
    }
}

#[test]
fn who_comes_late_is_sent_its_path() {
    let mut world = World::grouped(4, 5);
    restart_leader_without(&mut world, 2);
    world.run_for(Duration::from_secs(30));
    assert!(world.agree([0, 1, 3, 4]) && !world.agree([2]));
    let mark = world.recorded.len();
    world.connect(Node::Edge(2), Node::Leader, Route::Leader);
    world.run_for(A_WHILE);
    assert!(world.agree(0..5));
    assert_eq!(told(&world, 2, mark), PATH);
    // One who comes when the term has gone on is sent how it was opened, and then its path.
    restart_leader_without(&mut world, 3);
    world.run_for(A_WHILE);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(A_WHILE);
    let mark = world.recorded.len();
    world.connect(Node::Edge(3), Node::Leader, Route::Leader);
    world.run_for(A_WHILE);
    assert!(world.agree(0..5));
    let told = told(&world, 3, mark);
    assert_eq!((told.own, told.entries, told.paths), (0, 1, 0), "{told:?}");
}

#[test]
fn a_term_that_goes_on_at_once_is_opened_for_all_first() {
    let mut world = World::grouped(5, 30);
    let mark = world.recorded.len();
    world.restart_leader();
    world.run_for(Duration::from_millis(50));
    assert!((0..30).all(|edge| told(&world, edge, mark) == Told::default()), "it waits for others to ask");
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(A_WHILE);
    assert!(world.agree(0..30));
    assert!((0..30).all(|edge| told(&world, edge, mark) == BROADCAST));
}

#[test]
fn who_heard_the_opening_alone_is_sent_the_newest_epoch() {
    let mut world = World::grouped(6, 5);
    world.stop(Node::Leader);
    let deployment = world.deployment.clone();
    // The header after the opening is lost on the way to one, and nothing else would make it ask.
    world.tamper = Some(Box::new(move |packet| {
        let message = Message::<S>::decode(&deployment, &packet.bytes).unwrap();
        let later = match &message {
            Message::Rekey(rekey) => rekey.header.core.epoch.counter == 2,
            message => matches!(message, Message::ShortRekey(_)),
        };
        if packet.to == Node::Edge(1) && later { vec![] } else { vec![packet] }
    }));
    world.start_leader();
    world.run_for(Duration::from_millis(50));
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_millis(10));
    assert!(world.agree([0, 2, 3, 4]) && !world.agree([1]));
    world.tamper = None;
    world.run_for(Duration::from_secs(6));
    assert!(world.agree(0..5));
}

#[test]
fn a_changed_opening_is_blamed_and_made_good() {
    let mut world = World::grouped(7, 4);
    change_wraps(&mut world, 0);
    world.restart_leader();
    world.run_for(A_WHILE);
    assert!(world.agree(1..4) && !world.agree([0]));
    assert_eq!(world.blamed_by_edge(0), [&Offence::Protocol(Error::WrongWraps)]);
    world.run_for(Duration::from_secs(20));
    assert!(world.agree(0..4));
}

#[test]
fn who_published_no_spare_point_is_absent_and_joins_again() {
    let mut world = World::grouped(8, 6);
    let deployment = world.deployment.clone();
    world.tamper = Some(Box::new(move |packet| {
        let message = Message::<S>::decode(&deployment, &packet.bytes).unwrap();
        let spare = packet.from == Node::Edge(4) && matches!(message, Message::SparePublication(_));
        if spare { vec![] } else { vec![packet] }
    }));
    world.restart_leader();
    world.run_for(A_WHILE);
    assert!(world.agree(0..6));
    let mark = world.recorded.len();
    world.restart_leader();
    world.run_for(Duration::from_secs(5));
    assert!(world.agree(0..6));
    let joined = world.recorded[mark..].iter().filter(|packet| {
        matches!(decode(&world, packet), Message::JoinRequest(_)) && packet.from == Node::Edge(4)
    });
    assert_eq!(joined.count(), 1);
}
