//! Bytes that nobody signed, or somebody long ago, change nothing that matters.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use quiver_ainq::{Entry, EpochPart, Error};
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand, LeaderEvent};
use quiver_machine::{Offence, RefusalReason, Route};
use quiver_message::{Leave, Message, Refusal};

use crate::world::{GROUP, Node, Packet, S, World, decode, name};

fn joined(world: &World) -> usize {
    world.leader_events().iter().filter(|event| matches!(event, LeaderEvent::Joined { .. })).count()
}

#[test]
fn forged_q_in_an_entry_ends_no_membership() {
    let mut world = World::grouped(1, 2);
    world.lose_where(|f| f.to == Node::Edge(0));
    world.command_leader(LeaderCommand::Rekey);
    let packet = world.recorded.iter().rev().find(|f| f.to == Node::Edge(0)).unwrap().clone();
    world.tamper = None;
    let Message::Rekey(mut rekey) = decode(&world, &packet) else { panic!() };
    rekey.part = Some(EpochPart::Entry(Entry { slot: 0, q: Some(77), wrap: [3; 32] }));
    let bytes = Message::<S>::Rekey(rekey).encode(&world.deployment);
    world.inject(Node::Leader, Node::Edge(0), &bytes);
    world.run_for(Duration::ZERO);
    let status = world.edge(0).status();
    assert!(status.epoch.is_some(), "membership erased: {status:?}");
}

#[test]
fn catch_up_reply_without_its_entry_ends_no_membership() {
    let mut world = World::grouped(2, 2);
    world.disconnect_all(Node::Edge(0));
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    let deployment = world.deployment.clone();
    world.change_with(move |f| {
        if let Ok(Message::CatchUpReply(mut reply)) = Message::<S>::decode(&deployment, &f.bytes) {
            reply.part = None;
            f.bytes = Message::<S>::CatchUpReply(reply).encode(&deployment);
        }
    });
    let before = joined(&world);
    world.connect(Node::Edge(0), Node::Leader, Route::Leader);
    world.run_for(Duration::from_secs(1));
    assert_eq!(joined(&world), before, "it gave its membership up and joined again");
}

#[test]
fn a_replayed_ack_moves_no_link() {
    let mut world = World::grouped(5, 2);
    let ack = world.newest(|f| f.from == Node::Edge(0) && matches!(decode(&world, f), Message::Ack(_)));
    // A stranger's connection, or another member's.
    world.inject(Node::Edge(1), Node::Leader, &ack.bytes);
    world.run_for(Duration::from_millis(10));
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(60));
    assert!(world.agree(0..2), "edge 0 was cut off by a replay");
}

#[test]
fn nothing_is_heard_under_a_key_that_ran_out() {
    let mut world = World::grouped(7, 2);
    world.isolated.insert(Node::Edge(1));
    world.command_edge(0, EdgeCommand::Send { channel: name("c"), data: vec![1], signed: false });
    let frame = world.newest(|f| f.from == Node::Edge(0) && f.to == Node::Edge(1));
    world.isolated.insert(Node::Leader);
    world.run_for(Duration::from_secs(20_000));
    world.isolated.remove(&Node::Edge(1));
    world.inject(Node::Edge(0), Node::Edge(1), &frame.bytes);
    world.run_for(Duration::ZERO);
    assert!(
        !world.edge_events(1).iter().any(|e| matches!(e, EdgeEvent::Message { .. })),
        "heard under a void key"
    );
}

#[test]
fn a_leader_whose_identity_ended_evicts_nobody() {
    let mut world = World::grouped(8, 2);
    world.isolated.insert(Node::Edge(1));
    world.command_leader(LeaderCommand::Evict(name("edge-1")));
    let notice =
        world.newest(|f| f.to == Node::Edge(1) && matches!(decode(&world, f), Message::EvictionNotice(_)));
    world.run_for(Duration::from_secs(1));
    world.isolated.clear();
    world.skew_all(20_000_000);
    world.inject(Node::Leader, Node::Edge(1), &notice.bytes);
    world.run_for(Duration::ZERO);
    assert!(!world.edge_events(1).contains(&EdgeEvent::Evicted), "believed an expired leader");
}

#[test]
fn a_forged_refusal_does_not_silence_a_drone_for_weeks() {
    let mut world = World::grouped(12, 1);
    let deployment = world.deployment.clone();
    let once = Rc::new(RefCell::new(false));
    world.change_with(move |f| {
        if let Ok(Message::JoinChallenge(c)) = Message::<S>::decode(&deployment, &f.bytes)
            && !*once.borrow()
        {
            *once.borrow_mut() = true;
            let refusal = Refusal {
                reason: RefusalReason::Busy,
                reference: c.nonce.to_vec(),
                retry_after: Duration::from_millis(u32::MAX.into()),
            };
            f.bytes = Message::<S>::Refusal(refusal).encode(&deployment);
        }
    });
    let edge = world.add_edge("late");
    world.run_for(Duration::from_secs(86_400));
    assert!(world.synced(edge), "a day later still out");
}

#[test]
fn a_replayed_leave_ends_no_later_membership() {
    let mut world = World::grouped(13, 2);
    world.command_edge(0, EdgeCommand::Leave);
    let leave = world.recorded.iter().rev().find(|f| f.from == Node::Edge(0)).unwrap().clone();
    assert!(matches!(decode(&world, &leave), Message::Leave(_)));
    world.command_edge(0, EdgeCommand::Join(name(GROUP)));
    world.run_for(Duration::from_secs(2));
    assert!(world.agree(0..2));
    world.inject(Node::Edge(0), Node::Leader, &leave.bytes);
    world.run_for(Duration::from_secs(2));
    assert!(world.agree(0..2), "{:?}", world.edge_events(0));
}

#[test]
fn a_recorded_leave_that_is_moved_to_the_newest_epoch_is_forged() {
    let mut world = World::grouped(20, 2);
    world.isolated.insert(Node::Edge(0));
    world.command_edge(0, EdgeCommand::Leave);
    let leave = world.recorded.iter().rev().find(|f| f.from == Node::Edge(0)).unwrap().clone();
    let Message::Leave(leave) = decode(&world, &leave) else { panic!() };
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(1));
    let newest = world.recorded.iter().rev().find_map(|packet| match decode(&world, packet) {
        Message::Rekey(rekey) => Some(rekey.header.digest(&world.deployment)),
        _ => None,
    });
    let held = newest.unwrap();
    assert_ne!(held, leave.held);
    let moved = Message::Leave(Leave { held, ..leave }).encode(&world.deployment);
    world.inject(Node::Edge(1), Node::Leader, &moved);
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.leader().status().members, 2);
    let forged = Offence::Protocol(Error::InvalidSignature);
    assert!(world.blamed_by_leader().contains(&&forged), "{:?}", world.blamed_by_leader());
}

#[test]
fn a_not_ready_leader_ends_no_leave() {
    let mut world = World::grouped(19, 2);
    world.command_edge(0, EdgeCommand::Leave);
    let mut number = None;
    let deployment = world.deployment.clone();
    // the member asks; the answer is any refusal
    world.isolated.insert(Node::Edge(0));
    world.run_for(Duration::from_secs(20));
    for f in world.recorded.iter().rev() {
        if f.from == Node::Edge(0)
            && let Message::CatchUpRequest(r) = decode(&world, f)
        {
            number = Some(r.number);
            break;
        }
    }
    world.isolated.clear();
    let refusal = Refusal {
        reason: RefusalReason::NotReady,
        reference: number.unwrap().to_vec(),
        retry_after: Duration::ZERO,
    };
    world.inject(Node::Leader, Node::Edge(0), &Message::<S>::Refusal(refusal).encode(&deployment));
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.leader().status().members, 1, "it thinks it left: {:?}", world.edge_events(0));
}

#[test]
fn a_copied_nonce_keeps_nobody_out() {
    let mut world = World::grouped(20, 2);
    let victim = world.add_edge("victim");
    world.run_until("hello", |w| {
        w.recorded.iter().any(|f| {
            f.from == Node::Edge(victim)
                && matches!(Message::<S>::decode(&w.deployment, &f.bytes), Ok(Message::JoinHello(_)))
        })
    });
    let hello = world
        .recorded
        .iter()
        .rev()
        .find_map(|f| match decode(&world, f) {
            Message::JoinHello(h) => Some(h),
            _ => None,
        })
        .unwrap();
    let bytes = Message::<S>::JoinHello(hello.clone()).encode(&world.deployment);
    world.inject(Node::Edge(1), Node::Leader, &bytes);
    let deployment = world.deployment.clone();
    // the victim's own challenge is slower than the attacker's
    let held: Rc<RefCell<Vec<Packet>>> = Rc::default();
    let keep = held.clone();
    world.tamper = Some(Box::new(move |f| {
        if f.to == Node::Edge(victim)
            && matches!(Message::<S>::decode(&deployment, &f.bytes), Ok(Message::JoinChallenge(_)))
        {
            keep.borrow_mut().push(f);
            vec![]
        } else {
            vec![f]
        }
    }));
    world.run_for(Duration::ZERO);
    let ch = world
        .recorded
        .iter()
        .rev()
        .find_map(|f| {
            if f.to == Node::Edge(1) {
                match decode(&world, f) {
                    Message::JoinChallenge(c) => Some(c),
                    _ => None,
                }
            } else {
                None
            }
        })
        .unwrap();
    let point = quiver_ainq::SecretScalar::<S>::generate(&mut world.rng).public().as_bytes().to_vec();
    let mut sig = vec![0; 64];
    sig[..32].copy_from_slice(&point);
    let forged = quiver_message::JoinRequest {
        group: name(GROUP),
        drone: hello.drone,
        nonce: ch.nonce,
        challenge: ch.challenge,
        ephemeral: point.clone(),
        spare_q: 1,
        spare_point: point,
        spare_signature: sig.clone(),
        signature: sig,
        kem: None,
    };
    let forged = Message::<S>::JoinRequest(forged).encode(&world.deployment);
    world.inject(Node::Edge(1), Node::Leader, &forged);
    world.run_for(Duration::ZERO);
    world.tamper = None;
    for f in held.borrow_mut().drain(..) {
        world.inject(f.from, f.to, &f.bytes);
    }
    world.run_for(Duration::from_secs(5));
    assert!(world.synced(victim), "{:?}", world.blamed_by_leader());
}

#[test]
fn hearsay_costs_the_leader_little() {
    let mut world = World::grouped(22, 5);
    let mark = world.recorded.len();
    let forged = quiver_message::GroupMessage {
        group: name(GROUP),
        epoch: quiver_ainq::Epoch { term: u64::MAX, counter: 1 },
        channel: name("c"),
        frame: quiver_ainq::SealedMessage {
            slot: 0,
            boot_no: 1,
            salt: [0; 8],
            counter: 0,
            hedge: [0; 8],
            ciphertext: vec![0; 17],
        },
        source: None,
    };
    let bytes = Message::<S>::GroupMessage(forged).encode(&world.deployment);
    for _ in 0..100 {
        (0..5).for_each(|e| world.inject(Node::Leader, Node::Edge(e), &bytes));
        world.run_for(Duration::from_millis(10));
    }
    let asked = world.recorded[mark..]
        .iter()
        .filter(|f| matches!(decode(&world, f), Message::CatchUpRequest(_)))
        .count();
    assert!(asked <= 10, "{asked} questions in one second from 5 members");
}
