//! Tests of how the members of a tree receive an epoch: all wraps, or each its own path.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::{EpochPart, StrategyKind};
use quiver_group::EdgeCommand;
use quiver_message::Message;

use crate::STRATEGY;
use crate::world::{Node, World, decode};

/// Edges of the group.
const EDGES: usize = 64;

/// A group whose leader starts again, with a medium that is shared or not.
fn grouped(seed: u64, shared_medium: bool) -> World {
    let mut world = World::grouped(seed, EDGES);
    world.shared_medium = shared_medium;
    world.restart_leader();
    world.run_for(Duration::from_secs(60));
    assert!(world.agree(0..EDGES));
    world
}

/// The parts of epochs that came to each edge since then.
fn parts(world: &World, mark: usize) -> BTreeMap<usize, Vec<EpochPart>> {
    let mut parts = BTreeMap::<_, Vec<_>>::new();
    for packet in &world.recorded[mark..] {
        if let Node::Edge(edge) = packet.to
            && let Message::Rekey(rekey) = decode(world, packet)
            && let Some(part) = rekey.part
        {
            parts.entry(edge).or_default().push(part);
        }
    }
    parts
}

/// Parts that came to each member when every `every`th leaves, and all others have the new key.
fn told(world: &mut World, every: usize) -> BTreeMap<usize, Vec<EpochPart>> {
    let mark = world.recorded.len();
    (0..EDGES).step_by(every).for_each(|edge| world.command_edge(edge, EdgeCommand::Leave));
    world.run_for(Duration::from_secs(2));
    assert!(world.agree((0..EDGES).filter(|edge| edge % every > 0)));
    parts(world, mark)
}

#[test]
fn each_member_is_sent_the_wraps_on_its_path_where_all_are_many() {
    if STRATEGY == StrategyKind::Flat {
        return;
    }
    let mut world = grouped(1, false);
    let told = told(&mut world, 8);
    assert_eq!(told.len(), EDGES - EDGES / 8);
    for (edge, parts) in told {
        assert!(
            matches!(&parts[..], [EpochPart::Delta(wraps)] if wraps.is_part()),
            "once to edge {edge}: {parts:?}"
        );
    }
}

#[test]
fn a_member_that_missed_its_wraps_is_sent_them_again() {
    if STRATEGY == StrategyKind::Flat {
        return;
    }
    let mut world = grouped(2, false);
    let mark = world.recorded.len();
    world.isolated.insert(Node::Edge(1));
    (0..EDGES).step_by(8).for_each(|edge| world.command_edge(edge, EdgeCommand::Leave));
    world.run_for(Duration::from_secs(2));
    world.isolated.clear();
    assert!(!world.agree([1, 2]));
    world.run_for(Duration::from_secs(10));
    assert!(world.agree((0..EDGES).filter(|edge| edge % 8 > 0)));
    let sent = &parts(&world, mark)[&1];
    assert!(sent.iter().all(|part| matches!(part, EpochPart::Delta(wraps) if wraps.is_part())), "{sent:?}");
}

#[test]
fn few_wraps_and_all_over_a_shared_medium_go_out_once_for_all() {
    if STRATEGY == StrategyKind::Flat {
        return;
    }
    for (every, shared_medium) in [(EDGES, false), (8, true)] {
        let mut world = grouped(3, shared_medium);
        let told = told(&mut world, every);
        for edge in (0..EDGES).filter(|edge| edge % every > 0) {
            let once = matches!(&told[&edge][..], [EpochPart::Delta(wraps)] if !wraps.is_part());
            assert!(once, "once to edge {edge}: {told:?}");
        }
    }
}
