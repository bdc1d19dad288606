//! Drones that join together follow by one broadcast, and are welcomed one by one if they miss it.

use std::time::Duration;

use quiver_ainq::EpochPart;
use quiver_group::{EdgeCommand, LeaderCommand, LeaderEvent};
use quiver_message::{Message, Newcomers, Rekey};

use crate::beside::own;
use crate::world::{Node, S, World, decode};
use crate::wraps::questions;

/// Longer than a leader waits for acknowledgements before it sends an epoch again.
const RESENT: Duration = Duration::from_secs(10);

fn is_broadcast(message: &Message<S>) -> bool {
    matches!(message, Message::Rekey(rekey) if !rekey.newcomers.is_empty())
}

/// Numbers of welcomes and of broadcasts with newcomers that came to an edge since then.
fn told(world: &World, edge: usize, mark: usize) -> (usize, usize) {
    let packets = world.recorded[mark..].iter().filter(|packet| packet.to == Node::Edge(edge));
    let messages: Vec<_> = packets.map(|packet| decode(world, packet)).collect();
    let welcomes = messages.iter().filter(|message| matches!(message, Message::Welcome(_))).count();
    (welcomes, messages.iter().filter(|message| is_broadcast(message)).count())
}

/// Changes what is broadcast for newcomers before it comes to some edges.
fn change(
    world: &mut World,
    edges: std::ops::Range<usize>,
    changed: impl Fn(&mut Rekey<S>) -> bool + 'static,
) {
    let deployment = world.deployment.clone();
    world.tamper = Some(Box::new(move |mut packet| {
        let message = Message::<S>::decode(&deployment, &packet.bytes).unwrap();
        let to = edges.clone().any(|edge| packet.to == Node::Edge(edge));
        match message {
            Message::Rekey(mut rekey) if to && !rekey.newcomers.is_empty() => {
                if !changed(&mut rekey) {
                    return vec![];
                }
                packet.bytes = Message::Rekey(rekey).encode(&deployment);
                vec![packet]
            }
            _ => vec![packet],
        }
    }));
}

fn add(world: &mut World, edges: std::ops::Range<usize>) {
    for edge in edges {
        world.add_edge(&format!("newcomer-{edge}"));
    }
}

/// A group of twenty, and a dozen that joins it.
fn joined_by_a_dozen(seed: u64, prepare: impl FnOnce(&mut World)) -> (World, usize) {
    let mut world = World::grouped(seed, 20);
    prepare(&mut world);
    let mark = world.recorded.len();
    add(&mut world, 20..32);
    (world, mark)
}

#[test]
fn a_dozen_newcomers_follow_by_the_broadcast_and_need_no_welcome() {
    let (mut world, mark) = joined_by_a_dozen(1, |_| {});
    world.run_for(Duration::from_secs(3));
    assert!(world.agree(0..32));
    for edge in 0..32 {
        assert_eq!(told(&world, edge, mark), (0, 1), "edge {edge}");
        assert!(world.blamed_by_edge(edge).is_empty(), "{:?}", world.blamed_by_edge(edge));
    }
    let joined = |event: &&LeaderEvent| matches!(event, LeaderEvent::Joined { .. });
    assert_eq!(world.leader_events().iter().filter_map(own).filter(joined).count(), 32);
    let epoch = world.leader_epoch();
    assert!(world.leader_events().contains(&LeaderEvent::Delivered { epoch, members: 32 }));
    // Nothing follows later, and they have their paths: the next wraps are of use to all.
    world.run_for(RESENT);
    let mark = world.recorded.len();
    world.command_edge(25, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(1));
    let others = || (0..32).filter(|edge| *edge != 25);
    assert!(world.agree(others()));
    assert!(others().all(|edge| told(&world, edge, mark) == (0, 0) && questions(&world, edge, mark) == 0));
    assert!(world.blamed_by_leader().is_empty(), "{:?}", world.blamed_by_leader());
}

#[test]
fn newcomers_follow_by_the_broadcast_of_a_leader_that_sends_strangers_none() {
    let (mut world, mark) = joined_by_a_dozen(1, |world| {
        world.gates.insert(Node::Leader);
    });
    world.run_for(Duration::from_secs(3));
    assert!(world.agree(0..32));
    for edge in 20..32 {
        assert_eq!(told(&world, edge, mark), (0, 1), "edge {edge}");
    }
}

#[test]
fn the_broadcast_has_a_ninth_of_the_bytes_of_welcomes() {
    let bytes = |world: &World, mark: usize, counted: fn(&Message<S>) -> bool| -> usize {
        let packets = world.recorded[mark..].iter().filter(|packet| counted(&decode(world, packet)));
        // A message to the group is on the air once, and recorded for each that hears it.
        let mut seen = std::collections::BTreeSet::new();
        packets.filter(|packet| seen.insert(packet.bytes.clone())).map(|packet| packet.bytes.len()).sum()
    };
    let mut sums = Vec::new();
    for shared_medium in [true, false] {
        let mut world = World::new(2);
        world.shared_medium = shared_medium;
        world.restart_leader();
        let mark = world.recorded.len();
        add(&mut world, 0..400);
        world.run_until("all joined", |world| (0..400).all(|edge| world.synced(edge)));
        sums.push((
            bytes(&world, mark, is_broadcast),
            bytes(&world, mark, |m| matches!(m, Message::Welcome(_))),
        ));
    }
    let [(broadcast, 0), (0, welcomes)] = sums[..] else { panic!("{sums:?}") };
    assert!(broadcast * 9 < welcomes, "{broadcast} bytes in place of {welcomes}");
}

#[test]
fn who_misses_the_broadcast_is_welcomed_when_the_epoch_is_sent_again() {
    let (mut world, mark) = joined_by_a_dozen(3, |world| change(world, 24..27, |_| false));
    world.run_for(Duration::from_secs(1));
    assert!(world.agree((0..32).filter(|edge| !(24..27).contains(edge))));
    assert!((24..27).all(|edge| !world.synced(edge)));
    world.run_for(RESENT);
    assert!(world.agree(0..32));
    for edge in 20..32 {
        let expected = usize::from((24..27).contains(&edge));
        assert_eq!(told(&world, edge, mark).0, expected, "edge {edge}");
    }
}

#[test]
fn who_missed_the_broadcast_is_welcomed_before_the_next_epoch() {
    let (mut world, mark) = joined_by_a_dozen(4, |world| change(world, 24..27, |_| false));
    world.run_for(Duration::from_secs(1));
    world.command_leader(LeaderCommand::Rekey);
    // Long before the epoch would be sent again.
    world.run_for(Duration::from_millis(500));
    assert!(world.agree(0..32));
    assert!((24..27).all(|edge| told(&world, edge, mark).0 == 1));
}

#[test]
fn a_few_newcomers_are_welcomed() {
    let mut world = World::grouped(5, 20);
    let mark = world.recorded.len();
    add(&mut world, 20..27);
    world.run_for(Duration::from_secs(3));
    assert!(world.agree(0..27));
    assert!((20..27).all(|edge| told(&world, edge, mark) == (1, 0)));
}

/// The newcomers of a broadcast in other slots.
fn moved(rekey: &Rekey<S>, other: impl Fn(u32) -> u32) -> Newcomers {
    let nonce = |start: &[u8; 8]| core::array::from_fn(|place| start.get(place).copied().unwrap_or(0));
    let moved: Vec<_> = rekey.newcomers.iter().map(|(slot, start)| (other(slot), nonce(start))).collect();
    moved.iter().map(|(slot, nonce)| (*slot, nonce)).collect()
}

/// Lets twelve join, of which 24 to 26 receive a changed broadcast: they get a welcome in the end, and penalise no peer.
fn misled(seed: u64, changed: impl Fn(&mut Rekey<S>) -> bool + 'static) {
    let (mut world, mark) = joined_by_a_dozen(seed, |world| change(world, 24..27, changed));
    world.run_for(Duration::from_secs(1));
    assert!(world.agree((0..32).filter(|edge| !(24..27).contains(edge))));
    assert!((24..27).all(|edge| !world.synced(edge)));
    world.run_for(RESENT);
    assert!(world.agree(0..32));
    for edge in 24..27 {
        assert_eq!(told(&world, edge, mark).0, 1, "edge {edge}");
        assert!(world.blamed_by_edge(edge).is_empty(), "{:?}", world.blamed_by_edge(edge));
    }
}

#[test]
fn false_slots_and_changed_wraps_let_nobody_in() {
    // Those in the slots of others: 20 to 31 came in some order, and have such nonces.
    misled(6, |rekey| {
        rekey.newcomers = moved(rekey, |slot| 20 + (slot + 1 - 20) % 12);
        true
    });
    // In slots that nobody has, and that no group has.
    misled(7, |rekey| {
        rekey.newcomers = moved(rekey, |slot| slot | 1 << 19);
        true
    });
    misled(12, |rekey| {
        rekey.newcomers = moved(rekey, |slot| slot | 1 << 30);
        true
    });
    // Only others are named.
    misled(8, |rekey| {
        rekey.newcomers = [(20, &[0; 16])].into_iter().collect();
        true
    });
    // Wraps that the header does not bind, and none.
    misled(9, |rekey| {
        let Some(EpochPart::Delta(delta)) = &rekey.part else { return true };
        let mut bytes = delta.encode();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        rekey.part = Some(EpochPart::Delta(quiver_ainq::Delta::decode(&bytes).unwrap()));
        true
    });
    misled(10, |rekey| {
        rekey.part = None;
        true
    });
    // A header that another signed, as far as anybody can tell.
    misled(11, |rekey| {
        rekey.header.tag[0] ^= 1;
        true
    });
}
