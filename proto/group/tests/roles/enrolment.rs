//! Enrolment: tokens, pins, repeats, refusals.

use std::time::Duration;

use quiver_ainq::{OperatorSecretKey, Revoked, Role, TokenGrant};
use quiver_enrolment::{KgcCommand, KgcEvent, KgcRecord};
use quiver_group::EdgeEvent;
use quiver_machine::RefusalReason;
use quiver_message::Message;

use quiver_testbed::{EPOCH_START, matching, token_grant};

use crate::world::{GROUP, Node, S, World, copy, decode};

fn refused(world: &World, edge: usize) -> Vec<RefusalReason> {
    let events = world.edge_events(edge).iter();
    events.filter_map(matching!(EdgeEvent::Refused(reason) => *reason)).collect()
}

#[test]
fn a_token_serves_one_key_for_ever() {
    let mut world = World::new(1);
    let token = world.token("twin");
    let first = world.add_edge_with(copy(&token));
    world.run_until("enrolled", |world| world.synced(first));
    // The same token without the first drone's state draws another secret value.
    let second = world.add_edge_with(token);
    world.run_for(Duration::from_secs(60));
    assert!(refused(&world, second).contains(&RefusalReason::TokenReused));
    assert!(!world.synced(second));
}

#[test]
fn a_crash_of_the_drone_during_enrolment_loses_nothing() {
    let mut world = World::new(2);
    // The reply gets lost, then the drone dies.
    world.lose_where(|packet| packet.from == Node::Kgc && packet.bytes.len() > 100);
    let edge = world.add_edge("edge");
    world.run_for(Duration::from_secs(1));
    assert!(
        world
            .kgc_records()
            .iter()
            .any(|record| matches!(record, KgcRecord::Issued { name, .. } if name == "edge"))
    );
    world.stop(Node::Edge(edge));
    world.tamper = None;
    world.start_edge(edge);
    world.run_until("enrolled after all", |world| world.synced(edge));
    assert!(world.kgc_events().iter().any(|event| matches!(event, KgcEvent::Repeated { .. })));
}

#[test]
fn a_restarted_kgc_remembers_tokens_and_answers() {
    let mut world = World::new(3);
    let token = world.token("edge");
    let first = world.add_edge_with(copy(&token));
    world.run_until("enrolled", |world| world.synced(first));
    world.stop(Node::Kgc);
    world.start_kgc();
    let thief = world.add_edge_with(token);
    world.run_for(Duration::from_secs(60));
    assert!(refused(&world, thief).contains(&RefusalReason::TokenReused));
}

#[test]
fn expired_foreign_and_revoked_tokens_are_refused_with_the_reason() {
    let mut world = World::new(4);
    let grant = |text: &str, expiry| TokenGrant { expiry, ..token_grant(text, Role::Edge, GROUP) };
    let late =
        world.operator.issue(&world.deployment, grant("late", EPOCH_START + 50), &mut world.rng).unwrap();
    let stranger = OperatorSecretKey::<S>::generate(&mut world.rng);
    let foreign =
        stranger.issue(&world.deployment, grant("foreign", EPOCH_START + 1_000_000), &mut world.rng).unwrap();
    let revoked = world.token("revoked");
    world.command_kgc(KgcCommand::RevokeTokens(vec![revoked.token.statement.id]));
    let cases = [
        (late, RefusalReason::TokenExpired),
        (foreign, RefusalReason::TokenForeign),
        (revoked, RefusalReason::TokenRevoked),
    ];
    for (token, reason) in cases {
        let edge = world.add_edge_with(token);
        world.run_for(Duration::from_secs(3));
        assert_eq!(refused(&world, edge).first(), Some(&reason));
    }
    // Of all drones only the leader was enrolled.
    assert_eq!(world.kgc().issued(), 1);
}

#[test]
fn who_knows_only_a_tokens_id_does_not_learn_how_the_token_stands() {
    let mut world = World::new(7);
    let [fresh, used, revoked] = ["fresh", "used", "revoked"].map(|name| world.token(name));
    let owner = world.add_edge_with(copy(&used));
    world.run_until("enrolled", |world| world.synced(owner));
    world.command_kgc(KgcCommand::RevokeTokens(vec![revoked.token.statement.id]));
    // The public part of a token is there, and a proof under its key is not.
    let deployment = world.deployment.clone();
    world.change_with(move |packet| {
        if let Ok(Message::EnrolRequest(mut request)) = Message::<S>::decode(&deployment, &packet.bytes) {
            *request.request.last_mut().unwrap() ^= 1;
            packet.bytes = Message::<S>::EnrolRequest(request).encode(&deployment);
        }
    });
    let spies = [fresh, used, revoked].map(|token| world.add_edge_with(token));
    world.run_for(Duration::from_secs(3));
    for spy in spies {
        let told = world.recorded.iter().filter(|f| f.from == Node::Kgc && f.to == Node::Edge(spy));
        let reasons = told.filter_map(|f| match decode(&world, f) {
            Message::Refusal(refusal) => Some(refusal.reason),
            _ => None,
        });
        let reasons: Vec<RefusalReason> = reasons.collect();
        assert!(
            !reasons.is_empty() && reasons.iter().all(|reason| *reason == RefusalReason::BadSignature),
            "{reasons:?}"
        );
    }
}

#[test]
fn a_name_is_held_by_one_drone_until_it_is_revoked() {
    let mut world = World::new(5);
    let first = world.add_edge("wren");
    world.run_until("enrolled", |world| world.synced(first));
    let second = world.add_edge("wren");
    world.run_for(Duration::from_secs(5));
    assert_eq!(refused(&world, second).first(), Some(&RefusalReason::NameTaken));
    let serial = world.tokens[first].token.statement.id;
    world.command_kgc(KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]));
    world.stop(Node::Kgc);
    world.start_kgc();
    world.run_until("the successor is in", |world| world.synced(second));
    assert!(!world.agree([first]));
}

#[test]
fn no_partial_key_travels_before_its_pin_is_durable() {
    let mut world = World::new(6);
    world.add_edge("edge");
    world.run_until("enrolled", |world| world.synced(0));
    let issued = world.kgc_records().iter().filter(|record| matches!(record, KgcRecord::Issued { .. }));
    assert_eq!(issued.count(), 2, "the leader and the edge");
}
