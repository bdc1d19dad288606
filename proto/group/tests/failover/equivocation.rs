//! A leader that signs two headers for one epoch is found out, and refused by everybody for good.

use std::time::Duration;

use quiver_ainq::{DroneKeypair, Epoch, EquivocationProof, Error, Header, Label, Role, StrategyKind};
use quiver_enrolment::KgcEvent;
use quiver_group::leader::Stance;
use quiver_group::{EdgeEvent, LeaderCommand, LeaderEvent};
use quiver_machine::Offence;
use quiver_message::{Message, Rekey, ShortRekey};

use crate::world::{GROUP, Node, Packet, S, SILENCE, World, decode, name};

/// A second header for the epoch in force, signed by the leader 0 itself, whose key its disk gives away.
fn second_header(world: &mut World) -> Message<S> {
    let header = newest_header(world);
    let mut second = header;
    second.core.nonce = [7; 32];
    let digest = second.digest(&world.deployment);
    let keypair = world.stolen_key(0);
    second.signature = keypair.sign(&world.deployment, Label::Header, &digest, &mut world.rng);
    Message::Rekey(Rekey::new(second, None))
}

/// A header like this one with another nonce, signed under one more key of the leader 0.
fn signed_by(world: &mut World, keypair: &DroneKeypair<S>, header: &Header<S>, nonce: u8) -> Header<S> {
    let mut header = header.clone();
    header.core.leader = keypair.public().clone();
    header.core.nonce = [nonce; 32];
    let digest = header.digest(&world.deployment);
    header.signature = keypair.sign(&world.deployment, Label::Header, &digest, &mut world.rng);
    header
}

fn newest_header(world: &World) -> Header<S> {
    let headers = world.recorded.iter().rev().find_map(|packet| match decode(world, packet) {
        Message::Welcome(welcome) if packet.from == Node::Leader(0) => Some(welcome.header),
        _ => None,
    });
    headers.unwrap()
}

/// An edge and the deputy blame the leader 0 for what it signed.
fn assert_refused(world: &mut World, header: Header<S>) {
    let bytes = Message::Rekey(Rekey::new(header, None)).encode(&world.deployment);
    for node in [Node::Edge(0), Node::Leader(1)] {
        world.inject(Node::Leader(0), node, &bytes);
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.blamed_by(node).last(), Some(&&Offence::RefusedLeader), "{node:?}");
    }
}

fn lists_signed(world: &World) -> usize {
    let signed = |event: &&KgcEvent| matches!(event, KgcEvent::RevocationListSigned { .. });
    world.kgc_events().iter().filter(signed).count()
}

fn refused_by_everybody(world: &World, edges: usize) {
    let epoch = newest_header(world).core.epoch;
    let (leader, at) = (name("leader-0"), epoch);
    assert!(
        world.leader_events(1).contains(&LeaderEvent::Equivocation { leader: leader.clone(), epoch: at })
    );
    for edge in 0..edges {
        let event = EdgeEvent::Equivocation { leader: leader.clone(), epoch: at };
        assert!(world.edge_events(edge).contains(&event), "edge {edge}");
    }
    let revoked = |event: &KgcEvent| matches!(event, KgcEvent::Equivocation { name, .. } if *name == leader);
    assert!(world.kgc_events().iter().any(revoked));
    assert_eq!(lists_signed(world), 1);
}

#[test]
fn an_equivocating_leader_is_refused_by_everybody_and_the_deputy_takes_over() {
    let mut world = World::grouped(1, 2, 4);
    let joins = world.joins();
    let second = second_header(&mut world).encode(&world.deployment);
    let begun = world.time();
    world.inject(Node::Leader(0), Node::Edge(2), &second);
    world.run_until("the deputy's term", |world| world.follow(1, 0..4));
    // §10.7: the deputy waits for its turn and not for a silence, though the culprit was heard just now.
    assert!(world.time() - begun < SILENCE, "{:?}", world.time() - begun);
    world.run_for(Duration::from_secs(5));
    refused_by_everybody(&world, 4);
    assert_eq!(world.leading(), [1], "the culprit leads no more");
    assert_eq!(world.status(0).unwrap().stance, Stance::Retired);
    assert_eq!(world.joins(), joins);
    for edge in world.edge_nodes() {
        let state = edge.records().last().unwrap().as_bytes();
        assert!(
            !state.windows(32).any(|bytes| bytes == [7; 32]),
            "an edge keeps whom it refuses, and not why"
        );
    }
    // For good: also after a restart of everybody.
    for node in world.ids() {
        world.stop(node);
    }
    for node in world.ids() {
        world.start(node);
    }
    world.run_until("all follow the deputy", |world| world.leading() == [1] && world.follow(1, 0..4));
    let stale = newest_header(&world);
    assert_refused(&mut world, stale);
}

#[test]
fn a_short_header_that_contradicts_the_one_held_is_proof_like_a_whole_one() {
    if crate::STRATEGY == StrategyKind::Flat {
        return;
    }
    let mut world = World::grouped(9, 2, 4);
    let (before, mark) = (newest_header(&world), world.recorded.len());
    world.command_leader(0, LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    let short = world.recorded[mark..].iter().find_map(|packet| {
        match Message::<S>::decode(&world.deployment, &packet.bytes).unwrap() {
            Message::ShortRekey(short) if packet.from == Node::Leader(0) => Some(short),
            _ => None,
        }
    });
    let ShortRekey { mut header, wraps } = short.expect("the expiry went to everybody");
    // Another epoch of the same number, which the leader tells one member.
    header.nonce = [7; 32];
    let digest = before.digest(&world.deployment);
    let second = header.clone().rebuild(&before.core, &digest, &wraps).unwrap();
    let keypair = world.stolen_key(0);
    let digest = second.digest(&world.deployment);
    header.signature = keypair.sign(&world.deployment, Label::Header, &digest, &mut world.rng);
    let bytes = Message::ShortRekey(ShortRekey { header, wraps }).encode(&world.deployment);
    world.inject(Node::Leader(0), Node::Edge(2), &bytes);
    world.run_until("the deputy's term", |world| world.follow(1, 0..4));
    world.run_for(Duration::from_secs(5));
    for edge in 0..4 {
        let found = |event: &&EdgeEvent| matches!(event, EdgeEvent::Equivocation { .. });
        assert_eq!(world.edge_events(edge).iter().filter(found).count(), 1, "edge {edge}");
    }
    assert_eq!(world.leading(), [1], "the culprit leads no more");
}

#[test]
fn a_leader_that_contradicts_itself_under_two_keys_is_refused_whatever_key_it_takes_next() {
    let mut world = World::grouped(5, 2, 4);
    let identity = world.leader_public(0).identity;
    let [second_key, third_key] = [(); 2].map(|()| world.another_key(&identity));
    let first = newest_header(&world);
    let second = signed_by(&mut world, &second_key, &first, 7);
    let second = Message::Rekey(Rekey::new(second, None)).encode(&world.deployment);
    // One member follows the first key, another is shown the second.
    world.inject(Node::Leader(0), Node::Edge(2), &second);
    world.run_until("the deputy's term", |world| world.follow(1, 0..4));
    world.run_for(Duration::from_secs(5));
    refused_by_everybody(&world, 4);
    assert_eq!(world.leading(), [1], "the culprit leads no more");
    assert_eq!(world.status(0).unwrap().stance, Stance::Retired);
    // A third key of one serial is refused as well, also after a restart.
    for node in [Node::Edge(0), Node::Leader(1)] {
        world.restart(node);
    }
    world.run_until("all follow the deputy", |world| world.leading() == [1] && world.follow(1, 0..4));
    let mut later = first;
    later.core.epoch.term = Epoch::term_of(world.epoch(1).unwrap().round() + 1, 0);
    later.core.epoch.counter = 2;
    let later = signed_by(&mut world, &third_key, &later, 8);
    assert_refused(&mut world, later);
}

#[test]
fn a_leader_with_65_keys_takes_one_place_among_the_refused() {
    let mut world = World::grouped(6, 2, 1);
    let header = newest_header(&world);
    let identity = world.leader_public(0).identity;
    let contradict = |world: &mut World, identity: &_, header: &Header<S>| {
        let keypair = world.another_key(identity);
        let [first, second] = [1, 2].map(|nonce| signed_by(world, &keypair, header, nonce));
        let proof = Message::EquivocationProof(Box::new(EquivocationProof { first, second }));
        let proof = proof.encode(&world.deployment);
        world.inject(Node::Edge(0), Node::Leader(1), &proof);
        world.run_for(Duration::from_millis(10));
        let found = |event: &&LeaderEvent| matches!(event, LeaderEvent::Equivocation { .. });
        world.leader_events(1).iter().filter(found).count()
    };
    for _ in 0..65 {
        assert_eq!(contradict(&mut world, &identity, &header), 1, "one drone, refused once");
    }
    // So there is room for the next leader that contradicts itself.
    let mut other = identity;
    (other.serial, other.role) = ([2; 16], Role::Leader { group: name(GROUP), ordinal: 2 });
    let mut header = header;
    header.core.epoch.term = Epoch::term_of(header.core.epoch.round(), 2);
    assert_eq!(contradict(&mut world, &other, &header), 2);
}

#[test]
fn a_deputy_that_sees_the_contradiction_tells_everybody() {
    let mut world = World::grouped(2, 2, 3);
    let second = second_header(&mut world).encode(&world.deployment);
    world.inject(Node::Edge(0), Node::Leader(1), &second);
    world.run_until("the deputy's term", |world| world.follow(1, 0..3));
    world.run_for(Duration::from_secs(5));
    refused_by_everybody(&world, 3);
}

#[test]
fn forged_and_hollow_proofs_blame_the_sender_and_change_nothing() {
    let mut world = World::grouped(3, 2, 3);
    let header = newest_header(&world);
    let mut unsigned = header.clone();
    unsigned.core.nonce = [1; 32];
    let mut other_epoch = header.clone();
    other_epoch.core.epoch.counter += 1;
    let proofs = [(header.clone(), unsigned), (header.clone(), header.clone()), (header, other_epoch)];
    for (first, second) in proofs {
        let proof = Message::EquivocationProof(Box::new(EquivocationProof { first, second }))
            .encode(&world.deployment);
        for node in [Node::Edge(0), Node::Leader(0), Node::Leader(1)] {
            let before = world.blamed_by(node).len();
            world.inject(Node::Edge(1), node, &proof);
            world.run_for(Duration::from_millis(50));
            assert_eq!(world.blamed_by(node).len(), before + 1, "{node:?}");
            assert!(matches!(
                world.blamed_by(node).last(),
                Some(Offence::Protocol(Error::InvalidSignature | Error::Malformed(_)))
            ));
        }
        world.inject(Node::Edge(1), Node::Kgc, &proof);
    }
    world.run_for(Duration::from_secs(30));
    assert_eq!(world.leading(), [0]);
    assert!(world.follow(0, 0..3));
    assert_eq!(world.kgc().revocation_number(), 0);
}

/// Numbers of proofs and of questions for a list that were sent to the KGC.
fn sent_to_kgc(world: &World) -> (usize, usize) {
    let to_kgc = world.recorded.iter().filter(|packet| packet.to == Node::Kgc);
    to_kgc.fold((0, 0), |(proofs, queries), packet| match decode(world, packet) {
        Message::EquivocationProof(_) => (proofs + 1, queries),
        Message::RevocationQuery(_) => (proofs, queries + 1),
        _ => (proofs, queries),
    })
}

#[test]
fn a_kgc_is_sent_a_proof_again_until_a_list_names_the_leader() {
    let mut world = World::grouped(5, 2, 2);
    let second = second_header(&mut world).encode(&world.deployment);
    world.tamper = Some(Box::new(|packet| if packet.to == Node::Kgc { vec![] } else { vec![packet] }));
    world.inject(Node::Leader(0), Node::Edge(0), &second);
    world.run_for(Duration::from_secs(20));
    assert_eq!(lists_signed(&world), 0);
    world.tamper = None;
    world.run_for(Duration::from_secs(60));
    assert_eq!(lists_signed(&world), 1);
    let (sent, _) = sent_to_kgc(&world);
    // Nor to a KGC that connects: it has the list, or is sent it.
    world.stop(Node::Kgc);
    world.start(Node::Kgc);
    world.run_for(Duration::from_secs(200));
    assert_eq!(sent_to_kgc(&world).0, sent);
}

#[test]
fn nobody_is_sent_a_proof_against_an_identity_that_ended_long_ago() {
    let mut world = World::grouped(6, 2, 2);
    let second = second_header(&mut world).encode(&world.deployment);
    world.stop(Node::Kgc);
    world.inject(Node::Leader(0), Node::Edge(0), &second);
    world.run_for(Duration::from_secs(20));
    for years in [0, 100] {
        world.set_ahead(Node::Leader(1), years * 365 * 86_400);
        let before = sent_to_kgc(&world);
        world.start(Node::Kgc);
        world.tamper = Some(Box::new(|packet| if packet.to == Node::Kgc { vec![] } else { vec![packet] }));
        world.run_for(Duration::from_secs(100));
        let (proofs, queries) = sent_to_kgc(&world);
        assert!(queries > before.1);
        assert_eq!(proofs == before.0, years > 0);
        world.stop(Node::Kgc);
    }
}

#[test]
fn a_proof_is_checked_once_however_often_it_comes() {
    let mut world = World::grouped(4, 2, 2);
    let second = second_header(&mut world).encode(&world.deployment);
    world.inject(Node::Leader(0), Node::Edge(0), &second);
    world.run_for(Duration::from_secs(20));
    let is_proof = |packet: &&Packet| matches!(decode(&world, packet), Message::EquivocationProof(_));
    let sent = world.recorded.iter().filter(is_proof).count();
    let proof = world.recorded.iter().find(is_proof).unwrap().clone();
    for _ in 0..20 {
        for node in [Node::Edge(0), Node::Edge(1), Node::Leader(1), Node::Kgc] {
            world.inject(Node::Edge(0), node, &proof.bytes);
        }
    }
    world.run_for(Duration::from_secs(5));
    let after = world
        .recorded
        .iter()
        .filter(|packet| matches!(decode(&world, packet), Message::EquivocationProof(_)));
    assert_eq!(after.count(), sent, "it was passed on again");
    assert_eq!(lists_signed(&world), 1);
}
