//! Evictions and revocations.

use std::time::Duration;

use quiver_ainq::{Name, Revoked};
use quiver_enrolment::KgcCommand;
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand, LeaderEvent};
use quiver_machine::RefusalReason;

use quiver_testbed::token_grant;

use crate::world::{GROUP, Node, World};

#[test]
fn an_evicted_drone_is_out_at_once_and_stays_out() {
    let mut world = World::grouped(1, 5);
    world.command_leader(LeaderCommand::Evict(Name::new("edge-1").unwrap()));
    world.run_for(Duration::from_millis(50));
    assert!(world.agree([0, 2, 3, 4]));
    assert!(world.edge_events(1).contains(&EdgeEvent::Evicted));
    world.command_edge(1, EdgeCommand::Join(Name::new(GROUP).unwrap()));
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.key(1), None);
    assert!(world.edge_events(1).contains(&EdgeEvent::Refused(RefusalReason::Evicted)));
}

#[test]
fn an_evicted_drone_that_heard_nothing_cannot_read_on() {
    let mut world = World::grouped(2, 3);
    world.isolated.insert(Node::Edge(0));
    world.command_leader(LeaderCommand::Evict(Name::new("edge-0").unwrap()));
    world.run_for(Duration::from_secs(1));
    assert_ne!(world.key(0), Some(world.leader_key()));
    world.isolated.clear();
    world.run_for(Duration::from_secs(120));
    assert_ne!(world.key(0), Some(world.leader_key()));
}

#[test]
fn evicting_a_stranger_says_so() {
    let mut world = World::grouped(3, 1);
    let epoch = world.leader_epoch();
    let name = Name::new("nobody").unwrap();
    world.command_leader(LeaderCommand::Evict(name.clone()));
    assert!(world.leader_events().contains(&LeaderEvent::NoSuchMember(name)));
    assert_eq!(world.leader_epoch(), epoch);
}

#[test]
fn a_revoked_member_is_put_out_blocked_and_everybody_learns_the_list() {
    let mut world = World::grouped(4, 4);
    let serial = world.tokens[2].token.statement.id;
    world.command_kgc(KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]));
    world.run_for(Duration::from_secs(5));
    assert!(world.agree([0, 1, 3]));
    assert_ne!(world.key(2), Some(world.leader_key()));
    assert!(world.blocked.contains(&(Node::Leader, Node::Edge(2))));
    // It was sent the list before, and after a restart it knows by itself that it need not ask.
    assert!(world.edge(2).is_revoked());
    world.restart_edge(2);
    world.run_for(Duration::from_secs(600));
    let again = world.edge_events(2).iter().rev().take_while(|event| matches!(event, EdgeEvent::Refused(_)));
    assert_eq!(again.count(), 2, "told of the list, and at the start; it was refused by nobody");
    assert!(world.edge(2).is_revoked());
    for edge in [0, 1, 3] {
        assert!(heard_of_list(world.edge_events(edge)), "edge {edge}");
    }
}

fn heard_of_list(events: &[EdgeEvent]) -> bool {
    events.iter().any(|event| matches!(event, EdgeEvent::RevocationList { .. }))
}

#[test]
fn a_revoked_leader_leads_nobody() {
    let mut world = World::grouped(5, 3);
    let bytes = world.revoke_leader();
    // From anyone: here from the KGC directly.
    for edge in 0..3 {
        world.inject(Node::Kgc, Node::Edge(edge), &bytes);
    }
    world.run_for(Duration::from_secs(60));
    for edge in 0..3 {
        assert_eq!(world.key(edge), None);
    }
}

#[test]
fn a_drone_without_the_group_in_its_identity_needs_the_operators_word() {
    let mut world = World::new(6);
    let grant = token_grant("guest", quiver_ainq::Role::Edge, "bravo");
    let token = world.operator.issue(&world.deployment, grant, &mut world.rng).unwrap();
    let serial = token.token.statement.id;
    let guest = world.add_edge_with(token);
    world.run_for(Duration::from_secs(10));
    assert!(world.edge_events(guest).contains(&EdgeEvent::Refused(RefusalReason::NotAuthorised)));
    // A former drone of that name was allowed: the permission does not hold for the present drone of the
    // name.
    world.command_leader(LeaderCommand::Allow([9; 16]));
    world.run_for(Duration::from_secs(30));
    assert!(!world.synced(guest));
    world.command_leader(LeaderCommand::Allow(serial));
    world.run_until("let in", |world| world.synced(guest));
}

#[test]
fn edge_joins_nobody_under_a_stale_list_where_that_is_refused() {
    let mut world = World::grouped(31, 2);
    world.command_kgc(KgcCommand::RevokeDrones(vec![Revoked::unknown([0xaa; 16])]));
    world.run_for(Duration::from_secs(65));
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(5));
    assert!([0, 1].iter().all(|edge| heard_of_list(world.edge_events(*edge))));
    world.stop(Node::Kgc);
    world.edge_node(0).map_machine(quiver_group::Edge::with_stale_lists_refused);
    world.skew_all(2 * 86_400);
    for edge in [0, 1] {
        world.command_edge(edge, EdgeCommand::Leave);
    }
    world.run_for(Duration::from_secs(60));
    for edge in [0, 1] {
        world.command_edge(edge, EdgeCommand::Join(Name::new(GROUP).unwrap()));
    }
    world.run_for(Duration::from_secs(60));
    assert!(world.synced(1) && !world.synced(0));
    assert!(world.edge_events(0).contains(&EdgeEvent::RevocationsStale));
    // Once the KGC is back and has signed another, the leader has it, and who asks the leader.
    world.start_kgc();
    world.run_for(Duration::from_secs(600));
    assert!(world.synced(0) && world.agree([0, 1]));
}
