//! Members that left stay out of a deputy's terms, whatever state they kept, as far as the deputy was
//! notified.

use std::time::Duration;

use quiver_ainq::{SlotChanges, StrategyKind};
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand};
use quiver_machine::Snapshot;
use quiver_message::{EpochChanges, Message, Rekey};

use crate::world::{Node, Packet, S, SILENCE, World, decode};

/// Edge 0 has left with the word of leader 0, which no deputy has heard of. Gives what it kept from before.
fn left_unknown_to_the_deputy(world: &mut World) -> Snapshot {
    let kept = world.state(0).unwrap();
    let everybody = [0, 1, 2, 3].map(Node::Edge);
    world.part(&[Node::Leader(1)], &[Node::Leader(0)]);
    world.part(&[Node::Leader(1)], &everybody);
    world.command_edge(0, EdgeCommand::Leave);
    world.run_for(Duration::from_millis(800));
    assert!(world.edge_events(0).contains(&EdgeEvent::Left));
    kept
}

/// The leader is lost, and who left is there with all that it had. Nobody lets it join.
fn come_back(world: &mut World, kept: Snapshot) {
    world.stop(Node::Leader(0));
    world.stop(Node::Edge(0));
    world.network.heal();
    let deployment = world.deployment.clone();
    world.lose_where(move |packet| {
        let hello = matches!(Message::<S>::decode(&deployment, &packet.bytes), Ok(Message::JoinHello(_)));
        hello && packet.from == Node::Edge(0)
    });
    world.set_state(0, kept);
    world.start(Node::Edge(0));
    world.run_until("the deputy's term", |world| world.follow(1, 1..4));
}

#[test]
fn leaver_that_kept_its_one_time_point_cannot_follow_a_deputy_that_was_shown_the_header() {
    for restarts in [false, true] {
        let mut world = World::grouped(1, 2, 4);
        let kept = left_unknown_to_the_deputy(&mut world);
        assert!(world.held(1) < world.epoch(0));
        // One member shows the deputy its newest header, as members do to leaders that do not lead.
        let shown =
            world.recorded.iter().rev().find(|packet| {
                packet.to == Node::Edge(1) && matches!(decode(&world, packet), Message::Rekey(_))
            });
        let shown = decode(&world, shown.unwrap()).encode(&world.deployment);
        world.network.heal();
        world.part(&[Node::Leader(1)], &[Node::Leader(0)]);
        world.inject(Node::Edge(1), Node::Leader(1), &shown);
        world.run_for(Duration::from_millis(50));
        assert_eq!(world.status(1).unwrap().members, 4, "the copy stays what the leader's header says");
        if restarts {
            world.restart(Node::Leader(1));
        }
        come_back(&mut world, kept);
        world.run_for(SILENCE * 20);
        assert_ne!(world.key(0), world.leader_key(1), "the leaver reads on");
        assert_eq!(world.status(1).unwrap().members, 3);
        assert!(world.follow(1, 1..4));
    }
}

#[test]
fn leaver_that_followed_a_deputy_that_had_not_heard_is_out_as_soon_as_it_hears() {
    let mut world = World::grouped(2, 2, 4);
    let kept = left_unknown_to_the_deputy(&mut world);
    let header = world
        .recorded
        .iter()
        .rev()
        .find(|packet| packet.to == Node::Edge(1) && matches!(decode(&world, packet), Message::Rekey(_)));
    let header = decode(&world, header.unwrap()).encode(&world.deployment);
    // The state of members from here on does not contain the leave.
    world.command_leader(0, LeaderCommand::Rekey);
    world.run_for(Duration::from_millis(500));
    come_back(&mut world, kept);
    world.run_until("nobody told the deputy", |world| world.follow(1, 0..4));
    // A member that recorded the header sends it.
    world.inject(Node::Edge(2), Node::Leader(1), &header);
    world.run_for(Duration::from_secs(10));
    assert_ne!(world.key(0), world.leader_key(1));
    assert_eq!(world.status(1).unwrap().members, 3);
    assert!(world.follow(1, 1..4));
    // Once it is in again, with the new leader's word, an old header does not put it out.
    world.tamper = None;
    world.run_until("in again", |world| world.follow(1, 0..4));
    let epoch = world.epoch(1);
    world.inject(Node::Edge(2), Node::Leader(1), &header);
    world.run_for(Duration::from_secs(10));
    assert_eq!((world.epoch(1), world.follow(1, 0..4)), (epoch, true));
}

#[test]
fn deputy_that_was_told_of_a_mass_leave_takes_over_without_those_who_left() {
    let mut world = World::grouped(3, 2, 70);
    let edge = |name: &quiver_ainq::Name| name.as_str().strip_prefix("edge-").unwrap().parse().unwrap();
    let members: Vec<(u32, usize)> =
        world.leader(0).members().map(|(slot, name)| (slot, edge(name))).collect();
    let half = |odd: u32| members.iter().filter(move |(slot, _)| slot % 2 == odd).map(|(_, edge)| *edge);
    // The deputy's copy stays as it is; and others' slots, and the bare header, are there before the leader's.
    let deployment = world.deployment.clone();
    world.tamper = Some(Box::new(move |packet| match Message::<S>::decode(&deployment, &packet.bytes) {
        Ok(Message::Replica(_)) => vec![],
        Ok(Message::EpochChanges(epoch)) => {
            let changes = SlotChanges { removed: (0..70).collect(), ..SlotChanges::default() };
            let forged = Message::EpochChanges(EpochChanges { header: epoch.header.clone(), changes });
            let bare = Message::Rekey(Rekey::new(epoch.header, None));
            let of = |message: &Message<S>| Packet { bytes: message.encode(&deployment), ..packet.clone() };
            vec![of(&forged), of(&bare), packet.clone()]
        }
        _ => vec![packet],
    }));
    half(0).for_each(|edge| world.command_edge(edge, EdgeCommand::Leave));
    world.run_for(Duration::from_secs(2));
    assert!(half(0).all(|edge| world.edge_events(edge).contains(&EdgeEvent::Left)));
    assert!(world.held(1) < world.epoch(0));
    let told = |packet: &&Packet| matches!(decode(&world, packet), Message::EpochChanges(_));
    let told = world.recorded.iter().filter(told).count();
    assert_eq!(told > 0, crate::STRATEGY == StrategyKind::Tree, "under flat the header lists all");
    assert_eq!(world.blamed_by(Node::Leader(1)).len(), told);
    assert_eq!(world.status(1).unwrap().members, 70, "the copy stays what the leader's header says");
    world.restart(Node::Leader(1));
    world.stop(Node::Leader(0));
    world.run_until("the deputy's term", |world| world.follow(1, half(1)));
    assert_eq!(world.status(1).unwrap().members, 35);
}
