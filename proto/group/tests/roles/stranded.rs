//! Leaders that forgot, and members that have gone on: nobody is left behind for good.

use std::time::Duration;

use quiver_ainq::Role;
use quiver_group::{EdgeEvent, LeaderCommand, LeaderEvent};
use quiver_testbed::token_grant;

use crate::world::{GROUP, Node, World, name};

fn restart(world: &mut World) {
    world.restart_leader();
    world.run_for(Duration::from_secs(3));
}

/// A leader in the old one's place that has nothing of it.
fn replace_leader(world: &mut World) {
    forget_everything(world);
    world.start_leader();
}

fn forget_everything(world: &mut World) {
    let grant = token_grant("leader-again", Role::Leader { group: name(GROUP), ordinal: 1 }, GROUP);
    world.leader_token = world.operator.issue(&world.deployment, grant, &mut world.rng).unwrap();
    world.set_leader_records(Vec::new());
}

#[test]
fn a_leader_that_lost_its_state_opens_a_term_above_the_one_that_members_remember() {
    let mut world = World::grouped(1, 3);
    restart(&mut world);
    restart(&mut world);
    let before = world.leader_epoch();
    world.stop(Node::Leader);
    // All keys run out before there is a leader again.
    world.run_for(Duration::from_secs(20_000));
    replace_leader(&mut world);
    world.run_for(Duration::from_secs(280));
    assert!(world.agree(0..3), "{:?} {:?}", world.leader_epoch(), world.blamed_by_edge(0).last());
    assert!(world.leader_epoch().round() > before.round());
}

#[test]
fn members_that_restarted_meanwhile_show_the_new_leader_where_they_are_all_the_same() {
    let mut world = World::grouped(2, 3);
    restart(&mut world);
    restart(&mut world);
    world.stop(Node::Leader);
    world.run_for(Duration::from_secs(20_000));
    replace_leader(&mut world);
    // Directed to join again and not yet admitted, they are started anew.
    world.run_until("told", |world| world.leader_events().len() > 20);
    for edge in 0..3 {
        world.restart_edge(edge);
    }
    world.run_for(Duration::from_secs(280));
    assert!(world.agree(0..3), "{:?} {:?}", world.leader_epoch(), world.blamed_by_edge(0).last());
}

#[test]
fn a_leader_that_lost_its_state_leads_again_when_the_keys_of_its_last_term_have_run_out() {
    let mut world = World::grouped(6, 3);
    restart(&mut world);
    let (before, lost) = (world.leader_epoch(), world.time());
    world.stop(Node::Leader);
    // It has opened a term when its members, who hold valid keys, show it the one that they are in.
    forget_everything(&mut world);
    world.start_leader_alone();
    world.run_until("it leads", |world| world.leader().status().epoch.is_some());
    world.dial_leader();
    world.run_for(Duration::from_secs(60));
    assert!(world.leader().status().epoch.is_none());
    assert!(world.leader_events().iter().any(|event| matches!(event, LeaderEvent::SteppedDown { .. })));
    world.run_until_in(Duration::from_secs(20_000), "there is a leader again", |world| {
        world.leader().status().epoch.is_some()
    });
    let waited = world.time() - lost;
    assert!(waited <= world.leader_timing.validity, "{waited:?}");
    assert!(world.leader_epoch().round() > before.round());
    world.run_for(Duration::from_secs(120));
    assert!(world.agree(0..3), "{:?} {:?}", world.leader_epoch(), world.blamed_by_edge(0).last());
}

#[test]
fn members_bring_a_leader_above_their_term_although_its_keys_ran_out() {
    let mut world = World::grouped(3, 2);
    let old = world.leader_records().to_vec();
    for _ in 0..3 {
        restart(&mut world);
    }
    assert!(world.agree(0..2));
    world.stop(Node::Leader);
    world.run_for(Duration::from_secs(20_000));
    world.set_leader_records(old);
    world.start_leader();
    world.run_for(Duration::from_secs(280));
    assert!(world.agree(0..2), "{:?} {:?}", world.leader_epoch(), world.blamed_by_edge(0).last());
}

#[test]
fn a_restored_leader_that_opens_its_last_term_again_is_brought_above_it() {
    let mut world = World::grouped(4, 2);
    let old = world.leader_records().to_vec();
    restart(&mut world);
    for _ in 0..3 {
        world.command_leader(LeaderCommand::Rekey);
        world.run_for(Duration::from_secs(1));
    }
    assert!(world.agree(0..2));
    let before = world.leader_epoch();
    world.stop(Node::Leader);
    // One leap in 4,096 leads to the same term again.
    world.set_leader_records(old);
    world.node_mut::<quiver_group::Leader<crate::world::S>>(Node::Leader).repeat_life();
    world.start_leader();
    assert_eq!(world.leader_epoch().term, before.term, "opened twice");
    world.run_for(Duration::from_secs(60));
    assert!(world.agree(0..2), "{:?} {:?}", world.leader_epoch(), world.blamed_by_edge(0).last());
    assert!(world.leader_epoch().term > before.term);
    // It cannot tell its own past from another that leads with a copy of its state.
    let own = |event: &LeaderEvent| matches!(event, LeaderEvent::OwnHeader { .. });
    assert!(world.leader_events().iter().any(own));
    for edge in world.edge_nodes() {
        assert!(!edge.events.iter().any(|event| matches!(event, EdgeEvent::Equivocation { .. })));
    }
}

#[test]
fn a_leader_put_back_from_a_backup_contradicts_nothing_it_signed() {
    let mut world = World::grouped(5, 2);
    let old = world.leader_records().to_vec();
    restart(&mut world);
    assert!(world.agree(0..2));
    // Nothing has happened in the new term: a second opening of it would be proof against the leader.
    let before = world.leader_epoch();
    world.stop(Node::Leader);
    world.set_leader_records(old);
    world.start_leader();
    assert_ne!(world.leader_epoch().term, before.term);
    world.run_for(Duration::from_secs(60));
    assert!(world.agree(0..2), "{:?} {:?}", world.leader_epoch(), world.blamed_by_edge(0).last());
    for edge in world.edge_nodes() {
        assert!(!edge.events.iter().any(|event| matches!(event, EdgeEvent::Equivocation { .. })));
    }
}
