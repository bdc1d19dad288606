//! The leader is silent: a deputy opens a term, and the members follow.

use quiver_ainq::Revoked;
use std::time::Duration;

use quiver_enrolment::KgcCommand;
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand, LeaderEvent};
use quiver_message::Message;

use crate::world::{Node, S, SILENCE, World, name};

#[test]
fn deputy_takes_over_after_silence_and_everybody_follows_without_joining_again() {
    let mut world = World::grouped(1, 2, 12);
    let (before, joins) = (world.epoch(0).unwrap(), world.joins());
    world.stop(Node::Leader(0));
    let lost = world.time();
    world.run_until("all follow", |world| world.follow(1, 0..12));
    let epoch = world.epoch(1).unwrap();
    assert_eq!((epoch.round(), epoch.ordinal(), epoch.counter), (before.round() + 1, 1, 1));
    assert_eq!(world.joins(), joins, "nobody had to join again");
    // One's turn after the silence, and the time since the last answer counts.
    let waited = world.time() - lost;
    assert!(waited <= SILENCE * 3 / 2 + Duration::from_secs(1), "{waited:?}");
    assert!(waited >= SILENCE / 2, "{waited:?}");
    world.command_leader(1, LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    assert!(world.follow(1, 0..12));
}

#[test]
fn the_group_lives_on_under_the_deputy() {
    let mut world = World::grouped(2, 2, 4);
    world.stop(Node::Leader(0));
    world.run_until("all follow", |world| world.follow(1, 0..4));
    world.run_for(Duration::from_secs(5));
    let late = world.add_edge("late");
    world.run_until("let in", |world| world.synced(late));
    world.command_edge(0, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(3));
    assert!(world.edge_events(0).contains(&EdgeEvent::Left));
    world.command_edge(1, EdgeCommand::Send { channel: name("c"), data: vec![7], signed: true });
    world.run_for(Duration::from_secs(1));
    let heard =
        |event: &EdgeEvent| matches!(event, EdgeEvent::Message { data, .. } if data.as_slice() == [7]);
    assert!(world.edge_events(late).iter().any(heard));
    assert!(world.follow(1, [1, 2, 3, late]));
}

#[test]
fn evicted_drone_stays_out_after_failover() {
    let mut world = World::grouped(3, 2, 4);
    world.command_leader(0, LeaderCommand::Evict(name("edge-2")));
    world.run_for(Duration::from_secs(1));
    world.stop(Node::Leader(0));
    world.run_until("the others follow", |world| world.follow(1, [0, 1, 3]));
    world.command_edge(2, EdgeCommand::Join(name(crate::world::GROUP)));
    world.run_for(Duration::from_secs(120));
    assert_ne!(world.key(2), world.leader_key(1));
    assert!(world.edge_events(2).contains(&EdgeEvent::Refused(quiver_machine::RefusalReason::Evicted)));
}

#[test]
fn a_deputy_that_only_heard_the_notice_keeps_the_evicted_out() {
    let mut world = World::grouped(4, 2, 4);
    let leader = Node::Leader(0);
    // Replication fails, but the signed notice is passed on by the group.
    let deployment = world.deployment.clone();
    world.lose_where(move |packet| {
        matches!(Message::<S>::decode(&deployment, &packet.bytes), Ok(Message::Replica(_)))
    });
    world.command_leader(0, LeaderCommand::Evict(name("edge-1")));
    world.run_for(Duration::from_millis(200));
    assert_eq!(world.status(1).unwrap().members, 4, "the copy is as it was");
    world.stop(leader);
    world.run_until("the deputy leads", |world| world.leading() == [1]);
    assert_eq!(world.status(1).unwrap().members, 3);
    world.run_for(Duration::from_secs(60));
    assert!(world.follow(1, [0, 2, 3]));
    assert_ne!(world.key(1), world.leader_key(1));
}

#[test]
fn evicted_drone_does_not_come_back_under_another_key_after_a_failover() {
    let mut world = World::grouped(44, 2, 3);
    world.command_leader(0, LeaderCommand::Evict(name("edge-1")));
    world.run_until("the deputy knows", |world| world.held(1) == world.epoch(0));
    world.stop(Node::Leader(0));
    world.run_until("the others follow", |world| world.follow(1, [0, 2]));
    let again = world.add_edge_under_another_key(1);
    world.run_for(Duration::from_secs(60));
    let enrolled = |event: &EdgeEvent| matches!(event, EdgeEvent::Enrolled { .. });
    assert!(world.edge_events(again).iter().any(enrolled), "{:?}", world.edge_events(again));
    assert!(world.key(again).is_none() && !world.synced(again), "it is back");
    assert_eq!(world.status(1).unwrap().members, 2);
}

#[test]
fn a_revoked_member_is_on_no_deputys_roster() {
    let mut world = World::grouped(5, 2, 3);
    let serial = world.tokens[0].token.statement.id;
    world.part(&[Node::Kgc], &[Node::Leader(0)]);
    world.command_kgc(KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]));
    world.run_for(Duration::from_secs(70));
    world.stop(Node::Leader(0));
    world.run_until("the others follow", |world| world.follow(1, [1, 2]));
    assert_eq!(world.status(1).unwrap().members, 2);
    world.run_for(Duration::from_secs(60));
    assert_ne!(world.key(0), world.leader_key(1));
}

#[test]
fn two_deputies_do_not_fight() {
    let mut world = World::grouped(6, 3, 6);
    let terms = world.terms();
    world.stop(Node::Leader(0));
    world.run_until("all follow", |world| world.follow(1, 0..6));
    world.run_for(Duration::from_secs(120));
    assert_eq!(world.leading(), [1]);
    assert_eq!(world.terms(), terms + 1, "one term was opened, not two");
    assert_eq!(world.held(2), world.epoch(1), "the other deputy stands by for the new leader");
    // And when that one is lost as well:
    world.stop(Node::Leader(1));
    world.run_until("all follow", |world| world.follow(2, 0..6));
    assert_eq!(world.joins(), 6);
}

#[test]
fn with_several_leaders_the_first_start_opens_one_term() {
    let mut world = World::new(7, 4);
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.leading(), [0]);
    assert_eq!(world.terms(), 1);
}

#[test]
fn members_whose_spare_point_is_spent_join_again_by_themselves() {
    let mut world = World::grouped(8, 2, 5);
    // The leader restarts, and before new spare points come it is lost.
    world.stop(Node::Leader(0));
    let edges: Vec<Node> = (0..5).map(Node::Edge).collect();
    world.part(&edges, &[Node::Leader(0), Node::Leader(1)]);
    world.run_until("the deputy leads", |world| world.leading() == [1]);
    world.restart(Node::Leader(1));
    world.run_until("it leads again", |world| world.leading() == [1]);
    world.network.heal();
    world.run_until("all are in again", |world| world.follow(1, 0..5));
    assert_eq!(world.joins(), 10);
}

#[test]
fn an_edge_that_hears_of_the_term_by_gossip_alone_asks_the_new_leader() {
    let mut world = World::grouped(9, 2, 3);
    world.stop(Node::Leader(0));
    // The deputy does not know where the members are: they have not shown it their spare points since it
    // restarted.
    world.stop(Node::Leader(1));
    let edges: Vec<Node> = (0..3).map(Node::Edge).collect();
    world.start(Node::Leader(1));
    let deployment = world.deployment.clone();
    world.lose_where(move |packet| {
        matches!(Message::<S>::decode(&deployment, &packet.bytes), Ok(Message::SparePublication(_)))
    });
    assert!(!edges.is_empty());
    world.run_until("all follow", |world| world.follow(1, 0..3));
    assert_eq!(world.joins(), 3);
}

#[test]
fn a_leader_that_is_alone_opens_its_term_at_once_and_no_deputy_is_needed() {
    let mut world = World::new(10, 1);
    let mut config = world.leader_config(0);
    config.timing.silence = None;
    world.set_leader_records(0, Vec::new());
    let machine = quiver_group::Leader::new(config, Vec::new()).unwrap();
    world.stop(Node::Leader(0));
    world.start_leader_with(0, machine);
    world.run_for(Duration::from_millis(1));
    assert!(!world.leader_events(0).iter().any(|event| matches!(event, LeaderEvent::TookOver { .. })));
}

#[test]
fn a_deputy_that_only_heard_of_many_evictions_lets_none_of_them_in_again() {
    const EVICTED: usize = 70;
    let mut world = World::grouped(8, 2, EVICTED + 2);
    let deployment = world.deployment.clone();
    // The deputy hears what is told to the group, and nothing that is told to it.
    world.lose_where(move |packet| {
        matches!(Message::<S>::decode(&deployment, &packet.bytes), Ok(Message::Replica(_)))
    });
    for edge in 0..EVICTED {
        world.command_leader(0, LeaderCommand::Evict(name(&format!("edge-{edge}"))));
        world.run_for(Duration::from_millis(10));
    }
    world.stop(Node::Leader(0));
    world.tamper = None;
    world.run_until("the deputy leads", |world| world.leading() == [1]);
    assert_eq!(world.status(1).unwrap().members, 2);
    world.run_for(Duration::from_secs(30));
    assert!(world.follow(1, [EVICTED, EVICTED + 1]));
    assert!((0..EVICTED).all(|edge| world.key(edge) != world.leader_key(1)));
}

#[test]
fn a_leader_that_does_not_lead_says_so_when_it_is_told_to_evict_or_to_renew_the_key() {
    let mut world = World::grouped(9, 2, 3);
    let epoch = world.epoch(0);
    let told = |world: &World| {
        world.leader_events(1).iter().filter(|event| **event == LeaderEvent::NotLeading).count()
    };
    for (told_so_far, command) in
        [LeaderCommand::Rekey, LeaderCommand::Evict(name("edge-1"))].into_iter().enumerate()
    {
        assert_eq!(told(&world), told_so_far);
        world.command_leader(1, command);
    }
    assert_eq!(told(&world), 2);
    world.run_for(SILENCE);
    // Nor does it remember it for the day it leads.
    assert_eq!(world.epoch(0), epoch);
    world.stop(Node::Leader(0));
    world.run_until("the deputy leads", |world| world.leading() == [1]);
    assert_eq!(world.status(1).unwrap().members, 3);
}

#[test]
fn drones_that_asked_before_anybody_led_are_in_soon_after_somebody_does() {
    for seed in 20..30 {
        let mut world = World::with_silence(seed, 2, SILENCE * 3);
        for edge in 0..4 {
            world.add_edge(&format!("edge-{edge}"));
            world.run_for(Duration::from_millis(300));
        }
        world.run_until("leader 0 leads", |world| world.leading() == [0]);
        let led = world.time();
        world.run_until("all in", |world| (0..4).all(|edge| world.synced(edge)));
        let waited = world.time() - led;
        assert!(waited <= Duration::from_secs(3), "{waited:?} with seed {seed}");
    }
}

#[test]
fn a_leader_that_is_alone_leads_again_once_the_key_of_another_has_run_out_though_nobody_calls_it() {
    let mut world = World::new(11, 2);
    world.run_until("leader 0 leads", |world| world.leading() == [0]);
    // From here on it does not count on deputies.
    let mut config = world.leader_config(0);
    config.timing.silence = None;
    let machine = quiver_group::Leader::new(config, world.leader_records(0).to_vec()).unwrap();
    world.stop(Node::Leader(0));
    world.start_leader_with(0, machine);
    world.connect_all(Node::Leader(0));
    world.run_until("leader 1 knows its term", |world| {
        world.leading() == [0] && world.held(1) == world.epoch(0)
    });
    world.part(&[Node::Leader(0)], &[Node::Leader(1)]);
    world.run_until("leader 1 leads, too", |world| world.leading() == [0, 1]);
    world.network.heal();
    world.run_until("leader 0 steps down", |world| world.leading() == [1]);
    world.stop(Node::Leader(1));
    world.stop(Node::Kgc);
    // A group key is valid for 10,000 seconds.
    world.run_for(Duration::from_secs(5_000));
    assert!(world.leading().is_empty());
    world.run_for(Duration::from_secs(5_001));
    assert_eq!(world.leading(), [0]);
}
