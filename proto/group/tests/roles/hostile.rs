//! Peers and gateways that do what they like.

use std::time::Duration;

use quiver_ainq::SecretScalar;
use quiver_group::{EdgeEvent, LeaderCommand, LeaderEvent};
use quiver_machine::Offence;
use quiver_message::{Message, MessageError};

use crate::world::{Node, Packet, S, World, copy};

/// Flips one bit of every message to and from the KGC, at a place that moves on.
fn flipping() -> crate::world::Tamper {
    let mut place = 0_usize;
    Box::new(move |mut packet: Packet| {
        if packet.from == Node::Kgc || packet.to == Node::Kgc {
            place += 7;
            let bit = place % (packet.bytes.len() * 8);
            packet.bytes[bit / 8] ^= 1 << (bit % 8);
        }
        vec![packet]
    })
}

#[test]
fn a_gateway_that_tampers_with_enrolment_can_only_delay_it() {
    let mut world = World::new(1);
    world.run_for(Duration::from_secs(1));
    world.tamper = Some(flipping());
    let edge = world.add_edge("edge");
    world.run_for(Duration::from_secs(120));
    // No key that was not issued for this drone was accepted, whatever got through.
    world.tamper = None;
    world.run_until("enrolled in the end", |world| world.synced(edge));
    assert!(world.agree([edge]));
}

#[test]
fn a_gateway_that_sees_everything_of_an_enrolment_sees_no_secret() {
    let mut world = World::new(2);
    let edge = world.add_edge("edge");
    world.run_until("joined", |world| world.synced(edge));
    let state = world.state(edge).unwrap();
    // Every 32-byte window of the drone's stored state that is secret must be absent from what travelled.
    // Public parts (names, points) do travel, so look for the windows that appear in the state but are no
    // public encoding.
    let token = world.tokens[edge].encode();
    // The token's secret is the last 32 bytes of its file.
    let secret = &token[token.len() - 32..];
    for packet in &world.recorded {
        assert!(!packet.bytes.windows(32).any(|window| window == secret));
    }
    assert!(state.as_bytes().len() > 200);
}

#[test]
fn every_single_corruption_of_a_rekey_changes_nothing() {
    let mut world = World::grouped(3, 2);
    world.lose_where(|packet| packet.to == Node::Edge(0));
    world.command_leader(LeaderCommand::Rekey);
    let rekey = world.recorded.iter().rev().find(|f| f.to == Node::Edge(0)).unwrap().bytes.clone();
    // Nor does it get an answer if it asks what went wrong.
    world.lose_where(|packet| packet.from == Node::Edge(0));
    let before = world.edge(0).status();
    for bit in 0..rekey.len() * 8 {
        let mut bytes = rekey.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        world.inject(Node::Leader, Node::Edge(0), &bytes);
        world.run_for(Duration::ZERO);
        let now = world.edge(0).status();
        assert_eq!(
            (now.epoch, now.digest, now.synced),
            (before.epoch, before.digest, before.synced),
            "bit {bit}"
        );
    }
    world.tamper = None;
    world.inject(Node::Leader, Node::Edge(0), &rekey);
    world.run_for(Duration::from_millis(10));
    assert!(world.agree(0..2));
}

#[test]
fn garbage_is_blamed_and_stops_nobody() {
    let mut world = World::grouped(4, 2);
    let other = World::grouped(5, 1);
    let foreign = other.recorded.last().unwrap().bytes.clone();
    let empty = Vec::new();
    let huge = vec![0x42; quiver_machine::MAX_MESSAGE_LEN + 1];
    let valid = Message::<S>::RevocationQuery(quiver_message::RevocationQuery { number: 0, max_len: 0 });
    let mut padded = valid.encode(&world.deployment);
    padded.extend([0xf8, 0x07, 0x01]);
    for bytes in [&foreign, &empty, &huge, &padded, &vec![0xff; 100]] {
        for (from, to) in
            [(Node::Edge(0), Node::Leader), (Node::Leader, Node::Edge(0)), (Node::Edge(0), Node::Kgc)]
        {
            world.inject(from, to, bytes);
        }
    }
    world.run_for(Duration::from_secs(1));
    let expected = [
        Offence::Message(MessageError::ForeignDeployment),
        Offence::Message(MessageError::TooLong(huge.len())),
        Offence::Message(MessageError::NotCanonical),
        Offence::Message(MessageError::NotProtobuf),
    ];
    for offence in &expected {
        assert!(world.blamed_by_leader().contains(&offence), "{offence:?}: {:?}", world.blamed_by_leader());
        assert!(world.blamed_by_edge(0).contains(&offence), "{offence:?}");
    }
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    assert!(world.agree(0..2));
}

#[test]
fn old_epochs_and_forged_acknowledgements_are_blamed() {
    let mut world = World::grouped(6, 3);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    let old = world.newest(|f| f.from == Node::Leader && f.to == Node::Edge(1)).bytes;
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    world.inject(Node::Leader, Node::Edge(1), &old);
    world.run_for(Duration::from_secs(1));
    assert!(world.blamed_by_edge(1).contains(&&Offence::Protocol(quiver_ainq::Error::Stale)));
    // Another member's acknowledgement, its tag altered.
    let ack = quiver_message::Ack { slot: 0, epoch: world.leader_epoch(), tag: [7; 32] };
    let ack = Message::<S>::Ack(ack).encode(&world.deployment);
    world.inject(Node::Edge(2), Node::Leader, &ack);
    world.run_for(Duration::from_secs(1));
    assert!(world.blamed_by_leader().contains(&&Offence::Mac("Ack")));
    assert!(world.agree(0..3));
}

#[test]
fn replaying_everything_that_was_ever_sent_moves_nobody() {
    let mut world = World::grouped(7, 4);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    let (epoch, key) = (world.leader_epoch(), world.leader_key());
    let recorded = world.recorded.clone();
    let activations = |world: &World| {
        let events = world.edge_nodes().flat_map(|edge| &edge.events);
        events.filter(|event| matches!(event, EdgeEvent::KeyActivated { .. })).count()
    };
    let before = activations(&world);
    for packet in recorded {
        world.inject(packet.from, packet.to, &packet.bytes);
    }
    world.run_for(Duration::from_secs(30));
    assert_eq!((world.leader_epoch(), world.leader_key()), (epoch, key));
    assert_eq!(activations(&world), before);
    assert!(world.agree(0..4));
}

/// A request to join in the name of `drone`, with the challenge that the leader gave to `Edge(1)`.
fn request_in_the_name_of(world: &mut World, drone: Vec<u8>) -> quiver_message::JoinRequest {
    let group = quiver_ainq::Name::new(crate::world::GROUP).unwrap();
    let hello =
        quiver_message::JoinHello { group: group.clone(), drone: drone.clone(), nonce: [9; 16], kem: None };
    let hello = Message::<S>::JoinHello(hello).encode(&world.deployment);
    world.inject(Node::Edge(1), Node::Leader, &hello);
    world.run_for(Duration::ZERO);
    let answer =
        world.recorded.iter().rev().find(|f| f.from == Node::Leader && f.to == Node::Edge(1)).unwrap();
    let Message::JoinChallenge(challenge) = Message::<S>::decode(&world.deployment, &answer.bytes).unwrap()
    else {
        panic!("no challenge");
    };
    let point = SecretScalar::<S>::generate(&mut world.rng).public();
    quiver_message::JoinRequest {
        group,
        drone,
        nonce: challenge.nonce,
        challenge: challenge.challenge,
        ephemeral: point.as_bytes().to_vec(),
        spare_q: 1,
        spare_point: point.as_bytes().to_vec(),
        spare_signature: vec![0; 64],
        signature: vec![0; 64],
        kem: None,
    }
}

/// `Edge(1)` asks to join in the name of another member, with signatures that are none.
pub(crate) fn forge_request(world: &mut World) {
    let drone = drone_of(world, 0);
    let mut request = request_in_the_name_of(world, drone);
    // A valid point as commitment, so that the signature decodes and only then fails.
    request.signature[..32].copy_from_slice(&request.ephemeral);
    request.spare_signature[..32].copy_from_slice(&request.ephemeral);
    let bytes = Message::<S>::JoinRequest(request).encode(&world.deployment);
    world.inject(Node::Edge(1), Node::Leader, &bytes);
}

/// The public key that a drone joins with.
fn drone_of(world: &World, edge: usize) -> Vec<u8> {
    let hellos = world.recorded.iter().filter(|f| f.from == Node::Edge(edge));
    let mut drones = hellos.filter_map(|f| match Message::<S>::decode(&world.deployment, &f.bytes) {
        Ok(Message::JoinHello(hello)) => Some(hello.drone),
        _ => None,
    });
    drones.next().unwrap()
}

#[test]
fn a_forged_request_in_a_drones_name_neither_joins_nor_keeps_it_out() {
    let mut world = World::grouped(8, 2);
    let victim = world.add_edge("victim");
    let end = |world: &World| {
        world.recorded.iter().any(|f| f.from == Node::Edge(2) && f.bytes.len() > 400 && f.to == Node::Leader)
    };
    world.run_until("the victim asked", end);
    let drone = drone_of(&world, victim);
    let mut request = request_in_the_name_of(&mut world, drone);
    // A valid point as commitment, so that the signature decodes and only then fails.
    request.signature[..32].copy_from_slice(&request.ephemeral);
    request.spare_signature[..32].copy_from_slice(&request.ephemeral);
    let bytes = Message::<S>::JoinRequest(request).encode(&world.deployment);
    world.inject(Node::Edge(1), Node::Leader, &bytes);
    world.run_for(Duration::from_secs(2));
    assert!(world.synced(victim));
    assert!(world.agree(0..3));
    assert!(world.blamed_by_leader().contains(&&Offence::Protocol(quiver_ainq::Error::InvalidSignature)));
}

#[test]
fn a_second_key_for_one_identity_is_refused_and_kept_as_evidence() {
    let mut world = World::grouped(9, 1);
    // A KGC that forgot (or betrays) its pins issues another key on the same token.
    world.stop(Node::Kgc);
    world.set_kgc_records(Vec::new());
    world.start_kgc();
    let token = copy(&world.tokens[0]);
    let twin = world.add_edge_with(token);
    world.run_for(Duration::from_secs(20));
    assert!(!world.synced(twin));
    assert!(world.agree([0]));
    let found = world
        .leader_events()
        .iter()
        .any(|event| matches!(event, LeaderEvent::SecondKey { name, .. } if name.as_str() == "edge-0"));
    assert!(found, "{:?}", world.leader_events());
}
