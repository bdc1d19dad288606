//! Gaps: lost messages, lost connections, mass changes meanwhile.

use std::time::Duration;

use quiver_role::{EdgeCommand, LeaderCommand, Route};

use crate::world::{Node, World};

#[test]
fn an_edge_that_missed_epochs_catches_up_when_it_is_back() {
    let mut world = World::grouped(1, 6);
    world.disconnect(Node::Edge(0));
    for _ in 0..7 {
        world.lead(LeaderCommand::Rekey);
        world.run(Duration::from_secs(1));
    }
    world.command(5, EdgeCommand::Leave);
    world.run(Duration::from_secs(2));
    world.connect(Node::Edge(0), Node::Leader, Route::Leader);
    world.run(Duration::from_secs(1));
    assert!(world.agree(0..5));
}

#[test]
fn lost_rekeys_are_sent_again() {
    let mut world = World::grouped(2, 4);
    world.cut.insert(Node::Edge(2));
    world.lead(LeaderCommand::Rekey);
    world.run(Duration::from_secs(1));
    assert!(!world.agree([2]));
    world.cut.clear();
    world.run(Duration::from_secs(6));
    assert!(world.agree(0..4));
}

#[test]
fn a_lossy_link_delays_but_does_not_divide() {
    let mut world = World::new(3);
    let mut count = 0_u32;
    world.tamper = Some(Box::new(move |flight| {
        count += 1;
        if count.is_multiple_of(3) { vec![] } else { vec![flight] }
    }));
    for index in 0..10 {
        world.add_edge(&format!("edge-{index}"));
    }
    world.run(Duration::from_secs(280));
    world.tamper = None;
    world.run(Duration::from_secs(120));
    assert!(world.agree(0..10));
}

#[test]
fn who_missed_how_a_term_was_opened_catches_up_without_joining_again() {
    let mut world = World::grouped(6, 6);
    // Three are away while the leader restarts and goes on.
    (0..3).for_each(|edge| world.disconnect(Node::Edge(edge)));
    world.crash(Node::Leader);
    world.start_leader_alone();
    (3..6).for_each(|edge| world.connect(Node::Edge(edge), Node::Leader, Route::Leader));
    world.run(Duration::from_secs(2));
    for _ in 0..3 {
        world.lead(LeaderCommand::Rekey);
        world.run(Duration::from_secs(1));
    }
    // One of them crashed meanwhile, and one of those away is put out.
    world.crash(Node::Edge(1));
    world.lead(LeaderCommand::Evict(quiver_ainq::Name::new("edge-2").unwrap()));
    world.run(Duration::from_secs(1));
    (0..3).for_each(|edge| world.connect(Node::Edge(edge), Node::Leader, Route::Leader));
    world.start_edge(1);
    world.run(Duration::from_secs(15));
    assert!(world.agree([0, 1, 3, 4, 5]));
    assert_ne!(world.key(2), Some(world.leader_key()));
    let joins =
        world.leader_events.iter().filter(|event| matches!(event, quiver_role::LeaderEvent::Joined { .. }));
    assert_eq!(joins.count(), 6);
}

#[test]
fn who_comes_back_after_the_opening_has_run_out_joins_again() {
    let mut world = World::grouped(7, 3);
    world.disconnect(Node::Edge(0));
    world.crash(Node::Leader);
    world.leader_timing.validity = Duration::from_secs(100);
    world.start_leader_alone();
    (1..3).for_each(|edge| world.connect(Node::Edge(edge), Node::Leader, Route::Leader));
    world.run(Duration::from_secs(250));
    world.connect(Node::Edge(0), Node::Leader, Route::Leader);
    world.run(Duration::from_secs(15));
    assert!(world.agree(0..3));
}

#[test]
fn a_question_costs_the_leader_no_epoch() {
    let mut world = World::grouped(4, 5);
    let before = world.leader_epoch();
    for edge in 0..5 {
        world.disconnect(Node::Edge(edge));
        world.connect(Node::Edge(edge), Node::Leader, Route::Leader);
    }
    world.run(Duration::from_secs(30));
    assert_eq!(world.leader_epoch(), before);
    assert!(world.agree(0..5));
}

#[test]
fn duplicated_and_reordered_messages_change_nothing() {
    let mut world = World::new(5);
    let mut held = None;
    world.tamper = Some(Box::new(move |flight| {
        let mut now = vec![flight.clone(), flight.clone()];
        now.extend(held.replace(flight));
        now
    }));
    for index in 0..5 {
        world.add_edge(&format!("edge-{index}"));
    }
    world.run(Duration::from_secs(60));
    world.lead(LeaderCommand::Rekey);
    world.run(Duration::from_secs(5));
    assert!(world.agree(0..5));
    assert_eq!(world.leader.as_ref().unwrap().status().members, 5);
}
