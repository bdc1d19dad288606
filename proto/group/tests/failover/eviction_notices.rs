//! Another leader's notices about drones that are no members: heeded, without an epoch for each.

use std::time::Duration;

use quiver_ainq::{DroneKeypair, Epoch, Label, Serial};
use quiver_crypto::canonical::Writer;
use quiver_group::{EdgeEvent, LeaderCommand, LeaderEvent};
use quiver_message::{EvictionNotice, Message};

use crate::world::{GROUP, Node, S, SILENCE, World, name};

/// A deputy's signed notice about these drones.
fn notice(world: &mut World, own: &DroneKeypair<S>, counter: u64, serials: Vec<Serial>) -> Vec<u8> {
    let epoch = Epoch { term: Epoch::term_of(1, 1), counter };
    let mut writer = Writer::new();
    writer.lp(GROUP.as_bytes()).u64(epoch.term).u64(epoch.counter);
    for serial in &serials {
        writer.fixed(serial);
    }
    let signature = own.sign(&world.deployment, Label::Evict, &writer.finish(), &mut world.rng);
    let (group, leader) = (name(GROUP), own.public().clone());
    Message::EvictionNotice(EvictionNotice { group, leader, epoch, serials, signature })
        .encode(&world.deployment)
}

fn epochs(world: &World) -> usize {
    let activated = |event: &&LeaderEvent| matches!(event, LeaderEvent::EpochActivated { .. });
    world.leader_events(0).iter().filter(activated).count()
}

fn stranger(n: u64) -> Serial {
    let mut serial = [0xEE; 16];
    serial[..8].copy_from_slice(&n.to_be_bytes());
    serial
}

#[test]
fn notices_about_drones_that_are_no_members_make_no_epoch_and_hold_all_the_same() {
    let mut world = World::grouped(1, 2, 3);
    let deputy = world.stolen_key(1);
    // Enrolled, and kept from the leaders for now.
    world.part(&[Node::Edge(3)], &[Node::Leader(0), Node::Leader(1)]);
    let late = world.add_edge("late");
    let serial = world.tokens[late].token.statement.id;
    world.run_for(Duration::from_secs(5));
    let (before, records) = (epochs(&world), world.leader_records(0).len());
    let bytes = notice(&mut world, &deputy, 1, vec![serial]);
    world.inject(Node::Leader(1), Node::Leader(0), &bytes);
    for n in 0..200 {
        let strangers = (0..1000).map(|place| stranger(1000 * n + place)).collect();
        let bytes = notice(&mut world, &deputy, 2 + n, strangers);
        world.inject(Node::Leader(1), Node::Leader(0), &bytes);
        world.run_for(Duration::from_millis(20));
    }
    assert_eq!(epochs(&world), before, "an epoch for a drone that holds no key of the group");
    let written = world.leader_records(0).len() - records;
    assert!(
        written <= 6,
        "{written} records: of 200,000 drones a leader bars no more than 4,096 with one epoch"
    );
    // A drone that waits to be barred is not admitted, also after a crash.
    world.network.heal();
    world.run_for(SILENCE * 3);
    world.restart(Node::Leader(0));
    world.run_until("it leads again", |world| world.leading().len() == 1);
    world.run_for(SILENCE * 10);
    assert!(!world.synced(late));
    let refused = EdgeEvent::Refused(quiver_machine::RefusalReason::Evicted);
    assert!(world.edge_events(late).contains(&refused), "{:?}", world.edge_events(late));
}

#[test]
fn member_that_is_named_among_strangers_is_out_at_once() {
    let mut world = World::grouped(2, 2, 3);
    let deputy = world.stolen_key(1);
    let before = epochs(&world);
    let member = world.tokens[1].token.statement.id;
    let bytes = notice(&mut world, &deputy, 1, vec![stranger(1), member, stranger(2)]);
    world.inject(Node::Leader(1), Node::Leader(0), &bytes);
    world.run_for(Duration::from_millis(50));
    assert_eq!((epochs(&world), world.status(0).unwrap().members), (before + 1, 2));
    assert!(world.follow(0, [0, 2]));
    // Barred drones are in the roster of the next epoch, and so in the deputy's copy.
    world.command_leader(0, LeaderCommand::Rekey);
    world.run_for(SILENCE);
    assert_eq!(world.held(1), world.epoch(0));
    let bytes = notice(&mut world, &deputy, 2, vec![stranger(1), stranger(2)]);
    let records = world.leader_records(0).len();
    world.inject(Node::Leader(1), Node::Leader(0), &bytes);
    world.run_for(Duration::from_millis(50));
    assert_eq!(world.leader_records(0).len(), records, "known long since");
}
