//! Gaps: lost messages, lost connections, mass changes meanwhile.

use std::time::Duration;

use quiver_ainq::EpochKind;
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand};
use quiver_machine::Route;
use quiver_message::{CatchUpRequest, Message, RefusalReason};

use quiver_testbed::EPOCH_START;

use crate::world::{GROUP, Node, Packet, S, World, decode, name};

#[test]
fn an_edge_that_missed_epochs_catches_up_when_it_is_back() {
    let mut world = World::grouped(1, 6);
    world.disconnect_all(Node::Edge(0));
    for _ in 0..7 {
        world.command_leader(LeaderCommand::Rekey);
        world.run_for(Duration::from_secs(1));
    }
    world.command_edge(5, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(2));
    world.connect(Node::Edge(0), Node::Leader, Route::Leader);
    world.run_for(Duration::from_secs(1));
    assert!(world.agree(0..5));
}

#[test]
fn lost_rekeys_are_sent_again() {
    let mut world = World::grouped(2, 4);
    world.isolated.insert(Node::Edge(2));
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    assert!(!world.agree([2]));
    world.isolated.clear();
    world.run_for(Duration::from_secs(6));
    assert!(world.agree(0..4));
}

#[test]
fn a_lossy_link_delays_but_does_not_divide() {
    let mut world = World::new(3);
    let mut count = 0_u32;
    world.lose_where(move |_| {
        count += 1;
        count.is_multiple_of(3)
    });
    for index in 0..10 {
        world.add_edge(&format!("edge-{index}"));
    }
    world.run_for(Duration::from_secs(280));
    world.tamper = None;
    world.run_for(Duration::from_secs(120));
    assert!(world.agree(0..10));
}

#[test]
fn who_missed_how_a_term_was_opened_catches_up_without_joining_again() {
    let mut world = World::grouped(6, 6);
    // Three are away while the leader restarts and goes on.
    (0..3).for_each(|edge| world.disconnect_all(Node::Edge(edge)));
    world.stop(Node::Leader);
    world.start_leader_alone();
    (3..6).for_each(|edge| world.connect(Node::Edge(edge), Node::Leader, Route::Leader));
    world.run_for(Duration::from_secs(2));
    for _ in 0..3 {
        world.command_leader(LeaderCommand::Rekey);
        world.run_for(Duration::from_secs(1));
    }
    // One of them crashed meanwhile, and one of the absent is evicted.
    world.stop(Node::Edge(1));
    world.command_leader(LeaderCommand::Evict(quiver_ainq::Name::new("edge-2").unwrap()));
    world.run_for(Duration::from_secs(1));
    (0..3).for_each(|edge| world.connect(Node::Edge(edge), Node::Leader, Route::Leader));
    world.start_edge(1);
    world.run_for(Duration::from_secs(15));
    assert!(world.agree([0, 1, 3, 4, 5]));
    assert_ne!(world.key(2), Some(world.leader_key()));
    let joins = world
        .leader_events()
        .iter()
        .filter(|event| matches!(event, quiver_group::LeaderEvent::Joined { .. }));
    assert_eq!(joins.count(), 6);
}

#[test]
fn who_comes_back_after_the_opening_has_run_out_joins_again() {
    let mut world = World::grouped(7, 3);
    world.disconnect_all(Node::Edge(0));
    world.stop(Node::Leader);
    world.leader_timing.validity = Duration::from_secs(100);
    world.start_leader_alone();
    (1..3).for_each(|edge| world.connect(Node::Edge(edge), Node::Leader, Route::Leader));
    world.run_for(Duration::from_secs(250));
    world.connect(Node::Edge(0), Node::Leader, Route::Leader);
    world.run_for(Duration::from_secs(15));
    assert!(world.agree(0..3));
}

#[test]
fn an_opening_is_told_again_until_the_second_in_which_it_runs_out() {
    let mut world = World::grouped(8, 3);
    world.disconnect_all(Node::Edge(0));
    world.stop(Node::Leader);
    world.leader_timing.validity = Duration::from_secs(100);
    let mark = world.recorded.len();
    world.start_leader_alone();
    (1..3).for_each(|edge| world.connect(Node::Edge(edge), Node::Leader, Route::Leader));
    world.run_for(Duration::from_secs(1));
    let opening = |packet: &Packet, world: &World| match decode(world, packet) {
        Message::Rekey(rekey) if rekey.header.core.kind == EpochKind::Open => {
            Some(rekey.header.core.valid_until)
        }
        _ => None,
    };
    let valid_until = world.recorded[mark..].iter().find_map(|packet| opening(packet, &world)).unwrap();
    // Nobody vouches for a question of a member that missed the opening.
    let (group, number, held, tag) = (name(GROUP), [9; 16], [1; 32], [2; 32]);
    let question = CatchUpRequest { group, slot: 0, number, held, tag };
    let question = Message::<S>::CatchUpRequest(question).encode(&world.deployment);
    let ends = Duration::from_secs(valid_until - EPOCH_START);
    for (at, told) in [(ends - Duration::from_secs(1), true), (ends, false)] {
        let ahead = at - world.time();
        world.run_for(ahead);
        assert_eq!(world.time(), at);
        let mark = world.recorded.len();
        world.inject(Node::Edge(1), Node::Leader, &question);
        world.run_for(Duration::ZERO);
        let packets = world.recorded[mark..].iter().filter(|packet| packet.to == Node::Edge(1));
        let packets: Vec<_> = packets.collect();
        assert_eq!(packets.iter().any(|packet| opening(packet, &world).is_some()), told, "{at:?}");
        let refused = |packet: &&Packet| matches!(decode(&world, packet), Message::Refusal(refusal) if refusal.reason == RefusalReason::Rejoin);
        assert_eq!(packets.into_iter().any(|packet| refused(&packet)), !told, "{at:?}");
    }
}

/// The leader's answers to questions of an edge since `mark`: ends of the epoch's validity.
fn answers(world: &World, edge: usize, mark: usize) -> Vec<u64> {
    let told = world.recorded[mark..].iter().filter(|packet| packet.to == Node::Edge(edge));
    let told = told.filter_map(|packet| match decode(world, packet) {
        Message::CatchUpReply(reply) => Some(reply.header.core.valid_until),
        _ => None,
    });
    told.collect()
}

#[test]
fn an_epoch_that_is_confirmed_again_is_not_activated_again() {
    let mut world = World::grouped(9, 3);
    let activated = |world: &World| {
        let events = world.edge_events(0).iter();
        events.filter(|event| matches!(event, EdgeEvent::KeyActivated { .. })).count()
    };
    let (before, mark) = (activated(&world), world.recorded.len());
    for _ in 0..3 {
        world.disconnect_all(Node::Edge(0));
        world.connect(Node::Edge(0), Node::Leader, Route::Leader);
        world.run_for(Duration::from_secs(1));
    }
    assert_eq!(answers(&world, 0, mark).len(), 3);
    assert_eq!(activated(&world), before);
}

#[test]
fn a_member_told_that_an_epoch_that_has_run_out_is_current_asks_again() {
    let mut world = World::grouped(10, 3);
    world.disconnect_all(Node::Edge(0));
    // All wall clocks are set, and the leader has yet to renew its key when the member is back.
    world.skew_all(20_000);
    let deployment = world.deployment.clone();
    world.lose_where(move |packet| {
        let message = Message::<S>::decode(&deployment, &packet.bytes).unwrap();
        packet.to == Node::Edge(0) && matches!(message, Message::Rekey(_))
    });
    let mark = world.recorded.len();
    world.connect(Node::Edge(0), Node::Leader, Route::Leader);
    world.run_for(Duration::from_millis(10));
    let told = answers(&world, 0, mark);
    assert!(told.len() == 1 && told[0] <= world.now().unix, "{told:?}");
    world.run_for(Duration::from_secs(10));
    assert!(answers(&world, 0, mark).len() > 1);
}

#[test]
fn a_question_costs_the_leader_no_epoch() {
    let mut world = World::grouped(4, 5);
    let before = world.leader_epoch();
    for edge in 0..5 {
        world.disconnect_all(Node::Edge(edge));
        world.connect(Node::Edge(edge), Node::Leader, Route::Leader);
    }
    world.run_for(Duration::from_secs(30));
    assert_eq!(world.leader_epoch(), before);
    assert!(world.agree(0..5));
}

#[test]
fn duplicated_and_reordered_messages_change_nothing() {
    let mut world = World::new(5);
    let mut held = None;
    world.tamper = Some(Box::new(move |packet| {
        let mut now = vec![packet.clone(), packet.clone()];
        now.extend(held.replace(packet));
        now
    }));
    for index in 0..5 {
        world.add_edge(&format!("edge-{index}"));
    }
    world.run_for(Duration::from_secs(60));
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(5));
    assert!(world.agree(0..5));
    assert_eq!(world.leader().status().members, 5);
}
