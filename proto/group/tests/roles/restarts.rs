//! Crashes and restarts of every role.

use std::time::Duration;

use quiver_ainq::Revoked;
use quiver_enrolment::KgcCommand;
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand};
use quiver_message::Message;

use crate::world::{Node, World, decode, name};

#[test]
fn a_restarted_leader_serves_the_group_again_without_new_joins_or_enrolments() {
    let mut world = World::grouped(1, 30);
    let (before, issued) = (world.leader_epoch(), world.kgc().issued());
    let joins = |world: &World| {
        let events = world.leader_events().iter();
        events.filter(|event| matches!(event, quiver_group::LeaderEvent::Joined { .. })).count()
    };
    let joined = joins(&world);
    world.stop(Node::Leader);
    world.run_for(Duration::from_secs(5));
    world.start_leader();
    world.run_until("all follow", |world| world.leader().status().epoch.is_some() && world.agree(0..30));
    assert!(world.leader_epoch() > before);
    assert!((1..=4096).contains(&(world.leader_epoch().round() - before.round())));
    assert_eq!(world.kgc().issued(), issued);
    assert_eq!(joins(&world), joined);
}

#[test]
fn a_restarted_leader_refuses_the_revoked_though_it_reaches_no_kgc() {
    let mut world = World::grouped(12, 3);
    let serial = world.tokens[2].token.statement.id;
    world.command_kgc(KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]));
    world.run_for(Duration::from_secs(5));
    let number = world.kgc().revocation_number();
    world.stop(Node::Kgc);
    world.restart_leader();
    assert!(number > 0);
    assert_eq!(world.leader().status().revocation_number, number);
    world.run_until("the others follow", |world| {
        world.leader().status().epoch.is_some() && world.agree([0, 1])
    });
    assert_ne!(world.key(2), Some(world.leader_key()));
}

#[test]
fn spare_points_are_replaced_so_that_a_leader_may_restart_again_and_again() {
    let mut world = World::grouped(2, 5);
    for _ in 0..4 {
        world.restart_leader();
        world.run_until("all follow", |world| world.leader().status().epoch.is_some() && world.agree(0..5));
        world.run_for(Duration::from_secs(2));
    }
    let joins = world
        .leader_events()
        .iter()
        .filter(|event| matches!(event, quiver_group::LeaderEvent::Joined { .. }));
    assert_eq!(joins.count(), 5);
}

#[test]
fn a_leader_that_restarts_before_new_spares_came_lets_the_members_join_again() {
    let mut world = World::grouped(3, 5);
    // Two starts in a row, and nobody heard of the first: all spare points are spent.
    world.stop(Node::Leader);
    world.isolated.insert(Node::Leader);
    world.start_leader();
    world.run_for(Duration::from_secs(1));
    world.stop(Node::Leader);
    world.isolated.clear();
    world.start_leader();
    world.run_until("all in again", |world| world.leader().status().epoch.is_some() && world.agree(0..5));
}

#[test]
fn a_leader_remembers_by_its_checkpoint_as_by_its_log() {
    let mut world = World::grouped(4, 6);
    world.command_leader(LeaderCommand::Evict(quiver_ainq::Name::new("edge-3").unwrap()));
    world.run_for(Duration::from_secs(1));
    let checkpoint = world.leader().checkpoint();
    // A compaction that raced with the last record applies it twice.
    let last = world.leader_records().last().unwrap().clone();
    world.set_leader_records(checkpoint.into_iter().chain([last]).collect());
    world.restart_leader();
    world.run_until("all follow", |world| {
        world.leader().status().epoch.is_some() && world.agree([0, 1, 2, 4, 5])
    });
    assert_eq!(world.key(3), None);
    assert_eq!(world.leader().status().members, 5);
}

#[test]
fn a_whole_log_may_follow_the_checkpoint_that_takes_its_place() {
    let mut world = World::grouped(12, 4);
    world.command_leader(LeaderCommand::Evict(quiver_ainq::Name::new("edge-3").unwrap()));
    world.run_for(Duration::from_secs(1));
    let checkpoint = world.leader().checkpoint();
    world.set_leader_records(checkpoint.into_iter().chain(world.leader_records().to_vec()).collect());
    world.restart_leader();
    world.run_until("all follow", |world| world.leader().status().epoch.is_some() && world.agree([0, 1, 2]));
    assert_eq!(world.key(3), None);
    assert_eq!(world.leader().status().members, 3);
}

#[test]
fn a_restarted_edge_neither_speaks_nor_reads_until_it_is_synced() {
    let mut world = World::grouped(5, 3);
    let before = world.leader_epoch();
    world.stop(Node::Edge(1));
    world.isolated.insert(Node::Edge(1));
    world.start_edge(1);
    assert!(!world.synced(1));
    world.command_edge(
        1,
        EdgeCommand::Send { channel: quiver_ainq::Name::new("c").unwrap(), data: vec![1], signed: false },
    );
    assert!(world.edge_events(1).iter().any(|event| matches!(event, EdgeEvent::SendFailed(_))));
    world.isolated.clear();
    world.run_until("synced again", |world| world.synced(1));
    assert!(world.leader_epoch() > before, "the leader renews the key because a member lost it");
    world.run_for(Duration::from_secs(1));
    assert!(world.agree(0..3));
    assert_eq!(world.edge(1).status().boot_no, 2);
}

#[test]
fn many_restarts_make_at_most_one_epoch_in_ten_seconds() {
    let mut world = World::grouped(6, 12);
    let before = world.leader_epoch().counter;
    for edge in 0..12 {
        world.restart_edge(edge);
        world.run_for(Duration::from_millis(500));
    }
    world.run_for(Duration::from_secs(30));
    assert!(world.agree(0..12));
    assert!(world.leader_epoch().counter - before <= 3, "{:?}", world.leader_epoch());
}

#[test]
fn an_edge_that_lost_its_state_needs_a_new_token() {
    let mut world = World::grouped(7, 2);
    world.stop(Node::Edge(0));
    world.set_state(0, None);
    world.start_edge(0);
    world.run_for(Duration::from_secs(30));
    assert!(!world.synced(0));
    assert!(world.agree([1]));
}

#[test]
fn a_kgc_does_not_start_without_a_revocation_list_that_it_stored() {
    let mut world = World::grouped(10, 1);
    let serial = world.tokens[0].token.statement.id;
    world.command_kgc(KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]));
    let mut other = World::new(11);
    let foreign = other.restored_kgc(world.kgc_records().to_vec());
    assert!(foreign.is_err());
    let mut records = world.kgc_records().to_vec();
    for record in &mut records {
        if let quiver_enrolment::KgcRecord::RevocationList { list, .. } = record {
            *list.last_mut().unwrap() ^= 1;
        }
    }
    assert!(world.restored_kgc(records).is_err());
    assert!(world.restored_kgc(world.kgc_records().to_vec()).is_ok());
}

#[test]
fn stored_state_of_another_deployment_or_damaged_is_refused() {
    use quiver_group::edge::RestoreError;
    use quiver_machine::Snapshot;
    let world = World::grouped(8, 1);
    let other = World::grouped(9, 1);
    let config = world.edge_config(0);
    let foreign = quiver_group::Edge::new(config, other.state(0).as_ref());
    assert_eq!(foreign.err(), Some(RestoreError::Foreign));
    let state = world.state(0).unwrap();
    let bytes = state.as_bytes();
    for cut in [0, 1, 10, bytes.len() / 2, bytes.len() - 1] {
        let damaged = Snapshot::new(bytes[..cut].to_vec());
        assert!(quiver_group::Edge::new(world.edge_config(0), Some(&damaged)).is_err(), "cut at {cut}");
    }
    let foreign = quiver_group::Leader::new(world.leader_config(), other.leader_records().to_vec());
    assert_eq!(foreign.err(), Some(RestoreError::Foreign));
}

fn joined(world: &World) -> usize {
    let events = world.leader_events().iter();
    events.filter(|event| matches!(event, quiver_group::LeaderEvent::Joined { .. })).count()
}

#[test]
fn an_edge_brought_back_with_its_memory_is_unsynced_and_sends_as_after_a_start() {
    let mut world = World::grouped(31, 5);
    let joins = joined(&world);
    let say = |world: &mut World| {
        let mark = world.recorded.len();
        let send = EdgeCommand::Send { channel: name("chat"), data: b"words".to_vec(), signed: false };
        world.command_edge(2, send);
        let said = world.recorded[mark..].iter().filter(|packet| packet.from == Node::Edge(2));
        said.filter_map(|packet| match decode(world, packet) {
            Message::GroupMessage(message) => Some((message.frame.boot_no, message.frame.salt)),
            _ => None,
        })
        .next()
    };
    let before = say(&mut world).unwrap();
    world.resume(Node::Edge(2));
    let status = world.edge(2).status();
    assert!(!status.synced && status.boot_no == before.0 + 1);
    assert_eq!(say(&mut world), None, "nothing before a leader has said what is current");
    world.run_until("in step again", |world| world.agree(0..5));
    let after = say(&mut world).unwrap();
    assert!(after.0 == before.0 + 1 && after.1 != before.1);
    // Durable: a start counts on from there. And nobody had to join.
    world.restart_edge(2);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.edge(2).status().boot_no, before.0 + 2);
    assert_eq!(joined(&world), joins);
}

#[test]
fn a_leader_brought_back_with_its_memory_signs_no_further_epoch_of_its_term() {
    let mut world = World::grouped(32, 5);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    let (before, joins, mark) = (world.leader_epoch(), joined(&world), world.recorded.len());
    // As long as a copy of it goes on with the term, the next epoch is that one's.
    world.resume(Node::Leader);
    assert!(world.leader_epoch().round() > before.round());
    world.command_leader(LeaderCommand::Rekey);
    world.run_until("all follow", |world| world.agree(0..5));
    let headers = world.recorded[mark..].iter().filter_map(|packet| match decode(&world, packet) {
        Message::Rekey(rekey) => Some(rekey.header.core.epoch),
        _ => None,
    });
    assert!(headers.into_iter().all(|epoch| epoch <= before || epoch.round() > before.round()));
    assert_eq!(joined(&world), joins);
    // Again and again it does no harm.
    for _ in 0..3 {
        world.run_for(Duration::from_secs(60));
        world.resume(Node::Leader);
        (0..5).for_each(|edge| world.resume(Node::Edge(edge)));
        world.run_until("all follow", |world| world.agree(0..5));
    }
    assert_eq!(joined(&world), joins);
}
