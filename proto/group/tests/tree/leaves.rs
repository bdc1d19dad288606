//! Leaves, one at a time and in masses.

use std::time::Duration;

use quiver_ainq::{Delta, EpochPart};
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand, LeaderEvent};
use quiver_message::{Message, Rekey};
use quiver_testbed::matching;

use crate::world::{Node, Packet, S, World, decode};
use crate::wraps::questions;
use crate::{is_epoch, withhold};

#[test]
fn who_is_out_takes_no_notice_of_what_follows() {
    let mut world = World::grouped(1, 5);
    world.command_edge(2, EdgeCommand::Leave);
    world.command_leader(LeaderCommand::Evict(quiver_ainq::Name::new("edge-3").unwrap()));
    world.run_for(Duration::from_secs(2));
    assert!(world.edge_events(2).contains(&EdgeEvent::Left));
    assert!(world.edge_events(3).contains(&EdgeEvent::Evicted));
    let mark = world.recorded.len();
    let heard = [2, 3].map(|edge| world.edge_events(edge).len());
    for _ in 0..5 {
        world.command_leader(LeaderCommand::Rekey);
        world.run_for(Duration::from_millis(10));
    }
    assert!(world.agree([0, 1, 4]));
    for (edge, heard) in [2, 3].into_iter().zip(heard) {
        assert_eq!(world.edge_events(edge).len(), heard, "{:?}", world.edge_events(edge));
        assert_eq!((world.key(edge), questions(&world, edge, mark)), (None, 0));
    }
}

#[test]
fn a_mass_departure_takes_one_epoch() {
    const LEAVERS: usize = 1_030;
    let mut world = World::grouped(2, LEAVERS + 4);
    let before = world.leader_epoch().counter;
    for edge in 4..LEAVERS + 4 {
        world.command_edge(edge, EdgeCommand::Leave);
    }
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.leader().status().members, 4);
    assert!(world.agree(0..4));
    let removals = world.leader_events().iter().filter_map(
        matching!(LeaderEvent::EpochActivated { epoch, removed, .. } if epoch.counter > before => *removed),
    );
    assert_eq!(removals.collect::<Vec<_>>(), [LEAVERS]);
    assert!((4..LEAVERS + 4).all(|edge| world.edge_events(edge).contains(&EdgeEvent::Left)));
}

/// The edges with even slots, and the others: if one half leaves, no header lists the slots.
fn halves(world: &World) -> (Vec<usize>, Vec<usize>) {
    let edge = |name: &quiver_ainq::Name| name.as_str().strip_prefix("edge-").unwrap().parse().unwrap();
    let members = world.leader().members().map(|(slot, name)| (slot, edge(name)));
    let (even, odd): (Vec<_>, Vec<_>) = members.partition(|(slot, _)| slot.is_multiple_of(2));
    let edges = |half: Vec<(u32, usize)>| half.into_iter().map(|(_, edge)| edge).collect();
    (edges(even), edges(odd))
}

fn leave(world: &mut World, edges: &[usize]) {
    edges.iter().for_each(|edge| world.command_edge(*edge, EdgeCommand::Leave));
    world.run_for(Duration::from_secs(2));
}

/// The wraps that came with a header that lists no slots.
fn unlisted(world: &World, packet: &Packet) -> Option<Delta> {
    match decode(world, packet) {
        Message::Rekey(Rekey { header, part: Some(EpochPart::Delta(delta)), .. }) => {
            header.core.changes.map(|_| delta)
        }
        _ => None,
    }
}

#[test]
fn members_are_shown_whether_they_are_out_in_2_kb() {
    let mut world = World::grouped(3, 70);
    let (even, odd) = halves(&world);
    // One of those who leave has missed the epoch before.
    let late = even[7];
    let missed = withhold(&mut world, late, is_epoch);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_millis(100));
    assert!(!missed.borrow().is_empty() && !world.agree([late]));
    world.tamper = None;
    let (mark, before) = (world.recorded.len(), world.leader_epoch().counter);
    leave(&mut world, &even);
    assert_eq!(world.leader_epoch().counter, before + 1);
    for edge in &even {
        assert!(world.edge_events(*edge).contains(&EdgeEvent::Left), "{edge}");
        assert_eq!(world.key(*edge), None);
    }
    assert!(world.agree(odd.iter().copied()));
    let sent = world.recorded[mark..].iter().filter_map(|packet| Some((packet, unlisted(&world, packet)?)));
    let sent: Vec<_> = sent.map(|(packet, delta)| (packet.to, packet.bytes.len(), delta)).collect();
    assert!(sent.iter().all(|(_, len, _)| *len <= 2000));
    for edge in &even {
        let proof = sent.iter().find(|(to, _, _)| *to == Node::Edge(*edge)).unwrap();
        assert!((0..70).any(|slot| proof.2.keeps(slot) == Some(false)));
    }
    // Later epochs are for the others, as ever.
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    assert!(world.agree(odd.iter().copied()));
}

#[test]
fn wraps_that_were_exchanged_on_the_way_put_nobody_out() {
    let mut world = World::grouped(4, 70);
    let (even, odd) = halves(&world);
    let (victim, deployment) = (odd[30], world.deployment.clone());
    // First such as the leader never made, with nothing for anybody; then those of one that is out.
    let forged = Delta::decode(&[7 | 32, 3]).unwrap();
    let mut proof = None;
    world.tamper = Some(Box::new(move |packet| {
        let Ok(Message::Rekey(Rekey { header, part: Some(EpochPart::Delta(delta)), .. })) =
            Message::<S>::decode(&deployment, &packet.bytes)
        else {
            return vec![packet];
        };
        if header.core.changes.is_none() {
            return vec![packet];
        }
        let with = |delta: &Delta| {
            let rekey = Rekey::new(header.clone(), Some(EpochPart::Delta(delta.clone())));
            Packet {
                to: Node::Edge(victim),
                bytes: Message::Rekey(rekey).encode(&deployment),
                ..packet.clone()
            }
        };
        if packet.to == Node::Edge(victim) {
            return [Some(&forged), proof.as_ref()].into_iter().flatten().map(with).collect();
        }
        if delta.keeps(0) == Some(false) {
            proof = Some(delta);
        }
        vec![packet]
    }));
    let mark = world.edge_events(victim).len();
    leave(&mut world, &even);
    let events = &world.edge_events(victim)[mark..];
    assert!(!events.iter().any(|event| matches!(event, EdgeEvent::Evicted | EdgeEvent::Left)), "{events:?}");
    assert!(!world.blamed_by_edge(victim).is_empty());
    // It asks, and is answered with its path.
    assert!(world.agree(odd.iter().copied()));
    assert!(world.agree([victim]));
}
