//! Tests that nobody is stranded, and nobody stays who may not: odd orders of events, memory that was rolled
//! back, clocks.

use quiver_ainq::{Revoked, Role, TokenGrant};
use std::time::Duration;

use quiver_enrolment::KgcCommand;
use quiver_group::{EdgeCommand, LeaderCommand, LeaderEvent};
use quiver_machine::{Input, Machine, Output, Route};
use quiver_message::Message;

use quiver_testbed::{EPOCH_START, token_grant};

use crate::world::{GROUP, Node, S, World, copy, decode, name};

#[test]
fn a_drone_revoked_while_it_waits_is_not_let_in() {
    let mut world = World::grouped(3, 2);
    let late = world.add_edge("late");
    world.run_until("asked", |w| w.leader().status().pending_joins == 1);
    let serial = world.tokens[late].token.statement.id;
    world.command_kgc(KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]));
    world.run_for(Duration::from_secs(60));
    let in_it = world.leader().members().any(|(_, n)| n.as_str() == "late");
    let held = world.leader().status().revocation_number;
    assert_eq!(held, world.kgc().revocation_number());
    assert!(!in_it && world.key(late) != Some(world.leader_key()), "a revoked drone is a member");
    assert!(world.edge(late).is_revoked(), "refused as revoked, it asks for the list that says so");
}

#[test]
fn a_crash_after_the_list_is_durable_keeps_no_revoked_member() {
    let mut world = World::grouped(4, 3);
    let serial = world.tokens[2].token.statement.id;
    world.run_for(Duration::from_secs(2));
    world.crash_after(Node::Leader, 1);
    world.command_kgc(KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]));
    world.run_for(Duration::from_secs(1));
    assert!(!world.alive(Node::Leader));
    world.start_leader();
    world.run_for(Duration::from_secs(120));
    let held = world.leader().status().revocation_number;
    assert_eq!(held, world.kgc().revocation_number());
    assert_ne!(world.key(2), Some(world.leader_key()), "the revoked member holds the new term's key");
}

#[test]
fn a_clock_ahead_makes_no_storm_of_questions() {
    let mut world = World::grouped(6, 1);
    world.skew_all(10_000);
    let before = world.recorded.len();
    world.disconnect_all(Node::Edge(0));
    world.connect(Node::Edge(0), Node::Leader, Route::Leader);
    world.run_for(Duration::from_secs(1));
    assert!(world.recorded.len() - before < 100, "{}", world.recorded.len() - before);
}

#[test]
fn a_checkpoint_remembers_an_enrolment_under_way() {
    let mut world = World::new(9);
    let checkpoint = world.leader().checkpoint();
    let deployment = world.deployment.clone();
    world.lose_where(move |f| {
        matches!(Message::<S>::decode(&deployment, &f.bytes), Ok(Message::EnrolReply(_)))
    });
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.kgc().issued(), 1);
    world.tamper = None;
    world.set_leader_records(checkpoint);
    world.restart_leader();
    world.run_for(Duration::from_secs(120));
    assert!(world.leader().status().name.is_some(), "{:?}", world.leader_events());
}

#[test]
fn who_was_leaving_when_it_crashed_still_leaves() {
    let mut world = World::grouped(10, 2);
    world.isolated.insert(Node::Edge(0));
    world.command_edge(0, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(1));
    world.stop(Node::Edge(0));
    world.isolated.clear();
    world.start_edge(0);
    world.run_for(Duration::from_secs(120));
    assert_eq!(world.leader().status().members, 1, "{:?}", world.edge(0).status());
}

#[test]
fn a_spare_spent_by_an_opening_is_not_offered_again() {
    let mut world = World::grouped(11, 2);
    world.disconnect_all(Node::Edge(0));
    world.stop(Node::Leader);
    world.leader_timing.validity = Duration::from_secs(100);
    world.start_leader_alone();
    world.connect(Node::Edge(1), Node::Leader, Route::Leader);
    world.run_for(Duration::from_secs(250));
    let mark = world.recorded.len();
    world.connect(Node::Edge(0), Node::Leader, Route::Leader);
    world.run_for(Duration::from_secs(15));
    let qs: Vec<u64> = world.recorded[mark..]
        .iter()
        .filter(|f| f.from == Node::Edge(0))
        .filter_map(|f| match decode(&world, f) {
            Message::JoinRequest(r) => Some(r.spare_q),
            _ => None,
        })
        .collect();
    // q = 1 was spent by the opening of the term.
    assert!(!qs.is_empty() && qs.iter().all(|q| *q > 1), "{qs:?}");
}

#[test]
fn an_eviction_of_one_that_waits_spoils_nobodys_join() {
    let mut world = World::grouped(14, 2);
    let late = world.add_edge("late");
    world.run_until("asked", |w| w.leader().status().pending_joins == 1);
    // Edge 0 joins again in the same batch and is evicted meanwhile.
    world.command_edge(0, EdgeCommand::Leave);
    world.command_edge(0, EdgeCommand::Join(name(GROUP)));
    world.run_until("both asked", |w| w.leader().status().pending_joins == 2);
    world.command_leader(LeaderCommand::Evict(name("edge-0")));
    world.run_for(Duration::from_secs(3));
    let failed = world.leader_events().iter().any(|e| matches!(e, LeaderEvent::RekeyFailed(_)));
    assert!(!failed && world.synced(late), "{:?}", world.leader_events());
}

#[test]
fn two_keys_of_one_identity_in_one_batch_are_noticed() {
    let mut world = World::new(15);
    world.run_for(Duration::from_secs(1));
    world.stop(Node::Leader);
    let first = world.add_edge("edge");
    world.run_for(Duration::from_secs(3));
    world.stop(Node::Kgc);
    world.set_kgc_records(Vec::new());
    world.start_kgc();
    let token = copy(&world.tokens[first]);
    let twin = world.add_edge_with(token);
    world.run_for(Duration::from_secs(3));
    world.start_leader();
    world.run_for(Duration::from_secs(5));
    assert!(!(world.synced(first) && world.synced(twin)), "both keys of one identity are members");
}

#[test]
fn an_edge_of_a_revoked_leader_looks_for_another() {
    let mut world = World::grouped(16, 1);
    let bytes = world.revoke_leader();
    world.inject(Node::Kgc, Node::Edge(0), &bytes);
    world.run_for(Duration::from_secs(120));
    let Output::Timeout(at) = world.edge_node(0).machine_mut().unwrap().poll_output() else { panic!() };
    let hellos = world
        .recorded
        .iter()
        .filter(|f| f.from == Node::Edge(0) && matches!(decode(&world, f), Message::JoinHello(_)))
        .count();
    assert!(
        at.is_some() || hellos > 1,
        "sleeps for ever although it wants the group and a leader is connected"
    );
}

#[test]
fn rolled_back_spares_do_not_strand_a_member() {
    let mut world = World::grouped(17, 2);
    let old = world.state(0);
    world.restart_leader();
    world.run_for(Duration::from_secs(3));
    assert!(world.agree(0..2));
    world.stop(Node::Edge(0));
    world.set_state(0, old);
    world.start_edge(0);
    world.run_for(Duration::from_secs(60));
    assert!(world.agree(0..2), "rolled back, first");
    world.restart_leader();
    world.run_for(Duration::from_secs(280));
    assert!(world.agree(0..2), "{:?}", world.edge_events(0).iter().rev().take(4).collect::<Vec<_>>());
}

#[test]
fn rolled_back_boot_number_does_not_strand_a_member() {
    let mut world = World::grouped(18, 2);
    let old = world.state(0);
    for _ in 0..4 {
        world.restart_edge(0);
        world.run_for(Duration::from_secs(15));
    }
    assert!(world.agree(0..2));
    world.stop(Node::Edge(0));
    world.set_state(0, old);
    world.start_edge(0);
    world.run_for(Duration::from_secs(280));
    assert!(world.agree(0..2), "{:?}", world.blamed_by_leader().last());
}

#[test]
fn a_member_whose_identity_ended_is_out() {
    let mut world = World::new(21);
    let (not_after, expiry) = (EPOCH_START + 1000, EPOCH_START + 900);
    let grant = TokenGrant { not_after, expiry, ..token_grant("short", Role::Edge, GROUP) };
    let token = world.operator.issue(&world.deployment, grant, &mut world.rng).unwrap();
    let edge = world.add_edge_with(token);
    world.run_until("in", |w| w.synced(edge));
    world.run_for(Duration::from_secs(2000));
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    assert_ne!(world.key(edge), Some(world.leader_key()), "still keyed 1000 s after its not_after");
}

#[test]
fn an_enrollee_falls_back_to_the_kgc_that_is_still_there() {
    use quiver_group::Edge;
    use quiver_machine::Peer;
    let mut world = World::new(23);
    let edge = world.add_edge("edge");
    let mut machine = Edge::<S>::new(world.edge_config(edge), None).unwrap();
    let now = world.now();
    for peer in [1, 2] {
        machine.handle_input(now, Input::Connected { peer: Peer(peer), route: Route::Kgc }, &mut world.rng);
    }
    machine.handle_input(now, Input::Disconnected { peer: Peer(2) }, &mut world.rng);
    let mut later = now;
    let mut last = None;
    for _ in 0..100 {
        loop {
            if let Output::Timeout(at) = machine.poll_output() {
                last = at;
                break;
            }
        }
        later.monotonic += Duration::from_secs(1);
        machine.handle_input(later, Input::Timeout, &mut world.rng);
    }
    assert!(last.is_some(), "no deadline: enrolment sleeps although KGC 1 is connected");
}

#[test]
fn members_ahead_of_a_restored_leader_come_back() {
    let mut world = World::grouped(24, 2);
    let old = world.leader_records().to_vec();
    for _ in 0..3 {
        world.restart_leader();
        world.run_for(Duration::from_secs(3));
    }
    assert!(world.agree(0..2));
    world.stop(Node::Leader);
    world.set_leader_records(old);
    world.start_leader();
    let epoch = world.leader_epoch();
    world.run_for(Duration::from_secs(280));
    assert!(
        world.agree(0..2),
        "{:?} -> {:?} {:?}",
        epoch,
        world.leader_epoch(),
        world.blamed_by_edge(0).last()
    );
}

#[test]
fn who_gives_a_join_up_is_no_member() {
    let mut world = World::grouped(25, 2);
    let late = world.add_edge("late");
    world.run_until("asked", |w| w.leader().status().pending_joins == 1);
    world.command_edge(late, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(20_000));
    assert_eq!(world.leader().status().members, 2, "a ghost is keyed for ever");
}

#[test]
fn a_clock_at_zero_and_a_key_valid_for_ever_overflow_nothing() {
    let mut world = World::new(26);
    world.leader_timing.validity = Duration::from_secs(u64::MAX);
    world.stop(Node::Leader);
    world.set_leader_records(Vec::new());
    world.start_leader();
    let zero = -((EPOCH_START + world.time().as_secs()) as i64);
    world.skew_all(zero);
    let edge = world.add_edge("edge");
    world.run_for(Duration::from_secs(5));
    assert!(world.synced(edge));
    assert_eq!(world.edge(edge).status().valid_until, Some(u64::MAX));
}
