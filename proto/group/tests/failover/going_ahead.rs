//! Leaders that nobody should follow any more go on opening terms.

use std::time::Duration;

use quiver_ainq::{DroneKeypair, Epoch, Header, Label};
use quiver_enrolment::KgcCommand;
use quiver_group::leader::Stance;
use quiver_machine::Offence;
use quiver_message::{Message, Rekey};

use crate::world::{Node, S, SILENCE, World, decode};

fn newest_header(world: &World, leader: usize) -> Header<S> {
    let headers = world.recorded.iter().rev().find_map(|packet| match decode(world, packet) {
        Message::Rekey(rekey) if packet.from == Node::Leader(leader) => Some(rekey.header),
        Message::Welcome(welcome) if packet.from == Node::Leader(leader) => Some(welcome.header),
        _ => None,
    });
    headers.unwrap()
}

/// A header that this leader signs for an epoch of its own so many rounds ahead.
fn ahead(world: &mut World, own: &DroneKeypair<S>, like: &Header<S>, round: u64) -> Vec<u8> {
    let mut header = like.clone();
    header.core.epoch.term = Epoch::term_of(round, like.core.epoch.ordinal());
    let digest = header.digest(&world.deployment);
    header.signature = own.sign(&world.deployment, Label::Header, &digest, &mut world.rng);
    Message::Rekey(Rekey::new(header, None)).encode(&world.deployment)
}

/// Leader 0 has signed two headers for one epoch, and leader 1 leads everybody.
fn contradicted(seed: u64) -> (World, DroneKeypair<S>, Header<S>) {
    let mut world = World::grouped(seed, 2, 4);
    let own = world.stolen_key(0);
    let like = newest_header(&world, 0);
    let mut second = like.clone();
    second.core.nonce = [7; 32];
    let digest = second.digest(&world.deployment);
    second.signature = own.sign(&world.deployment, Label::Header, &digest, &mut world.rng);
    let second = Message::<S>::Rekey(Rekey::new(second, None)).encode(&world.deployment);
    world.inject(Node::Leader(0), Node::Edge(2), &second);
    world.run_until("the deputy's term", |world| world.follow(1, 0..4));
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.status(0).unwrap().stance, Stance::Retired);
    (world, own, like)
}

#[test]
fn refused_leader_that_signs_term_after_term_makes_nobody_open_one_for_each() {
    let (mut world, own, like) = contradicted(1);
    let first = world.epoch(1).unwrap().round();
    let before = world.terms();
    // From where no member is known to be: none at all.
    for round in 1..=200 {
        let bytes = ahead(&mut world, &own, &like, first + 100 * round);
        world.inject(Node::Leader(0), Node::Leader(1), &bytes);
        world.run_for(Duration::from_millis(100));
        assert_eq!(world.blamed_by(Node::Leader(1)).last(), Some(&&Offence::RefusedLeader));
    }
    assert_eq!(world.terms(), before);
    // From a member's own connection, which is what a member does that strayed: a few in an hour.
    let blamed = world.blamed_by(Node::Leader(1)).len();
    for round in 1..=1000 {
        let bytes = ahead(&mut world, &own, &like, first + 100_000 + 100 * round);
        world.inject(Node::Edge(0), Node::Leader(1), &bytes);
        world.run_for(Duration::from_millis(3600));
    }
    let opened = world.terms() - before;
    assert!((1..=7).contains(&opened), "{opened} terms for a thousand headers in an hour");
    assert_eq!(
        world.blamed_by(Node::Leader(1)).len(),
        blamed,
        "a member that shows what it holds is not at fault"
    );
    world.run_until("all follow", |world| world.follow(1, 0..4));
    assert_eq!(world.leading(), [1]);
}

#[test]
fn the_group_is_sent_the_proof_once_a_member_shows_where_a_refused_leader_led_it() {
    let (mut world, own, like) = contradicted(4);
    world.run_for(Duration::from_secs(120));
    let round = world.epoch(1).unwrap().round();
    let from = world.recorded.len();
    let bytes = ahead(&mut world, &own, &like, round + 100);
    world.inject(Node::Edge(0), Node::Leader(1), &bytes);
    world.run_for(Duration::from_secs(5));
    for edge in 0..4 {
        let is_proof = world.recorded[from..].iter().any(|packet| {
            (packet.from, packet.to) == (Node::Leader(1), Node::Edge(edge))
                && matches!(decode(&world, packet), Message::EquivocationProof(_))
        });
        assert!(is_proof, "edge {edge}");
    }
    assert!(world.epoch(1).unwrap().round() > round + 100);
}

#[test]
fn headers_whose_keys_have_run_out_make_a_leader_open_a_term_once_in_a_minute() {
    let mut world = World::grouped(3, 2, 3);
    let deputy = world.stolen_key(1);
    let mut like = newest_header(&world, 0);
    let now = world.clock_of(Node::Leader(0)).unix;
    (like.core.issued_at, like.core.valid_until) = (now - 100, now - 10);
    (like.core.leader, like.core.epoch.term) = (deputy.public().clone(), Epoch::term_of(1, 1));
    let (before, first) = (world.terms(), world.epoch(0).unwrap().round());
    for round in 1..=300 {
        let bytes = ahead(&mut world, &deputy, &like, first + 100 * round);
        world.inject(Node::Edge(0), Node::Leader(0), &bytes);
        world.run_for(Duration::from_millis(100));
    }
    assert_eq!(world.terms() - before, 1, "whoever held such an epoch is brought above it, once");
    assert_eq!(world.leading(), [0]);
    assert!(world.follow(0, 0..3));
}

#[test]
fn members_that_a_revoked_leader_led_far_ahead_are_brought_back() {
    let mut world = World::grouped(2, 2, 4);
    let (here, there) = (
        [Node::Leader(0), Node::Edge(3)],
        [Node::Leader(1), Node::Edge(0), Node::Edge(1), Node::Edge(2), Node::Kgc],
    );
    world.part(&here, &there);
    world.run_until("the deputy's term", |world| world.follow(1, 0..3));
    let serial = world.leader_tokens[0].token.statement.id;
    world.command_kgc(KgcCommand::RevokeDrones(vec![quiver_ainq::Revoked::unknown(serial)]));
    // The terms that it opens, cut off from the rest, are far above those of its deputy.
    for _ in 0..2 {
        world.stop(Node::Leader(0));
        world.run_for(Duration::from_secs(1));
        world.start(Node::Leader(0));
        world.run_until("its own member follows", |world| world.follow(0, [3]));
        world.run_for(Duration::from_secs(2));
    }
    let strayed = world.epoch(0).unwrap();
    assert!(strayed > world.epoch(1).unwrap(), "{strayed}");
    world.stop(Node::Leader(0));
    let before = world.terms();
    world.network.heal();
    world.run_until("the strayed one follows, too", |world| world.follow(1, 0..4));
    assert!(world.terms() - before <= 2, "{}", world.terms() - before);
    world.run_for(SILENCE * 30);
    assert!(world.follow(1, 0..4));
    assert!(world.terms() - before <= 2, "{}", world.terms() - before);
}
