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
