//! Questions and answers between leaders that somebody forged, altered, delayed or played again; and leaders
//! that lie.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use quiver_ainq::{Deployment, DroneKeypair, DronePublicKey, Epoch, Error, Header, Label, SpareStatement};
use quiver_crypto::Hasher;
use quiver_crypto::canonical::Writer;
use quiver_group::{LeaderCommand, LeaderEvent};
use quiver_machine::Offence;
use quiver_message::{JoinHello, Message, RefusalReason, Rekey, Replica, ReplicaChunk, StandBy};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::world::{GROUP, Node, Packet, S, SILENCE, World, decode, name};

type Change = Box<dyn FnMut(&mut Replica<S>)>;

/// Alters every answer that leader 0 gives.
fn alter(world: &mut World, mut change: Change) {
    let deployment = world.deployment.clone();
    world.change_with(move |packet| {
        if let Ok(Message::Replica(mut replica)) = Message::<S>::decode(&deployment, &packet.bytes) {
            change(&mut replica);
            packet.bytes = Message::Replica(replica).encode(&deployment);
        }
    });
}

/// A leader's signature as the specification has it, so that a lying leader's signature verifies.
fn sign(
    replica: &mut Replica<S>,
    deployment: &Deployment<S>,
    leader: &DroneKeypair<S>,
    deputy: &DronePublicKey<S>,
) {
    let hash = Hasher::new("quiver/1 replica").lp(&replica.chunk).finish();
    let mut writer = Writer::new();
    writer.lp(GROUP.as_bytes()).lp(&leader.public().encode()).lp(&deputy.encode());
    let digest = replica.header.digest(deployment);
    writer.fixed(&replica.nonce).u64(replica.number).fixed(&digest).fixed(&hash);
    let mut rng = ChaCha20Rng::seed_from_u64(99);
    replica.signature = leader.sign(deployment, Label::Replica, &writer.finish(), &mut rng);
}

/// A leader that signs what `lie` makes of every chunk. The deputy starts with an empty disk.
fn lying(world: &mut World, mut lie: impl FnMut(&mut ReplicaChunk<S>) + 'static) {
    let (leader, deputy) = (world.stolen_key(0), world.leader_public(1));
    let deployment = world.deployment.clone();
    world.stop(Node::Leader(1));
    let enrolled = world.leader_records(1).iter().take(2).cloned().collect();
    world.set_leader_records(1, enrolled);
    world.node_mut::<quiver_group::Leader<S>>(Node::Leader(1)).events.clear();
    alter(
        world,
        Box::new(move |replica| {
            if let Ok(mut chunk) = ReplicaChunk::<S>::decode(&replica.chunk) {
                lie(&mut chunk);
                replica.chunk = chunk.encode();
                sign(replica, &deployment, &leader, &deputy);
            }
        }),
    );
    world.start(Node::Leader(1));
    world.run_for(SILENCE);
}

/// The deputy blamed its leader for this, and holds nothing.
fn blamed_and_empty(world: &World, offence: &Offence) {
    assert!(world.blamed_by(Node::Leader(1)).contains(&offence), "{:?}", world.leader_events(1));
    assert_eq!(world.held(1), None);
    assert_eq!(world.status(1).unwrap().members, 0);
    let holds = |event: &LeaderEvent| matches!(event, LeaderEvent::StandingBy { .. });
    assert!(!world.leader_events(1).iter().any(holds));
}

#[test]
fn an_honest_chunk_passes_through_the_lying_leaders_hands() {
    // Otherwise the tests with a lie in it would prove nothing.
    let mut world = World::grouped(1, 2, 4);
    lying(&mut world, |_| {});
    assert_eq!(world.held(1), world.epoch(0));
    assert_eq!(world.status(1).unwrap().members, 4);
}

#[test]
fn a_forged_spare_point_is_no_deputys() {
    let mut world = World::grouped(2, 2, 4);
    let point = *quiver_ainq::SparePair::<S>::generate(9, &mut world.rng).point();
    lying(&mut world, move |chunk| {
        for seat in &mut chunk.seats {
            // The leader knows this point's secret, and would know the next term's pair.
            seat.spare = seat.spare.take().map(|spare| SpareStatement { point, ..spare });
        }
    });
    blamed_and_empty(&world, &Offence::Protocol(Error::InvalidSignature));
}

#[test]
fn another_members_spare_point_is_no_deputys() {
    let mut world = World::grouped(3, 2, 4);
    lying(&mut world, |chunk| {
        let first = chunk.seats.first().and_then(|seat| seat.spare.clone());
        if let Some(seat) = chunk.seats.last_mut() {
            seat.spare = first;
        }
    });
    blamed_and_empty(&world, &Offence::Protocol(Error::InvalidSignature));
}

#[test]
fn a_roster_with_another_hash_than_the_headers_is_refused() {
    let lies: [fn(&mut ReplicaChunk<S>); 3] = [
        |chunk| drop(chunk.seats.pop()),
        |chunk| chunk.evicted.push([3; 16]),
        |chunk| {
            let mut seat = chunk.seats.pop().unwrap();
            seat.slot += 5;
            chunk.seats.push(seat);
        },
    ];
    for (seed, lie) in lies.into_iter().enumerate() {
        let mut world = World::grouped(10 + seed as u64, 2, 4);
        lying(&mut world, lie);
        blamed_and_empty(&world, &Offence::Protocol(Error::Malformed("roster")));
    }
}

#[test]
fn a_change_that_leads_to_another_hash_leaves_the_copy_as_it_was() {
    let mut world = World::grouped(4, 2, 4);
    let held = world.held(1);
    let records = world.leader_records(1).len();
    let (leader, deputy) = (world.stolen_key(0), world.leader_public(1));
    let deployment = world.deployment.clone();
    alter(
        &mut world,
        Box::new(move |replica| {
            if let Ok(mut chunk) = ReplicaChunk::<S>::decode(&replica.chunk) {
                chunk.seats.clear();
                replica.chunk = chunk.encode();
                sign(replica, &deployment, &leader, &deputy);
            }
        }),
    );
    world.command_edge(1, quiver_group::EdgeCommand::Leave);
    world.run_for(SILENCE);
    assert!(world.blamed_by(Node::Leader(1)).contains(&&Offence::Protocol(Error::Malformed("roster"))));
    assert_eq!(world.held(1), held);
    assert_eq!(world.status(1).unwrap().members, 4);
    // Only that there are newer epochs was written down.
    assert!(world.leader_records(1).len() <= records + 4);
    world.tamper = None;
    world.run_for(SILENCE);
    assert_eq!(world.held(1), world.epoch(0));
    assert_eq!(world.status(1).unwrap().members, 3);
}

#[test]
fn an_altered_answer_blames_who_brought_it() {
    let mut world = World::grouped(5, 2, 3);
    alter(&mut world, Box::new(|replica| replica.chunk.push(0)));
    world.run_for(SILENCE / 2);
    assert!(world.blamed_by(Node::Leader(1)).contains(&&Offence::Protocol(Error::InvalidSignature)));
    assert_eq!(world.held(1), world.epoch(0));
}

#[test]
fn a_dead_leader_is_not_kept_alive_by_old_answers() {
    let mut world = World::grouped(6, 2, 3);
    // An attacker between the two kept an answer, and sends it as the answer to every later question.
    let kept: Rc<RefCell<Option<Replica<S>>>> = Rc::default();
    alter(
        &mut world,
        Box::new(move |replica| {
            let mut kept = kept.borrow_mut();
            let old = kept.get_or_insert_with(|| replica.clone());
            let (nonce, number) = (replica.nonce, replica.number);
            *replica = Replica { nonce, number, ..old.clone() };
        }),
    );
    world.run_until("the deputy is not fooled", |world| world.leading().contains(&1));
    let forged = world.blamed_by(Node::Leader(1));
    assert!(forged.contains(&&Offence::Protocol(Error::InvalidSignature)), "{forged:?}");
}

#[test]
fn answers_that_come_late_count_from_when_they_were_asked_for() {
    let mut world = World::grouped(7, 2, 3);
    // Unaltered answers, each kept until just before the deputy would act, and the leader dead all the while.
    let answers: Vec<Packet> = world
        .recorded
        .iter()
        .filter(|packet| {
            packet.to == Node::Leader(1) && matches!(decode(&world, packet), Message::Replica(_))
        })
        .cloned()
        .collect();
    world.part(&[Node::Leader(0)], &[Node::Leader(1)]);
    let lost = world.time();
    for packet in answers.iter().rev().take(50) {
        world.network.heal();
        world.inject(Node::Leader(0), Node::Leader(1), &packet.bytes);
        world.run_for(Duration::from_millis(6));
        world.part(&[Node::Leader(0)], &[Node::Leader(1)]);
        world.run_for(Duration::from_millis(100));
    }
    world.run_until("the deputy acts", |world| world.leading().contains(&1));
    assert!(world.time() - lost <= SILENCE * 2, "{:?}", world.time() - lost);
}

/// The newest question that the deputy asked.
fn question(world: &World) -> (Packet, StandBy) {
    let asked = world.recorded.iter().rev().find_map(|packet| match decode(world, packet) {
        Message::StandBy(question) => Some((packet.clone(), question)),
        _ => None,
    });
    asked.unwrap()
}

fn answers(world: &World) -> usize {
    world.recorded.iter().filter(|packet| matches!(decode(world, packet), Message::Replica(_))).count()
}

#[test]
fn a_replayed_question_is_blamed_and_told_nothing() {
    let mut world = World::grouped(8, 2, 3);
    let (packet, _) = question(&world);
    let before = answers(&world);
    world.inject(Node::Edge(0), Node::Leader(0), &packet.bytes);
    world.inject(Node::Leader(1), Node::Leader(0), &packet.bytes);
    world.run_for(Duration::from_millis(10));
    let blamed = world.blamed_by(Node::Leader(0));
    assert!(blamed.contains(&&Offence::Cookie), "from elsewhere: {blamed:?}");
    assert!(blamed.contains(&&Offence::Protocol(Error::Replay)), "from where it came: {blamed:?}");
    assert!(answers(&world) <= before + 1, "beyond the honest question's answer");
    // An hour later, to a leader that has started anew.
    world.stop(Node::Leader(0));
    world.run_until("the deputy leads", |world| world.leading() == [1]);
    world.inject(Node::Edge(0), Node::Leader(1), &packet.bytes);
    world.run_for(Duration::from_millis(10));
    assert_eq!(world.blamed_by(Node::Leader(1)).last(), Some(&&Offence::Cookie));
}

#[test]
fn a_question_of_one_that_may_not_lead_is_blamed_and_told_nothing() {
    let mut world = World::grouped(9, 2, 3);
    let drone = world.state(0);
    assert!(drone.is_some());
    // An edge with a key of its own asks as a deputy would, and gets as far as the challenge.
    let (_, honest) = question(&world);
    let edge = world.issued("mole", quiver_ainq::Role::Edge);
    let rival = world.issued("same-ordinal", quiver_ainq::Role::Leader { group: name(GROUP), ordinal: 0 });
    let foreign = world.issued("foreign", quiver_ainq::Role::Leader { group: name("bravo"), ordinal: 3 });
    for (nonce, keypair) in [(1, edge), (2, rival), (3, foreign)] {
        let told = answers(&world);
        ask(&mut world, nonce, &keypair, &honest);
        assert_eq!(world.blamed_by(Node::Leader(0)).last(), Some(&&Offence::Protocol(Error::NotALeader)));
        assert!(answers(&world) <= told + 1, "beyond the honest deputy's");
        assert_eq!(world.status(0).unwrap().deputies, 1);
    }
}

/// Asks the leader 0 as a deputy does, from the connection of the edge 0.
fn ask(world: &mut World, nonce: u8, keypair: &DroneKeypair<S>, honest: &StandBy) {
    let nonce = [nonce; 16];
    let key = keypair.public().encode();
    let hello = JoinHello { group: name(GROUP), drone: key.clone(), nonce, kem: None };
    let hello = Message::<S>::JoinHello(hello).encode(&world.deployment);
    world.inject(Node::Edge(0), Node::Leader(0), &hello);
    world.run_for(Duration::from_millis(10));
    let challenge = world.recorded.iter().rev().find_map(|packet| match decode(world, packet) {
        Message::JoinChallenge(challenge) if challenge.nonce == nonce => Some(challenge),
        _ => None,
    });
    let challenge = challenge.unwrap();
    let mut asked =
        StandBy { deputy: key, nonce, challenge: challenge.challenge, number: 1, ..honest.clone() };
    asked.received = 0;
    let mut writer = Writer::new();
    writer.lp(asked.group.as_bytes()).lp(&challenge.leader.encode()).lp(&asked.deputy);
    writer.fixed(&nonce).fixed(&asked.challenge).u64(asked.number).u64(asked.received);
    writer.u64(asked.held.term).u64(asked.held.counter).fixed(&asked.digest);
    let signature = keypair.sign(&world.deployment, Label::StandBy, &writer.finish(), &mut world.rng);
    asked.signature = signature.encode();
    let bytes = Message::<S>::StandBy(asked).encode(&world.deployment);
    world.inject(Node::Edge(0), Node::Leader(0), &bytes);
    world.run_for(Duration::from_millis(10));
}

#[test]
fn a_deputy_with_many_keys_takes_one_place() {
    let mut world = World::grouped(14, 2, 3);
    let (_, honest) = question(&world);
    let role = quiver_ainq::Role::Leader { group: name(GROUP), ordinal: 3 };
    for nonce in 1..=10 {
        // The same serial each time.
        let keypair = world.issued("deputy", role.clone());
        ask(&mut world, nonce, &keypair, &honest);
        assert_eq!(world.status(0).unwrap().deputies, 2, "it and the honest one");
    }
}

#[test]
fn a_question_about_another_group_or_to_one_that_does_not_lead_is_refused() {
    let mut world = World::grouped(16, 2, 3);
    let (packet, honest) = question(&world);
    let role = quiver_ainq::Role::Leader { group: name(GROUP), ordinal: 3 };
    let deputy = world.issued("deputy", role);
    let refusals = |world: &World, leader: usize, nonce: [u8; 16]| {
        let told = world
            .recorded
            .iter()
            .filter(|packet| (packet.from, packet.to) == (Node::Leader(leader), Node::Edge(0)));
        let told = told.filter_map(|packet| match decode(world, packet) {
            Message::Refusal(refusal) if refusal.reference == nonce => Some(refusal.reason),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let told = answers(&world);
    ask(&mut world, 1, &deputy, &StandBy { group: name("bravo"), ..honest.clone() });
    assert_eq!(refusals(&world, 0, [1; 16]), [RefusalReason::WrongGroup]);
    assert!(answers(&world) <= told + 1, "beyond the honest deputy's");
    assert_eq!(world.status(0).unwrap().deputies, 1);
    world.inject(Node::Edge(0), Node::Leader(1), &packet.bytes);
    world.run_for(Duration::from_millis(10));
    assert_eq!(refusals(&world, 1, honest.nonce), [RefusalReason::NotReady]);
}

#[test]
fn a_deputy_that_says_it_holds_an_epoch_to_come_confirms_no_eviction() {
    let mut world = World::grouped(15, 2, 3);
    let (_, honest) = question(&world);
    // The honest deputy hears nothing of the eviction; another one says that it holds more than there is.
    world.part(&[Node::Leader(0)], &[Node::Leader(1)]);
    world.command_leader(0, LeaderCommand::Evict(name("edge-1")));
    let epoch = world.epoch(0).unwrap();
    let role = quiver_ainq::Role::Leader { group: name(GROUP), ordinal: 3 };
    let deputy = world.issued("boaster", role);
    let confirmed = |world: &World| {
        let events = world.leader_events(0).iter();
        events.filter(|event| matches!(event, LeaderEvent::Replicated { .. })).count()
    };
    let to_come = [
        Epoch { counter: epoch.counter + 1, ..epoch },
        Epoch { counter: Epoch::MAX_COUNTER, ..epoch },
        Epoch { term: epoch.term + (1 << 16), ..epoch },
    ];
    for (nonce, held) in (1..).zip(to_come) {
        ask(&mut world, nonce, &deputy, &StandBy { held, ..honest.clone() });
        assert_eq!(world.status(0).unwrap().deputies, 2, "it and the honest one");
        assert_eq!(confirmed(&world), 0, "{held:?}");
    }
    world.network.heal();
    world.run_for(Duration::from_secs(3));
    let replicated =
        LeaderEvent::Replicated { epoch, names: vec![name("edge-1")], deputy: Some(name("leader-1")) };
    assert!(world.leader_events(0).contains(&replicated));
}

#[test]
fn a_deputy_that_lost_count_begins_anew() {
    let mut world = World::grouped(12, 2, 3);
    let (deputy, leader) = (world.stolen_key(1), world.leader_public(0));
    for received in [u64::MAX, u64::MAX - 1, 1000] {
        let (_, mut asked) = question(&world);
        asked.number += 1000;
        asked.received = received;
        let mut writer = Writer::new();
        writer.lp(GROUP.as_bytes()).lp(&leader.encode()).lp(&asked.deputy);
        writer.fixed(&asked.nonce).fixed(&asked.challenge).u64(asked.number).u64(asked.received);
        writer.u64(asked.held.term).u64(asked.held.counter).fixed(&asked.digest);
        let signature = deputy.sign(&world.deployment, Label::StandBy, &writer.finish(), &mut world.rng);
        asked.signature = signature.encode();
        let bytes = Message::<S>::StandBy(asked).encode(&world.deployment);
        world.inject(Node::Leader(1), Node::Leader(0), &bytes);
        world.run_for(Duration::from_millis(50));
        assert_eq!(world.status(0).unwrap().deputies, 0, "the session ended");
        world.run_for(SILENCE);
        assert_eq!(world.held(1), world.epoch(0), "and there is another");
    }
}

#[test]
fn an_altered_question_is_blamed_and_told_nothing() {
    let mut world = World::grouped(11, 2, 3);
    let (_, mut asked) = question(&world);
    asked.number += 1000;
    asked.held.counter += 7;
    let bytes = Message::<S>::StandBy(asked).encode(&world.deployment);
    world.inject(Node::Leader(1), Node::Leader(0), &bytes);
    world.run_for(Duration::from_millis(10));
    let blamed = world.blamed_by(Node::Leader(0));
    assert!(blamed.contains(&&Offence::Protocol(Error::InvalidSignature)), "{blamed:?}");
}

#[test]
fn an_older_header_is_no_offence_if_it_holds() {
    let mut world = World::grouped(13, 2, 3);
    let old = world.recorded.iter().find_map(|packet| match decode(&world, packet) {
        Message::Rekey(rekey) if packet.from == Node::Leader(0) => Some(rekey.header),
        _ => None,
    });
    let old = old.unwrap();
    world.command_leader(0, LeaderCommand::Rekey);
    world.run_for(SILENCE);
    let show = |world: &mut World, header: Header<S>| {
        let bytes = Message::Rekey(Rekey::new(header, None)).encode(&world.deployment);
        for leader in [0, 1].map(Node::Leader) {
            world.inject(Node::Edge(0), leader, &bytes);
        }
        world.run_for(Duration::from_millis(10));
        [0, 1].map(|leader| world.blamed_by(Node::Leader(leader)).len())
    };
    // A member that heard nothing newer shows it to whichever leader does not lead.
    assert_eq!(show(&mut world, old.clone()), [0, 0]);
    let mut forged = old;
    forged.tag[0] ^= 1;
    assert_eq!(show(&mut world, forged), [1, 1]);
    assert_eq!(world.blamed_by(Node::Leader(0)), [&Offence::Protocol(Error::InvalidSignature)]);
}
