//! Joining, leaving, renewing.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use quiver_group::leader::LeaderTiming;
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand, LeaderEvent};
use quiver_machine::Offence;
use quiver_message::Message;

use quiver_testbed::matching;

use crate::world::{Node, Packet, S, World};

#[test]
fn drones_enrol_join_and_agree() {
    let world = World::grouped(1, 20);
    assert!(world.agree(0..20));
    assert_eq!(world.leader().status().members, 20);
    assert!(world.blamed_by_leader().is_empty(), "{:?}", world.blamed_by_leader());
    for edge in 0..20 {
        assert!(world.blamed_by_edge(edge).is_empty(), "{:?}", world.blamed_by_edge(edge));
    }
}

#[test]
fn a_group_forms_in_a_handful_of_epochs() {
    let world = World::grouped(2, 200);
    assert!(world.leader_epoch().counter <= 6, "{:?}", world.leader_epoch());
    assert!(world.agree(0..200));
}

#[test]
fn renewal_reaches_everybody_and_is_acknowledged() {
    let mut world = World::grouped(3, 10);
    let before = world.leader_key();
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    assert_ne!(world.leader_key(), before);
    assert!(world.agree(0..10));
    let epoch = world.leader_epoch();
    assert!(world.leader_events().contains(&LeaderEvent::Delivered { epoch, members: 10 }));
}

#[test]
fn keys_are_renewed_before_they_run_out() {
    let mut world = World::new(4);
    world.leader_timing.validity = Duration::from_secs(60);
    world.stop(Node::Leader);
    world.set_leader_records(Vec::new());
    world.start_leader();
    world.add_edge("edge");
    world.run_until("joined", |world| world.synced(0));
    let before = world.leader_epoch();
    world.run_for(Duration::from_secs(200));
    assert!(world.leader_epoch().counter >= before.counter + 3);
    assert!(world.agree([0]));
}

#[test]
fn who_leaves_is_out_and_knows_it() {
    let mut world = World::grouped(5, 5);
    world.command_edge(2, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(5));
    assert!(world.edge_events(2).contains(&EdgeEvent::Left));
    assert_eq!(world.key(2), None);
    assert!(world.agree([0, 1, 3, 4]));
    assert_eq!(world.leader().status().members, 4);
    // And it may come back.
    world.command_edge(2, EdgeCommand::Join(quiver_ainq::Name::new(crate::world::GROUP).unwrap()));
    world.run_until("joined again", |world| world.synced(2));
    world.run_for(Duration::from_millis(100));
    assert!(world.agree(0..5));
}

#[test]
fn epochs_only_rise_at_every_drone() {
    let mut world = World::grouped(6, 8);
    for round in 0..5 {
        world.command_edge(round, EdgeCommand::Leave);
        world.command_leader(LeaderCommand::Rekey);
        world.run_for(Duration::from_secs(3));
    }
    for edge in world.edge_nodes() {
        let epochs =
            edge.events.iter().filter_map(matching!(EdgeEvent::KeyActivated { epoch, .. } => *epoch));
        let epochs = epochs.collect::<Vec<_>>();
        assert!(epochs.is_sorted_by(|a, b| a < b), "{epochs:?}");
    }
}

#[test]
fn one_seed_gives_one_history() {
    let bytes = |seed| {
        let mut world = World::grouped(seed, 6);
        world.command_edge(1, EdgeCommand::Leave);
        world.run_for(Duration::from_secs(3));
        world.recorded.iter().map(|packet| (packet.from, packet.to, packet.bytes.clone())).collect::<Vec<_>>()
    };
    assert_eq!(bytes(7), bytes(7));
    assert_ne!(bytes(7), bytes(8));
}

/// Keeps every message of this kind back from now on, for the test to deliver.
fn hold_back(world: &mut World, is_kept: fn(&Message<S>) -> bool) -> Rc<RefCell<Vec<Packet>>> {
    let held = Rc::new(RefCell::new(Vec::new()));
    let (keep, deployment) = (held.clone(), world.deployment.clone());
    world.tamper = Some(Box::new(move |packet| {
        if Message::decode(&deployment, &packet.bytes).is_ok_and(|message| is_kept(&message)) {
            keep.borrow_mut().push(packet);
            return vec![];
        }
        vec![packet]
    }));
    held
}

/// The leader's handling of a request to join that comes so long after its challenge.
fn asks_late(lifetime: Duration, late: Duration) -> World {
    let mut world = World::new(20);
    world.stop(Node::Leader);
    world.leader_timing.challenge = lifetime;
    world.start_leader();
    let held = hold_back(&mut world, |message| matches!(message, Message::JoinRequest(_)));
    world.add_edge("slow");
    world.run_for(late);
    let packet = held.borrow_mut().remove(0);
    world.inject(packet.from, packet.to, &packet.bytes);
    world.run_for(Duration::from_secs(5));
    world
}

#[test]
fn a_challenge_admits_for_as_long_as_the_leader_is_told() {
    let secs = Duration::from_secs;
    let joined =
        |world: &World| world.leader_events().iter().any(|event| matches!(event, LeaderEvent::Joined { .. }));
    // Over a slow radio an answer may take longer than a minute; a setting of days is cut to an hour.
    for (lifetime, late) in
        [(LeaderTiming::default().challenge, 100), (secs(900), 890), (Duration::MAX, 3590)]
    {
        let world = asks_late(lifetime, secs(late));
        assert!(joined(&world) && world.blamed_by_leader().is_empty(), "{lifetime:?}, {late} s");
    }
    for (lifetime, late) in [(secs(60), 65), (Duration::MAX, 3610)] {
        let world = asks_late(lifetime, secs(late));
        assert!(!joined(&world), "{lifetime:?}, {late} s");
        assert_eq!(world.blamed_by_leader(), [&Offence::Cookie]);
    }
}

#[test]
fn leader_that_takes_its_time_is_given_more_of_it() {
    const SLOW: Duration = Duration::from_secs(40);
    let mut world = World::new(21);
    let held = hold_back(&mut world, |message| matches!(message, Message::Welcome(_)));
    // Longer than the edge waits for its first request, as in a large group on a slow network.
    let edge = world.add_edge("patient");
    assert!(SLOW > world.edge_config(edge).timing.admission);
    let mut welcomes = Vec::new();
    while !world.synced(edge) {
        assert!(world.time() < Duration::from_secs(300), "it never waited for long enough");
        world.run_for(Duration::from_secs(1));
        welcomes.extend(held.borrow_mut().drain(..).map(|packet| (world.time() + SLOW, packet)));
        let now = world.time();
        for (_, packet) in welcomes.extract_if(.., |(due, _)| *due <= now) {
            world.inject(packet.from, packet.to, &packet.bytes);
        }
    }
    world.tamper = None;
    world.run_for(Duration::from_secs(5));
    assert!(world.agree([edge]));
}

#[test]
fn joins_and_leaves_wait_as_long_as_acknowledgements_of_the_newest_epoch_keep_coming() {
    const MEMBERS: usize = 600;
    let mut world = World::grouped(22, MEMBERS);
    let held = hold_back(&mut world, |message| matches!(message, Message::Ack(_)));
    world.command_leader(LeaderCommand::Rekey);
    let newest = world.leader_epoch();
    world.command_edge(3, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(1));
    let acks = held.take();
    assert!(acks.len() >= MEMBERS - 1);
    let (trickle, flood) = acks.split_at(10);
    for ack in trickle {
        world.inject(ack.from, ack.to, &ack.bytes);
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.leader_epoch(), newest, "after {:?}", world.time());
    }
    assert!(Duration::from_secs(10) > world.leader_timing.batching_max * 2);
    for ack in flood {
        world.inject(ack.from, ack.to, &ack.bytes);
    }
    let batching = world.leader_timing.batching;
    world.run_for(batching);
    assert!(world.leader_epoch() > newest);
    assert_eq!(world.leader().status().members, MEMBERS - 1);
}

#[test]
fn epoch_that_overtakes_a_welcome_is_asked_for_at_once() {
    let mut world = World::grouped(13, 2);
    let deployment = world.deployment.clone();
    let welcomes = move |packet: &Packet| {
        packet.to == Node::Edge(2)
            && matches!(Message::<S>::decode(&deployment, &packet.bytes), Ok(Message::Welcome(_)))
    };
    world.lose_where(welcomes.clone());
    world.add_edge("edge-2");
    world.run_until("edge 2 is welcomed", |world| world.leader().status().members == 3);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_millis(100));
    assert!(!world.synced(2));
    world.tamper = None;
    let welcome = world.recorded.iter().find(|packet| welcomes(packet)).unwrap().bytes.clone();
    world.inject(Node::Leader, Node::Edge(2), &welcome);
    world.run_for(Duration::from_millis(100));
    assert!(world.agree(0..3));
}
