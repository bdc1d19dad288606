//! A deputy whose copy is older than the group: nobody is left behind for good.

use std::time::Duration;

use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand, LeaderEvent};

use crate::world::{Node, World};

#[test]
fn a_member_whose_slot_is_anothers_in_the_deputys_copy_joins_again() {
    let mut world = World::grouped(1, 2, 4);
    // From here on the deputy hears nothing: one leaves, and another takes its slot.
    world.part(
        &[Node::Leader(1)],
        &[Node::Leader(0), Node::Edge(0), Node::Edge(1), Node::Edge(2), Node::Edge(3)],
    );
    world.command_edge(0, EdgeCommand::Leave);
    world.run_for(Duration::from_millis(800));
    let slots = |world: &World, edge: usize| world.edge(edge).status().slot;
    let late = world.add_edge("late");
    world.part(&[Node::Leader(1)], &[Node::Edge(late)]);
    world.run_until("let in", |world| world.follow(0, [late]));
    assert!((1..4).all(|edge| slots(&world, edge) != slots(&world, late)));
    assert!(slots(&world, late).unwrap() < 4, "{:?}", slots(&world, late));
    world.stop(Node::Leader(0));
    world.network.heal();
    world.run_until("the deputy leads", |world| world.leading() == [1]);
    world.run_for(Duration::from_secs(280));
    assert!(world.follow(1, 1..4));
    assert!(world.follow(1, [late]), "{:?}", world.blamed_by(Node::Edge(late)));
}

#[test]
fn who_left_unknown_to_the_deputy_is_not_on_its_roster_for_ever() {
    let mut world = World::grouped(2, 2, 4);
    let everybody = [Node::Leader(0), Node::Edge(0), Node::Edge(1), Node::Edge(2), Node::Edge(3)];
    world.part(&[Node::Leader(1)], &everybody);
    world.command_edge(0, EdgeCommand::Leave);
    world.run_for(Duration::from_millis(800));
    assert!(world.edge_events(0).contains(&EdgeEvent::Left));
    // The header that says so is not the newest any more, and no member shows it.
    world.command_leader(0, LeaderCommand::Rekey);
    world.run_for(Duration::from_millis(500));
    world.stop(Node::Leader(0));
    world.stop(Node::Edge(0));
    world.network.heal();
    world.run_until("the deputy leads", |world| world.leading() == [1]);
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.status(1).unwrap().members, 4, "as far as it knows");
    // One that is only off for a while comes back in time.
    world.stop(Node::Edge(3));
    world.run_for(Duration::from_secs(86_400));
    assert_eq!(world.status(1).unwrap().members, 3);
    let removed = |event: &&LeaderEvent| matches!(event, LeaderEvent::Removed { evicted: false, .. });
    assert_eq!(world.leader_events(1).iter().filter(removed).count(), 1);
    world.start(Node::Edge(3));
    world.run_until("all there", |world| world.follow(1, 1..4));
}
