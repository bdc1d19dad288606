//! Tests of which drones open which envelopes.

use std::time::Duration;

use quiver_abe::envelope::EnvelopeError;
use quiver_ainq::{Name, Revoked};
use quiver_enrolment::KgcCommand;
use quiver_envelope::{Envelope, EnvelopeCommand, EnvelopeEvent, EnvelopeMessage, FEATURE, offence};
use quiver_group::LeaderCommand;
use quiver_machine::{Either, Offence};
use quiver_message::Message;

use crate::authority::{
    envelope_edge, envelope_events, give, last_envelope, not_satisfied, opened, order, swarm,
};
use crate::world::{Node, S};

#[test]
fn an_order_sealed_to_a_role_opens_at_exactly_those_who_have_it() {
    let (mut world, authority) = swarm(1, &["scout, sector:7", "scout", "medic, sector:7", ""]);
    order(&mut world, &authority, "scout and sector:7", b"go north");
    assert_eq!(opened(&world, 0), [(b"go north".to_vec(), Some("leader".into()))]);
    for edge in 1..4 {
        assert!(opened(&world, edge).is_empty());
    }
    assert_eq!([0, 1, 2, 3].map(|edge| not_satisfied(&world, edge)), [0, 1, 1, 0]);
    order(&mut world, &authority, "scout or sector:7", b"go south");
    assert_eq!([0, 1, 2, 3].map(|edge| opened(&world, edge).len()), [2, 1, 1, 0]);
}

#[test]
fn drones_seal_to_each_other_and_the_leader_passes_by_what_is_not_for_it() {
    let (mut world, authority) = swarm(2, &["scout", "medic"]);
    envelope_edge(&mut world, 0, authority.seal("medic", b"help", true));
    world.run_for(Duration::from_millis(500));
    assert_eq!(opened(&world, 1), [(b"help".to_vec(), Some("edge-0".into()))]);
    assert!(world.blamed_by_leader().is_empty());
    let at_leader = world.leader_events().iter().filter_map(Either::right);
    // Its keys do not satisfy it: it has parameters alone.
    assert_eq!(at_leader.count(), 1);
}

#[test]
fn what_nobody_signed_is_nobodys() {
    let (mut world, authority) = swarm(3, &["scout", "medic"]);
    envelope_edge(&mut world, 0, authority.seal("medic", b"who am I", false));
    world.run_for(Duration::from_millis(500));
    assert_eq!(opened(&world, 1), [(b"who am I".to_vec(), None)]);
}

#[test]
fn an_envelope_opens_once_however_often_it_comes() {
    let (mut world, authority) = swarm(4, &["scout", "medic"]);
    order(&mut world, &authority, "scout", b"once");
    order(&mut world, &authority, "scout", b"twice");
    let again = last_envelope(&world, Node::Leader);
    for _ in 0..5 {
        world.inject(Node::Leader, Node::Edge(0), &again);
    }
    world.run_for(Duration::from_millis(500));
    assert_eq!(opened(&world, 0).len(), 2);
    assert!(world.blamed_by_edge(0).is_empty());
    assert_eq!(not_satisfied(&world, 1), 1);
}

#[test]
fn a_changed_envelope_is_blamed_and_not_opened() {
    let (mut world, authority) = swarm(5, &["scout"]);
    world.isolated.insert(Node::Edge(0));
    order(&mut world, &authority, "scout", b"go north");
    world.isolated.clear();
    let good = last_envelope(&world, Node::Leader);
    for from_the_end in [1, 40, 90] {
        let mut bad = good.clone();
        let at = bad.len() - from_the_end;
        bad[at] ^= 1;
        world.inject(Node::Leader, Node::Edge(0), &bad);
    }
    world.run_for(Duration::from_millis(500));
    assert!(opened(&world, 0).is_empty());
    let blamed = world.blamed_by_edge(0);
    assert_eq!(blamed.len(), 3);
    let of_envelopes = |offence: &&Offence| matches!(offence, Offence::Feature { feature: FEATURE, .. });
    assert!(blamed.iter().all(of_envelopes), "{blamed:?}");
    world.inject(Node::Leader, Node::Edge(0), &good);
    world.run_for(Duration::from_millis(500));
    assert_eq!(opened(&world, 0).len(), 1);
}

#[test]
fn another_schemes_name_beside_a_ciphertext_does_not_keep_the_genuine_opening_out() {
    let (mut world, authority) = swarm(24, &["scout"]);
    world.isolated.insert(Node::Edge(0));
    order(&mut world, &authority, "scout", b"go north");
    world.isolated.clear();
    let good = last_envelope(&world, Node::Leader);
    let at = good.windows(10).position(|window| window == b"fabeo22-cp").unwrap();
    for scheme in [b"fabeo22-kp", b"elsewhere!"] {
        let mut bad = good.clone();
        bad[at..at + 10].copy_from_slice(scheme);
        world.inject(Node::Leader, Node::Edge(0), &bad);
    }
    world.run_for(Duration::from_millis(500));
    let blamed = world.blamed_by_edge(0);
    assert_eq!(not_satisfied(&world, 0), 0);
    let wrong =
        ["fabeo22-kp", "elsewhere!"].map(|scheme| offence(&EnvelopeError::WrongScheme(scheme.into())));
    assert_eq!(blamed, [&wrong[0], &wrong[1]]);
    order(&mut world, &authority, "scout", b"go on");
    assert_eq!(opened(&world, 0).len(), 2, "the second, and the opening that was asked for");
}

#[test]
fn what_was_sealed_as_a_file_or_said_to_another_group_is_not_shown_as_said_to_this_one() {
    let (mut world, authority) = swarm(28, &["scout"]);
    let now = world.now().unix;
    for (group, read) in [(None, 0), (Some("beta"), 0), (Some("alpha"), 1)] {
        let sealed = authority.sealed("scout", b"go north", group, now);
        let message = Message::<S>::from(EnvelopeMessage::Envelope(Envelope { sealed }));
        let message = message.encode(&world.deployment);
        world.inject(Node::Leader, Node::Edge(0), &message);
        world.run_for(Duration::from_millis(500));
        assert_eq!((opened(&world, 0).len(), not_satisfied(&world, 0)), (read, 0));
    }
    assert!(world.blamed_by_edge(0).is_empty());
}

#[test]
fn somebody_outside_the_group_opens_what_its_attributes_fit() {
    let (mut world, authority) = swarm(6, &["scout", "scout"]);
    world.command_leader(LeaderCommand::Evict(Name::new("edge-1").unwrap()));
    world.run_for(Duration::from_secs(5));
    order(&mut world, &authority, "scout", b"go north");
    assert!(!world.synced(1));
    assert_eq!([0, 1].map(|edge| opened(&world, edge).len()), [1, 1]);
}

#[test]
fn the_signature_of_a_revoked_drone_counts_no_more() {
    let (mut world, authority) = swarm(7, &["scout", "medic"]);
    let public = world.edge(0).keypair().unwrap().public().clone();
    world.command_kgc(KgcCommand::RevokeDrones(vec![Revoked::from(&public.identity)]));
    world.run_for(Duration::from_secs(120));
    envelope_edge(&mut world, 0, authority.seal("medic", b"trust me", true));
    world.run_for(Duration::from_millis(500));
    assert!(opened(&world, 1).is_empty());
    let wrong = offence(&EnvelopeError::WrongSignature);
    assert_eq!(world.blamed_by_edge(1), [&wrong]);
}

#[test]
fn keys_that_come_later_open_what_did_not_fit_before() {
    let (mut world, authority) = swarm(8, &["medic"]);
    order(&mut world, &authority, "scout", b"go north");
    let sealed = last_envelope(&world, Node::Leader);
    assert_eq!((opened(&world, 0).len(), not_satisfied(&world, 0)), (0, 1));
    give(&mut world, 0, &authority.key("scout"));
    world.inject(Node::Leader, Node::Edge(0), &sealed);
    world.run_for(Duration::from_millis(500));
    assert_eq!(opened(&world, 0).len(), 1);
}

#[test]
fn what_cannot_be_sealed_is_told() {
    let (mut world, authority) = swarm(9, &["scout", ""]);
    let failed = |world: &crate::world::World, edge: usize| {
        envelope_events(world, edge).filter(|event| matches!(event, EnvelopeEvent::NotSent(_))).count()
    };
    envelope_edge(&mut world, 1, authority.seal("scout", b"no parameters", true));
    assert_eq!(failed(&world, 1), 1);
    envelope_edge(&mut world, 0, authority.seal("scout", &[0; 65_537], true));
    assert_eq!(failed(&world, 0), 1);
    let EnvelopeCommand::Seal { target, data, .. } = authority.seal("scout", b"", true) else { panic!() };
    let elsewhere = EnvelopeCommand::Seal { authority: [1; 32], target, data, signed: true };
    envelope_edge(&mut world, 0, elsewhere);
    assert_eq!(failed(&world, 0), 2);
    envelope_edge(&mut world, 0, authority.seal("scout", &[0; 65_536], true));
    assert_eq!(failed(&world, 0), 2);
}
