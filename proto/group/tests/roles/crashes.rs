//! A crash between any two outputs, so also between making something durable and saying it.

use std::time::Duration;

use quiver_enrolment::KgcEvent;
use quiver_group::{EdgeCommand, LeaderCommand};

use quiver_testbed::matching;

use crate::world::{Node, World};

/// Plays a life (enrol, join, renew, leave, restart of the leader) in which `node` dies after `outputs`
/// outputs and comes back a little later. Returns whether it died.
fn life(node: Node, outputs: u32) -> bool {
    let mut world = World::new(u64::from(outputs));
    world.run_for(Duration::from_secs(1));
    world.crash_after(node, outputs);
    for index in 0..4 {
        world.add_edge(&format!("edge-{index}"));
    }
    let mut died = false;
    for second in 0..90 {
        world.run_for(Duration::from_secs(1));
        if !world.alive(node) && !died {
            died = true;
            match node {
                Node::Kgc => world.start_kgc(),
                Node::Leader => world.start_leader(),
                Node::Edge(edge) => world.start_edge(edge),
            }
        }
        match second {
            30 => world.command_leader(LeaderCommand::Rekey),
            40 => world.command_edge(3, EdgeCommand::Leave),
            50 if node != Node::Leader => {
                world.restart_leader();
            }
            _ => {}
        }
    }
    world.spare(node);
    world.run_for(Duration::from_secs(60));
    let states = world.edge_nodes().map(|edge| edge.machine().map(quiver_group::Edge::status));
    let states = states.map(|status| status.map(|status| (status.epoch, status.synced))).collect::<Vec<_>>();
    assert!(
        world.agree(0..3),
        "{node:?} died after {outputs} outputs: {:?} {states:?}",
        world.leader_epoch()
    );
    assert_eq!(world.key(3), None, "{node:?} died after {outputs} outputs");
    let reused = |event: &KgcEvent| {
        matches!(event, KgcEvent::Refused { reason: quiver_machine::RefusalReason::TokenReused, .. })
    };
    assert!(
        !world.kgc_events().iter().any(reused),
        "{node:?} after {outputs}: a drone forgot what it had asked with"
    );
    assert_eq!(world.kgc().issued(), 5);
    for edge in world.edge_nodes() {
        let epochs = edge
            .events
            .iter()
            .filter_map(matching!(quiver_group::EdgeEvent::KeyActivated { epoch, .. } => *epoch));
        assert!(epochs.collect::<Vec<_>>().is_sorted(), "an epoch went back: {node:?} after {outputs}");
    }
    died
}

fn dies_everywhere(node: Node) {
    let mut outputs = 0;
    while life(node, outputs) {
        outputs += 1;
    }
    assert!(outputs > 10, "{node:?} lived too quietly to prove anything: {outputs}");
}

#[test]
fn a_kgc_may_die_between_any_two_outputs() {
    dies_everywhere(Node::Kgc);
}

#[test]
fn a_leader_may_die_between_any_two_outputs() {
    dies_everywhere(Node::Leader);
}

#[test]
fn an_edge_may_die_between_any_two_outputs() {
    dies_everywhere(Node::Edge(1));
}
