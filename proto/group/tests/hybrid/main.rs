//! The second factor of pairwise secrets: one exchange for a drone and a leader, no bytes afterwards, and no
//! way round it.

mod world;

use std::time::Duration;

use quiver_ainq::{Error, StrategyKind};
use quiver_crypto::Secret;
use quiver_group::{EdgeCommand, EdgeEvent, KEM_LIFETIME, Leader, LeaderCommand, LeaderEvent};
use quiver_kem::{KemSet, KemSetting, encapsulate};
use quiver_machine::{Misdeed, Offence};
use quiver_message::{JoinCiphertext, JoinHello, JoinRequest, KemOffer, Message, Refusal, RefusalReason};
use quiver_testbed::{matching, name};

use world::{GROUP, Node, Packet, S, World, keys};

/// A drone leaves and comes back.
fn comes_back(world: &mut World, edge: usize) {
    world.command_edge(edge, EdgeCommand::Leave);
    let called = name(&format!("edge-{edge}"));
    world.run_until("it left", |world| world.leader(0).members().all(|(_, member)| *member != called));
    world.run_for(Duration::from_secs(10));
    assert!(!world.synced(edge));
    world.command_edge(edge, EdgeCommand::Join(name(GROUP)));
    world.run_until("it is back", |world| world.follow(0, [edge]));
}

fn formed_with_one_exchange_each(strategy: StrategyKind, shared_medium: bool, set: KemSetting) {
    let mut world = World::with(1, 1, strategy, shared_medium);
    for node in [Node::Leader(0)].into_iter().chain((0..10).map(Node::Edge)) {
        world.settings.insert(node, set);
    }
    world.restart(Node::Leader(0));
    let start = world.recorded.len();
    world.form(10);
    let (requests, ciphertexts) = (world.requests_since(start), world.ciphertexts_since(start));
    assert_eq!((keys(&requests).len(), ciphertexts.len()), (10, 10));
    let set = set.set().unwrap();
    assert!(keys(&requests).iter().all(|key| key.len() == set.key_len()));
    assert!(ciphertexts.iter().all(|ciphertext| ciphertext.ciphertext.len() == set.ciphertext_len()));
    let start = world.recorded.len();
    world.command::<Leader<S>>(Node::Leader(0), LeaderCommand::Rekey);
    world.command::<Leader<S>>(Node::Leader(0), LeaderCommand::Evict(name("edge-9")));
    world.command_edge(8, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(20));
    assert!(world.follow(0, 0..8));
    assert!(!world.synced(8) && !world.synced(9));
    // Nor does a term's opening need any.
    world.restart(Node::Leader(0));
    world.run_until("all follow", |world| world.follow(0, 0..8));
    // The evicted drone asks once more, by the name of what it has.
    assert_eq!((keys(&world.requests_since(start)).len(), world.ciphertexts_since(start).len()), (0, 0));
    let mut rekeys = 0;
    for (_, message) in world.sent_since(start) {
        if let Message::Rekey(rekey) = &message {
            rekeys += 1;
            let mut without = rekey.clone();
            without.header.core.kem = None;
            let (with, without) = (&message, Message::Rekey(without));
            let more = with.encode(&world.deployment).len() - without.encode(&world.deployment).len();
            assert!(more <= 6, "{more} bytes of set and count");
        }
    }
    assert!(rekeys > 0);
}

#[test]
fn drones_exchange_once_and_then_no_epoch_costs_more_bytes_than_set_and_count() {
    formed_with_one_exchange_each(StrategyKind::Flat, false, KemSetting::MlKem768);
}

#[test]
fn so_it_is_with_the_larger_set_and_a_tree() {
    formed_with_one_exchange_each(StrategyKind::Tree, false, KemSetting::MlKem1024);
}

#[test]
fn newcomers_that_follow_by_one_broadcast_have_the_second_factor_by_then() {
    formed_with_one_exchange_each(StrategyKind::Tree, true, KemSetting::MlKem768);
}

#[test]
fn drone_that_comes_back_names_what_both_have_and_needs_no_bytes() {
    let mut world = World::grouped(2, 1, 3);
    let mut tags = Vec::new();
    for _ in 0..2 {
        let start = world.recorded.len();
        comes_back(&mut world, 1);
        let requests = world.requests_since(start);
        assert_eq!((requests.len(), world.ciphertexts_since(start).len()), (1, 0));
        let tag = matching!(Some(KemOffer::Held { tag, .. }) => tag)(requests[0].kem.clone());
        tags.push(tag.expect("it names a key"));
        world.restart(Node::Leader(0));
        world.run_until("all follow", |world| world.follow(0, 0..3));
    }
    assert_ne!(tags[0], tags[1], "the tag changes with the leader's terms");
}

#[test]
fn terms_of_a_leader_are_counted_and_no_disk_has_what_was_before() {
    let mut world = World::grouped(3, 1, 2);
    let g = world.kem(0).unwrap().g();
    // A member that misses terms follows the newest all the same.
    world.stop(Node::Edge(1));
    let before = world.states(0).pop().unwrap();
    let at_leader = world.leader(0).checkpoint();
    for _ in 0..3 {
        world.restart(Node::Leader(0));
        world.run_until("it follows", |world| world.follow(0, [0]));
    }
    world.start(Node::Edge(1));
    world.run_until("both follow", |world| world.follow(0, 0..2));
    assert_eq!(world.kem(0).unwrap().g(), g + 3);
    // κ is the last secret of a state: 32 bytes before its time, which has five.
    let key = |state: &[u8]| state[state.len() - 37..state.len() - 5].to_vec();
    let (old, after) = (key(before.as_bytes()), world.states(0).pop().unwrap());
    assert_ne!(old, key(after.as_bytes()));
    assert!(!after.as_bytes().windows(32).any(|window| window == old));
    let has = |records: &[quiver_group::LeaderRecord]| {
        records.iter().any(|record| record.as_bytes().windows(32).any(|window| window == old))
    };
    assert!(has(&at_leader), "both had the same");
    assert!(!has(&world.leader(0).checkpoint()));
    let records = world.records::<Leader<S>>(Node::Leader(0));
    assert!(has(&records), "the log has it until the driver compacts it");
}

#[test]
fn old_key_is_renewed_at_the_next_join() {
    let mut world = World::grouped(4, 1, 2);
    world.skip(KEM_LIFETIME);
    world.run_until("it is in step again", |world| world.follow(0, 0..2));
    let start = world.recorded.len();
    comes_back(&mut world, 1);
    let requests = world.requests_since(start);
    assert_eq!((keys(&requests).len(), world.ciphertexts_since(start).len()), (1, 1));
    // And is young then.
    let start = world.recorded.len();
    comes_back(&mut world, 1);
    assert_eq!(world.ciphertexts_since(start).len(), 0);
}

/// Numbers of encapsulation keys and of ciphertexts that were sent when an operator had κ renewed.
fn renewed(world: &mut World, of: Option<&str>) -> (usize, usize) {
    let start = world.recorded.len();
    world.command::<Leader<S>>(Node::Leader(0), LeaderCommand::RenewKem(of.map(name)));
    world.run_until("all are in again", |world| world.follow(0, 0..3));
    (keys(&world.requests_since(start)).len(), world.ciphertexts_since(start).len())
}

#[test]
fn key_is_renewed_on_demand_with_one_member_or_all_and_no_disk_has_the_one_before() {
    let mut world = World::grouped(41, 1, 3);
    let had = |world: &World| {
        let states: Vec<_> = (0..3).map(|edge| world.edge(edge).kem_state().unwrap()).collect();
        (states, world.leader(0).checkpoint())
    };
    let key = |world: &World, edge: usize| {
        let state = world.states(edge).pop().unwrap();
        let bytes = state.as_bytes();
        bytes[bytes.len() - 37..bytes.len() - 5].to_vec()
    };
    let before: Vec<_> = (0..3).map(|edge| key(&world, edge)).collect();
    let (states, disk) = had(&world);
    world.run_for(Duration::from_secs(100));
    assert_eq!(renewed(&mut world, Some("edge-1")), (1, 1));
    let (after, _) = had(&world);
    // One exchange is younger; all count the term that opened.
    let younger: Vec<_> = states.iter().zip(&after).map(|(old, new)| new.made > old.made).collect();
    assert_eq!(younger, [false, true, false]);
    assert!(states.iter().zip(&after).all(|(old, new)| new.term.g() == old.term.g() + 1));
    assert_eq!(renewed(&mut world, None), (3, 3));
    // Secrets from the leader's disk are no part of what follows, stepped or not.
    let (_, renewed_disk) = had(&world);
    let has = |records: &[quiver_group::LeaderRecord], key: &[u8]| {
        records.iter().any(|record| record.as_bytes().windows(32).any(|window| window == key))
    };
    for (edge, old) in before.iter().enumerate() {
        assert!(has(&disk, old) && !has(&renewed_disk, old), "edge {edge}");
        assert!(has(&renewed_disk, &key(&world, edge)), "both have the new one");
    }
}

#[test]
fn renewal_of_a_stranger_or_where_nothing_is_shared_opens_no_term() {
    let mut world = World::grouped(42, 1, 2);
    let g = world.kem(0).unwrap().g();
    world.command::<Leader<S>>(Node::Leader(0), LeaderCommand::RenewKem(Some(name("edge-9"))));
    assert!(world.leader_events(0).contains(&LeaderEvent::NoSuchMember(name("edge-9"))));
    assert_eq!(world.kem(0).unwrap().g(), g);
    let mut world = World::with(43, 1, StrategyKind::Flat, false);
    for node in [Node::Leader(0), Node::Edge(0)] {
        world.settings.insert(node, KemSetting::None);
    }
    world.restart(Node::Leader(0));
    world.form(1);
    assert_eq!((world.leader(0).classical_pairs(), world.edge(0).kem_state()), (1, None));
    world.command::<Leader<S>>(Node::Leader(0), LeaderCommand::RenewKem(None));
    assert!(world.leader_events(0).contains(&LeaderEvent::KemForgotten { keys: 0 }));
    world.run_for(Duration::from_secs(5));
    assert!(world.follow(0, [0]) && world.synced(0));
}

#[test]
fn drone_that_lost_its_disk_makes_a_new_one() {
    let mut world = World::grouped(5, 1, 2);
    world.stop(Node::Edge(1));
    // From when it had enrolled, and not joined yet: the form without κ.
    let mut states = world.states(1);
    states.retain(|state| state.as_bytes()[0] == 4);
    world.set_states(1, states);
    let start = world.recorded.len();
    world.start(Node::Edge(1));
    world.run_until("it is back", |world| world.follow(0, 0..2));
    assert_eq!(world.ciphertexts_since(start).len(), 1);
}

#[test]
fn leader_whose_memory_was_put_back_learns_its_count_from_a_member_and_needs_no_new_exchange() {
    let mut world = World::grouped(6, 1, 3);
    let backup = world.records::<Leader<S>>(Node::Leader(0));
    for _ in 0..5 {
        world.restart(Node::Leader(0));
        world.run_until("all follow", |world| world.follow(0, 0..3));
    }
    let g = world.kem(0).unwrap().g();
    world.stop(Node::Leader(0));
    world.set_leader_records(backup);
    let start = world.recorded.len();
    world.start(Node::Leader(0));
    world.run_until("all are in again", |world| world.follow(0, 0..3));
    let own = |event: &&LeaderEvent| matches!(event, LeaderEvent::OwnHeader { .. });
    assert_eq!(world.leader_events(0).iter().filter(own).count(), 1);
    assert!(world.kem(0).unwrap().g() > g);
    assert_eq!(world.ciphertexts_since(start).len(), 0);
}

#[test]
fn leader_that_lost_the_key_asks_for_a_new_one() {
    let mut world = World::new(7, 1);
    let backup = world.records::<Leader<S>>(Node::Leader(0));
    world.form(2);
    world.command_edge(1, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(10));
    // From before it knew anybody.
    world.stop(Node::Leader(0));
    world.set_leader_records(backup);
    let start = world.recorded.len();
    world.start(Node::Leader(0));
    world.command_edge(1, EdgeCommand::Join(name(GROUP)));
    world.run_until("both are in", |world| world.follow(0, 0..2));
    assert_eq!(world.ciphertexts_since(start).len(), 2);
    let lost = |event: &EdgeEvent| matches!(event, EdgeEvent::Refused(RefusalReason::KemLost));
    assert!((0..2).all(|edge| world.edge_events(edge).iter().any(lost)));
}

/// Encapsulates to the key of a request, as anybody can who sees it.
fn forged(request: &JoinRequest, like: &JoinCiphertext, number: u8) -> JoinCiphertext {
    let Some(KemOffer::Key { set, key } | KemOffer::Ahead { set, key }) = &request.kem else {
        panic!("a key")
    };
    let (ciphertext, _) = encapsulate(*set, key, &Secret::new([number; 32])).unwrap();
    JoinCiphertext { ciphertext, ..like.clone() }
}

#[test]
fn forged_ciphertexts_before_the_leaders_end_nothing() {
    let mut world = World::new(8, 1);
    let deployment = world.deployment.clone();
    let mut request = None;
    world.tamper = Some(Box::new(move |packet: Packet| {
        match Message::<S>::decode(&deployment, &packet.bytes) {
            Ok(Message::JoinRequest(asked)) => request = Some(asked),
            Ok(Message::JoinCiphertext(genuine)) => {
                let asked = request.as_ref().unwrap();
                let mut packets: Vec<Packet> = (0..3)
                    .map(|number| {
                        let message = Message::<S>::JoinCiphertext(forged(asked, &genuine, number));
                        Packet { bytes: message.encode(&deployment), ..packet.clone() }
                    })
                    .collect();
                packets.push(packet);
                return packets;
            }
            _ => {}
        }
        vec![packet]
    }));
    world.add_edge("edge-0");
    world.run_until("it joined", |world| world.follow(0, [0]));
    assert_eq!(world.ciphertexts_since(0).len(), 1, "in the first attempt");
}

#[test]
fn ciphertexts_of_another_peer_than_the_one_asked_are_not_tried() {
    let mut world = World::new(31, 2);
    let deployment = world.deployment.clone();
    let mut request = None;
    world.tamper = Some(Box::new(move |packet: Packet| {
        match Message::<S>::decode(&deployment, &packet.bytes) {
            Ok(Message::JoinRequest(asked)) => request = Some(asked),
            Ok(Message::JoinCiphertext(genuine)) => {
                // As many as the drone tries, by a deputy that it is connected to as well.
                let asked = request.as_ref().unwrap();
                let mut packets: Vec<Packet> = (0..4)
                    .map(|number| {
                        let message = Message::<S>::JoinCiphertext(forged(asked, &genuine, number));
                        let bytes = message.encode(&deployment);
                        Packet { from: Node::Leader(1), bytes, ..packet.clone() }
                    })
                    .collect();
                packets.push(packet);
                return packets;
            }
            _ => {}
        }
        vec![packet]
    }));
    world.add_edge("edge-0");
    world.run_until("it joined", |world| world.follow(0, [0]));
    assert_eq!(world.ciphertexts_since(0).len(), 1, "in the first attempt");
}

#[test]
fn swapped_ciphertexts_admit_nobody_and_bar_nobody() {
    let mut world = World::new(9, 1);
    let deployment = world.deployment.clone();
    let mut held: Option<Packet> = None;
    let mut swapped = 0;
    world.tamper = Some(Box::new(move |packet: Packet| {
        let Ok(Message::JoinCiphertext(mine)) = Message::<S>::decode(&deployment, &packet.bytes) else {
            return vec![packet];
        };
        if swapped >= 2 {
            return vec![packet];
        }
        let Some(other) = held.take() else {
            held = Some(packet);
            return Vec::new();
        };
        let Ok(Message::JoinCiphertext(theirs)) = Message::<S>::decode(&deployment, &other.bytes) else {
            return vec![packet];
        };
        swapped += 1;
        let with = |to: &Packet, nonce: &JoinCiphertext, of: &JoinCiphertext| {
            let swapped = JoinCiphertext { nonce: nonce.nonce, ..of.clone() };
            Packet { bytes: Message::<S>::JoinCiphertext(swapped).encode(&deployment), ..to.clone() }
        };
        vec![with(&packet, &mine, &theirs), with(&other, &theirs, &mine)]
    }));
    world.add_edge("edge-0");
    world.add_edge("edge-1");
    world.run_for(Duration::from_secs(5));
    assert!(!world.synced(0) && !world.synced(1));
    let wrong = Offence::Protocol(Error::WrongTag);
    assert!(world.blamed_by_edge(0).contains(&&wrong));
    world.run_until("both joined", |world| world.follow(0, 0..2));
}

#[test]
fn request_that_is_played_again_buys_no_second_encapsulation() {
    let mut world = World::new(10, 1);
    world.add_edge("edge-0");
    world.run_until("it joined", |world| world.follow(0, [0]));
    let request = world.sent_since(0).find(|(_, message)| matches!(message, Message::JoinRequest(_)));
    let bytes = request.unwrap().0.bytes.clone();
    world.inject(Node::Edge(0), Node::Leader(0), &bytes);
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.ciphertexts_since(0).len(), 1);
    let replayed = |event: &LeaderEvent| {
        matches!(event, LeaderEvent::Blamed { offence: Offence::Protocol(Error::Replay), .. })
    };
    assert!(world.leader_events(0).iter().any(replayed));
    assert!(world.follow(0, [0]));
}

#[test]
fn stranger_buys_no_encapsulation_without_a_cookie_nor_without_a_signature() {
    let mut world = World::new(11, 1);
    world.add_edge("edge-0");
    world.run_until("it joined", |world| world.follow(0, [0]));
    let request = world.requests_since(0).pop().unwrap();
    let start = world.recorded.len();
    // Over another connection, where the cookie does not hold. Its drone gets no key, so it asks for nothing
    // itself.
    world.stop(Node::Kgc);
    let stranger = world.add_edge("edge-1");
    let first = Message::<S>::JoinRequest(request.clone()).encode(&world.deployment);
    world.inject(Node::Edge(stranger), Node::Leader(0), &first);
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.ciphertexts_since(start).len(), 0);
    // With a cookie of its own, and somebody else's signature.
    let hello = JoinHello {
        group: request.group.clone(),
        drone: request.drone.clone(),
        nonce: [5; 16],
        kem: Some(KemSet::MlKem768),
    };
    let hello = Message::<S>::JoinHello(hello).encode(&world.deployment);
    world.inject(Node::Edge(stranger), Node::Leader(0), &hello);
    world.run_for(Duration::from_millis(50));
    let challenge = world.sent_since(start).find_map(|(_, message)| match message {
        Message::JoinChallenge(challenge) if challenge.nonce == [5; 16] => Some(challenge.challenge),
        _ => None,
    });
    let forged = JoinRequest { nonce: [5; 16], challenge: challenge.unwrap(), ..request };
    let forged = Message::<S>::JoinRequest(forged).encode(&world.deployment);
    world.inject(Node::Edge(stranger), Node::Leader(0), &forged);
    world.run_for(Duration::from_millis(50));
    let to_stranger = world.sent_since(start).filter(
        |(_, message)| matches!(message, Message::JoinCiphertext(ciphertext) if ciphertext.nonce == [5; 16]),
    );
    assert_eq!(to_stranger.count(), 0);
    assert!(world.penalized.contains(&(Node::Leader(0), Node::Edge(stranger), Misdeed::Forgery)));
}

/// A world in which a drone wants to join, and every message of a kind is changed on its way.
fn changed(change: impl Fn(&mut Message<S>) + 'static) -> World {
    let mut world = World::new(12, 1);
    let deployment = world.deployment.clone();
    world.change_with(move |packet| {
        if let Ok(mut message) = Message::<S>::decode(&deployment, &packet.bytes) {
            change(&mut message);
            packet.bytes = message.encode(&deployment);
        }
    });
    world.add_edge("edge-0");
    world
}

/// The same where the drone stays out until nothing is changed any more.
fn with_changed(change: impl Fn(&mut Message<S>) + 'static) -> World {
    let mut world = changed(change);
    world.run_for(Duration::from_secs(40));
    assert!(!world.synced(0), "joined without the second factor");
    world.tamper = None;
    world.run_until("it joined", |world| world.follow(0, [0]));
    world
}

#[test]
fn relay_that_strips_the_second_factor_off_a_message_keeps_drones_out_and_brings_none_in_without() {
    let mut world = changed(|message| {
        if let Message::JoinHello(hello) = message {
            hello.kem = None;
        }
    });
    // The challenge says what the leader has, so the drone joins with it all the same.
    world.run_until("it joined", |world| world.follow(0, [0]));
    assert!(world.kem(0).is_some());
    assert_eq!(world.ciphertexts_since(0).len(), 1);
    let told = |event: &LeaderEvent| {
        let (own, other) = (KemSetting::MlKem768, KemSetting::None);
        matches!(event, LeaderEvent::KemDiffers { own: a, other: b, .. } if (*a, *b) == (own, other))
    };
    assert!(world.leader_events(0).iter().any(told));
    let world = with_changed(|message| {
        if let Message::JoinChallenge(challenge) = message {
            challenge.kem = None;
        }
    });
    let differs = EdgeEvent::KemDiffers { own: KemSetting::MlKem768, leader: KemSetting::None };
    assert!(world.edge_events(0).contains(&differs));
    let world = with_changed(|message| {
        if let Message::JoinRequest(request) = message {
            request.kem = None;
        }
    });
    assert!(world.leader_events(0).iter().any(told));
    assert!(world.edge_events(0).contains(&EdgeEvent::Refused(RefusalReason::Kem768)));
    let world = with_changed(|message| {
        if let Message::Welcome(welcome) = message {
            welcome.header.core.kem = None;
        }
    });
    assert!(world.blamed_by_edge(0).contains(&&Offence::Protocol(Error::OtherKem)));
    let world = with_changed(|message| {
        // Another key of the relay's own: the signature covers the drone's.
        if let Message::JoinRequest(request) = message
            && let Some(KemOffer::Key { key, .. }) = &mut request.kem
        {
            let seed = Secret::new([9; quiver_kem::SEED_LEN]);
            *key = quiver_kem::DecapsulationKey::generate(KemSet::MlKem768, seed).1;
        }
    });
    let forged = |event: &LeaderEvent| {
        matches!(event, LeaderEvent::Refused { reason: RefusalReason::BadSignature, .. })
    };
    assert!(world.leader_events(0).iter().any(forged));
    with_changed(|message| {
        // No membership is asked for so, and none is given.
        if let Message::JoinRequest(request) = message
            && let Some(KemOffer::Key { set, key }) = request.kem.take()
        {
            request.kem = Some(KemOffer::Ahead { set, key });
        }
    });
}

#[test]
fn stranger_that_speaks_of_less_brings_nobody_in_or_on_without_the_second_factor() {
    let mut world = World::new(61, 1);
    for node in [Node::Leader(0), Node::Edge(0), Node::Edge(1)] {
        world.settings.insert(node, KemSetting::None);
    }
    world.restart(Node::Leader(0));
    world.form(2);
    // Header that the leader signed before the deployment had a second factor.
    let signed = |(packet, message): &(&Packet, _)| {
        packet.from == Node::Leader(0) && matches!(message, Message::<S>::Rekey(_) | Message::Welcome(_))
    };
    let old: Vec<Vec<u8>> =
        world.sent_since(0).filter(signed).map(|(packet, _)| packet.bytes.clone()).collect();
    let classical = world.requests_since(0);
    assert!(!old.is_empty() && !classical.is_empty());
    world.settings.clear();
    for node in [Node::Leader(0), Node::Edge(0), Node::Edge(1)] {
        world.restart(node);
    }
    world.run_until("all follow", |world| world.follow(0, 0..2));
    world.run_for(Duration::from_secs(10));
    // A stranger: its drone gets no key.
    world.stop(Node::Kgc);
    let stranger = Node::Edge(world.add_edge("edge-2"));
    let (key, state, start) = (world.key(0), world.edge(0).kem_state(), world.recorded.len());
    for bytes in &old {
        world.publish(stranger, bytes);
        world.inject(stranger, Node::Leader(0), bytes);
    }
    for (set, nonce) in [(None, [7; 16]), (Some(KemSet::MlKem1024), [8; 16])] {
        let (group, drone) = (name(GROUP), classical[0].drone.clone());
        let hello = Message::<S>::JoinHello(JoinHello { group, drone, nonce, kem: set });
        let hello = hello.encode(&world.deployment);
        world.inject(stranger, Node::Leader(0), &hello);
        world.run_for(Duration::from_millis(50));
        let challenge = world.sent_since(start).find_map(|(_, message)| match message {
            Message::JoinChallenge(challenge) if challenge.nonce == nonce => Some(challenge),
            _ => None,
        });
        let challenge = challenge.expect("a challenge");
        // Its own set, whatever it was asked with.
        assert_eq!(challenge.kem.map(|term| term.set()), Some(KemSet::MlKem768));
        let kem = set.map(|set| KemOffer::Key { set, key: vec![0; set.key_len()] });
        let request = JoinRequest { nonce, challenge: challenge.challenge, kem, ..classical[0].clone() };
        let request = Message::<S>::JoinRequest(request).encode(&world.deployment);
        world.inject(stranger, Node::Leader(0), &request);
        world.run_for(Duration::from_secs(5));
        let refused = world.sent_since(start).any(|(_, message)| {
            matches!(message, Message::Refusal(refusal)
                if refusal.reference == nonce && refusal.reason == RefusalReason::Kem768)
        });
        assert!(refused, "{set:?}");
    }
    // Nobody signs a refusal: it sets the pace, and takes nothing.
    for reason in [RefusalReason::KemNone, RefusalReason::Kem1024, RefusalReason::KemLost] {
        let (reference, retry_after) = (vec![7; 16], Duration::ZERO);
        let refusal = Message::<S>::Refusal(Refusal { reason, reference, retry_after });
        let refusal = refusal.encode(&world.deployment);
        world.inject(Node::Leader(0), Node::Edge(0), &refusal);
    }
    world.run_for(Duration::from_secs(30));
    assert_eq!((world.key(0), world.edge(0).kem_state()), (key, state));
    assert_eq!(world.leader(0).classical_pairs(), 0);
    assert_eq!(world.ciphertexts_since(start).len(), 0);
    world.command::<Leader<S>>(Node::Leader(0), LeaderCommand::Rekey);
    world.run_until("all follow with it", |world| world.follow(0, 0..2));
    assert_eq!(world.kem(0).map(|term| term.set()), Some(KemSet::MlKem768));
}

#[test]
fn ends_whose_deployments_differ_say_so_on_both_sides_and_nothing_falls_back() {
    use KemSetting::{MlKem768, MlKem1024, None};
    for (edge, leader) in
        [(None, MlKem768), (None, MlKem1024), (MlKem768, None), (MlKem768, MlKem1024), (MlKem1024, MlKem768)]
    {
        let mut world = World::new(13, 1);
        world.settings.insert(Node::Leader(0), leader);
        world.settings.insert(Node::Edge(0), edge);
        world.restart(Node::Leader(0));
        world.add_edge("edge-0");
        world.run_for(Duration::from_secs(120));
        assert!(!world.synced(0) && world.leader(0).status().members == 0);
        let stopped = EdgeEvent::KemDiffers { own: edge, leader };
        assert!(world.edge_events(0).contains(&stopped), "{edge} at {leader}");
        assert!(world.requests_since(0).is_empty(), "{edge} at {leader}");
        let told = |event: &LeaderEvent| matches!(event, LeaderEvent::KemDiffers { own, other, .. } if (*own, *other) == (leader, edge));
        assert!(world.leader_events(0).iter().any(told), "{edge} at {leader}");
        // The operator sets one like the other.
        world.settings.insert(Node::Edge(0), leader);
        world.restart(Node::Edge(0));
        world.run_until("it joined", |world| world.follow(0, [0]));
    }
}

#[test]
fn members_follow_no_leader_that_goes_on_without_the_second_factor() {
    stays_with(KemSetting::MlKem768, KemSetting::None);
}

#[test]
fn members_follow_no_leader_that_goes_on_with_a_smaller_set() {
    stays_with(KemSetting::MlKem1024, KemSetting::MlKem768);
}

/// Members of a group with one setting follow no leader that goes on with another.
fn stays_with(own: KemSetting, other: KemSetting) {
    let mut world = World::new(14, 1);
    let nodes = [Node::Leader(0)].into_iter().chain((0..3).map(Node::Edge));
    world.settings.extend(nodes.map(|node| (node, own)));
    world.restart(Node::Leader(0));
    world.form(3);
    let key = world.key(0);
    world.settings.insert(Node::Leader(0), other);
    world.restart(Node::Leader(0));
    world.run_for(Duration::from_secs(120));
    for edge in 0..3 {
        assert!(!world.follow(0, [edge]));
        assert!(world.key(edge).is_none() || world.key(edge) == key, "nothing new");
        assert!(world.blamed_by_edge(edge).contains(&&Offence::Protocol(Error::OtherKem)));
    }
    world.settings.insert(Node::Leader(0), own);
    world.restart(Node::Leader(0));
    world.run_until("all follow", |world| world.follow(0, 0..3));
    assert_eq!(world.kem(0).map(|term| term.set()), own.set());
}

#[test]
fn group_that_had_no_second_factor_gets_one_when_all_ends_are_set_to_it() {
    let mut world = World::new(15, 1);
    let nodes = || [Node::Leader(0)].into_iter().chain((0..3).map(Node::Edge));
    for node in nodes() {
        world.settings.insert(node, KemSetting::None);
    }
    world.restart(Node::Leader(0));
    world.form(3);
    assert_eq!(world.kem(0), None);
    assert_eq!(world.ciphertexts_since(0).len(), 0);
    world.settings.clear();
    for node in nodes() {
        world.restart(node);
    }
    world.run_until("all follow", |world| world.follow(0, 0..3));
    assert_eq!(world.kem(0).map(|term| term.set()), Some(KemSet::MlKem768));
    assert_eq!(world.ciphertexts_since(0).len(), 3);
}

#[test]
fn edge_set_to_a_second_factor_keeps_no_membership_without_one() {
    let mut world = World::new(18, 1);
    for node in [Node::Leader(0)].into_iter().chain((0..3).map(Node::Edge)) {
        world.settings.insert(node, KemSetting::None);
    }
    world.restart(Node::Leader(0));
    world.form(3);
    world.settings.insert(Node::Edge(0), KemSetting::MlKem768);
    world.restart(Node::Edge(0));
    world.run_for(Duration::from_secs(60));
    assert!(world.key(0).is_none());
    let dropped = EdgeEvent::MembershipDropped { error: Error::OtherKem };
    assert!(world.edge_events(0).contains(&dropped));
    assert!(world.follow(0, 1..3));
    world.settings.insert(Node::Edge(0), KemSetting::None);
    world.restart(Node::Edge(0));
    world.run_until("all follow", |world| world.follow(0, 0..3));
}

#[test]
fn deputy_of_another_set_stands_by_while_the_leader_lives() {
    let mut world = World::grouped(19, 2, 3);
    world.settings.insert(Node::Leader(1), KemSetting::None);
    world.restart(Node::Leader(1));
    world.run_for(Duration::from_secs(60));
    world.command::<Leader<S>>(Node::Leader(0), LeaderCommand::Rekey);
    world.run_for(Duration::from_secs(60));
    let took_over = |event: &LeaderEvent| matches!(event, LeaderEvent::TookOver { .. });
    assert!(!world.leader_events(1).iter().any(took_over));
    assert!(world.follow(0, 0..3));
    // Both say what is wrong.
    for (leader, own, other) in
        [(0, KemSetting::MlKem768, KemSetting::None), (1, KemSetting::None, KemSetting::MlKem768)]
    {
        let told = |event: &LeaderEvent| matches!(event, LeaderEvent::KemDiffers { own: a, other: b, .. } if (*a, *b) == (own, other));
        assert!(world.leader_events(leader).iter().any(told), "leader {leader}");
    }
}

#[test]
fn leader_set_to_none_forgets_its_keys() {
    let mut world = World::grouped(20, 1, 1);
    // κ is the last secret of a state: 32 bytes before its time, which has five.
    let state = world.states(0).pop().unwrap();
    let bytes = state.as_bytes();
    let key = bytes[bytes.len() - 37..bytes.len() - 5].to_vec();
    let has = |world: &World| {
        let records = world.leader(0).checkpoint();
        records.iter().any(|record| record.as_bytes().windows(32).any(|window| window == key))
    };
    assert!(has(&world));
    world.settings.insert(Node::Leader(0), KemSetting::None);
    let before = world.records::<Leader<S>>(Node::Leader(0)).len();
    world.restart(Node::Leader(0));
    world.run_for(Duration::from_secs(5));
    assert!(!has(&world));
    let since = world.records::<Leader<S>>(Node::Leader(0)).split_off(before);
    assert_eq!(since.iter().filter(|record| record.erases()).count(), 1);
}

/// Two leaders and drones that want to join, whose deputy's challenges are lost.
fn without_contact_to_the_deputy(seed: u64, drones: usize) -> World {
    let mut world = World::new(seed, 2);
    let deployment = world.deployment.clone();
    world.tamper = Some(Box::new(move |packet: Packet| {
        let message = Message::<S>::decode(&deployment, &packet.bytes);
        let lost = packet.from == Node::Leader(1) && matches!(message, Ok(Message::JoinChallenge(_)));
        if lost { Vec::new() } else { vec![packet] }
    }));
    world.form(drones);
    world
}

/// The requests for a key ahead of a leader's term, with who sent them and to whom.
fn requests_ahead(world: &World, start: usize) -> Vec<(&Packet, JoinRequest)> {
    let ahead = |(packet, message)| match message {
        Message::JoinRequest(request) if matches!(request.kem, Some(KemOffer::Ahead { .. })) => {
            Some((packet, request))
        }
        _ => None,
    };
    world.sent_since(start).filter_map(ahead).collect()
}

fn takes_over_without_an_exchange(strategy: StrategyKind, set: KemSetting) {
    let mut world = World::with(16, 2, strategy, false);
    let nodes = (0..2).map(Node::Leader).chain((0..4).map(Node::Edge));
    world.settings.extend(nodes.map(|node| (node, set)));
    (0..2).for_each(|leader| world.restart(Node::Leader(leader)));
    let start = world.recorded.len();
    world.form(4);
    world.run_for(Duration::from_secs(10));
    // One with the leader, at the join, and one with the deputy, ahead of its term.
    assert_eq!(world.ciphertexts_since(start).len(), 8);
    let asked: Vec<Node> = requests_ahead(&world, start).iter().map(|(packet, _)| packet.to).collect();
    assert_eq!(asked, [Node::Leader(1); 4]);
    let start = world.recorded.len();
    world.stop(Node::Leader(0));
    world.run_until("all follow the deputy", |world| world.follow(1, 0..4));
    assert_eq!((world.requests_since(start).len(), world.ciphertexts_since(start).len()), (0, 0));
    assert_eq!(world.kem(1).unwrap().g(), 1, "each leader counts its own");
    // So it is the other way round.
    world.start(Node::Leader(0));
    world.run_for(Duration::from_secs(30));
    let start = world.recorded.len();
    world.stop(Node::Leader(1));
    world.run_until("all follow the leader", |world| world.follow(0, 0..4));
    assert_eq!((world.requests_since(start).len(), world.ciphertexts_since(start).len()), (0, 0));
}

#[test]
fn members_make_a_key_with_a_deputy_before_it_leads_and_its_takeover_needs_no_exchange() {
    takes_over_without_an_exchange(StrategyKind::Flat, KemSetting::MlKem768);
    takes_over_without_an_exchange(StrategyKind::Tree, KemSetting::MlKem1024);
}

#[test]
fn deputies_are_asked_for_nothing_where_there_is_no_second_factor_or_both_have_it() {
    let mut world = World::new(50, 2);
    let nodes = (0..2).map(Node::Leader).chain((0..2).map(Node::Edge));
    world.settings.extend(nodes.map(|node| (node, KemSetting::None)));
    (0..2).for_each(|leader| world.restart(Node::Leader(leader)));
    world.form(2);
    let start = world.recorded.len();
    world.restart(Node::Edge(0));
    world.run_for(Duration::from_secs(60));
    let greeted = |world: &World, start: usize| {
        let hello = |(packet, message): &(&Packet, _)| {
            packet.to == Node::Leader(1)
                && matches!(packet.from, Node::Edge(_))
                && matches!(message, Message::<S>::JoinHello(_))
        };
        world.sent_since(start).filter(hello).count()
    };
    assert_eq!(greeted(&world, start), 0);
    let mut world = World::grouped(51, 2, 2);
    world.run_for(Duration::from_secs(10));
    assert_eq!(requests_ahead(&world, 0).len(), 2);
    // After a start a drone looks whether it still leads to the deputy's count: a hello, no more.
    let start = world.recorded.len();
    world.restart(Node::Edge(0));
    world.restart(Node::Leader(1));
    world.run_for(Duration::from_secs(60));
    assert!(greeted(&world, start) > 0);
    assert_eq!(requests_ahead(&world, start).len(), 0);
    // It is renewed when it is old.
    world.skip(KEM_LIFETIME);
    world.run_until("they are in step again", |world| world.follow(0, 0..2));
    let start = world.recorded.len();
    world.restart(Node::Edge(0));
    world.run_for(Duration::from_secs(60));
    assert_eq!(requests_ahead(&world, start).len(), 1);
}

#[test]
fn deputy_lists_who_has_no_key_with_it_and_these_make_one() {
    let mut world = without_contact_to_the_deputy(16, 4);
    assert_eq!(world.ciphertexts_since(0).len(), 4);
    world.tamper = None;
    let start = world.recorded.len();
    world.stop(Node::Leader(0));
    world.run_until("all follow the deputy", |world| world.follow(1, 0..4));
    assert_eq!((keys(&world.requests_since(start)).len(), world.ciphertexts_since(start).len()), (4, 4));
    assert_eq!(world.kem(1).unwrap().g(), 1);
}

#[test]
fn forged_ciphertext_in_a_deputys_name_costs_a_join_and_no_more() {
    let mut world = World::new(52, 2);
    let deployment = world.deployment.clone();
    let mut request = None;
    world.tamper = Some(Box::new(move |packet: Packet| {
        match Message::<S>::decode(&deployment, &packet.bytes) {
            Ok(Message::JoinRequest(asked)) if matches!(asked.kem, Some(KemOffer::Ahead { .. })) => {
                request = Some(asked);
            }
            Ok(Message::JoinCiphertext(genuine)) if packet.from == Node::Leader(1) => {
                if let Some(asked) = request.take() {
                    let message = Message::<S>::JoinCiphertext(forged(&asked, &genuine, 1));
                    return vec![Packet { bytes: message.encode(&deployment), ..packet }];
                }
            }
            _ => {}
        }
        vec![packet]
    }));
    world.form(1);
    world.run_for(Duration::from_secs(10));
    let start = world.recorded.len();
    world.stop(Node::Leader(0));
    world.run_until("it follows the deputy", |world| world.follow(1, [0]));
    assert_eq!((keys(&world.requests_since(start)).len(), world.ciphertexts_since(start).len()), (1, 1));
}

#[test]
fn request_for_a_key_ahead_buys_nothing_twice_nor_for_a_stranger_and_no_membership() {
    let mut world = World::new(53, 2);
    world.form(2);
    world.run_for(Duration::from_secs(10));
    let (bytes, request) = {
        let asked = requests_ahead(&world, 0);
        let (packet, request) = asked.iter().find(|(packet, _)| packet.from == Node::Edge(0)).unwrap();
        (packet.bytes.clone(), request.clone())
    };
    let start = world.recorded.len();
    // The same once more, and over another's connection, where the cookie does not hold.
    world.inject(Node::Edge(0), Node::Leader(1), &bytes);
    world.inject(Node::Edge(1), Node::Leader(1), &bytes);
    world.run_for(Duration::from_secs(2));
    let replayed = |event: &LeaderEvent| {
        matches!(event, LeaderEvent::Blamed { offence: Offence::Protocol(Error::Replay), .. })
    };
    let cookie = |event: &LeaderEvent| matches!(event, LeaderEvent::Blamed { offence: Offence::Cookie, .. });
    assert!(world.leader_events(1).iter().any(replayed) && world.leader_events(1).iter().any(cookie));
    // With a cookie of its own, and somebody else's signature, at the deputy and at the leader.
    for (leader, reason) in [(1, RefusalReason::BadSignature), (0, RefusalReason::NotReady)] {
        let nonce = [5 + leader as u8; 16];
        let (group, drone, kem) = (request.group.clone(), request.drone.clone(), Some(KemSet::MlKem768));
        let hello = Message::<S>::JoinHello(JoinHello { group, drone, nonce, kem }).encode(&world.deployment);
        world.inject(Node::Edge(1), Node::Leader(leader), &hello);
        world.run_for(Duration::from_millis(50));
        let challenge = world.sent_since(start).find_map(|(_, message)| match message {
            Message::JoinChallenge(challenge) if challenge.nonce == nonce => Some(challenge.challenge),
            _ => None,
        });
        let forged = JoinRequest { nonce, challenge: challenge.unwrap(), ..request.clone() };
        let forged = Message::<S>::JoinRequest(forged).encode(&world.deployment);
        world.inject(Node::Edge(1), Node::Leader(leader), &forged);
        world.run_for(Duration::from_secs(2));
        let refused = world.sent_since(start).any(|(packet, message)| {
            packet.from == Node::Leader(leader)
                && matches!(message, Message::Refusal(refusal) if refusal.reference == nonce && refusal.reason == reason)
        });
        assert!(refused, "leader {leader}");
    }
    assert_eq!(world.ciphertexts_since(start).len(), 0);
    assert!(world.follow(0, 0..2));
}

/// Plays a life in which `node` dies after so many outputs, in the midst of the exchange of a member with a
/// deputy, and comes back before the leader dies for good. Returns whether it died.
fn life_with_a_deputy(node: Node, outputs: u32) -> bool {
    let mut world = World::new(u64::from(outputs), 2);
    // The deputy meets them when its challenges arrive.
    let deployment = world.deployment.clone();
    world.tamper = Some(Box::new(move |packet: Packet| {
        let message = Message::<S>::decode(&deployment, &packet.bytes);
        let lost = packet.from == Node::Leader(1) && matches!(message, Ok(Message::JoinChallenge(_)));
        if lost { Vec::new() } else { vec![packet] }
    }));
    for index in 0..2 {
        world.add_edge(&format!("edge-{index}"));
    }
    world.run_until("both joined", |world| world.follow(0, 0..2));
    world.tamper = None;
    world.crash_after(node, outputs);
    world.run_for(Duration::from_secs(20));
    let died = !world.alive(node);
    world.spare(node);
    if died {
        world.start(node);
    }
    world.run_for(Duration::from_secs(20));
    let start = world.recorded.len();
    world.stop(Node::Leader(0));
    world.run_until("both follow the deputy", |world| world.follow(1, 0..2));
    // The two had κ by then, whatever was lost.
    assert_eq!(world.ciphertexts_since(start).len(), 0, "{node:?} died after {outputs} outputs");
    died
}

#[test]
fn member_and_deputy_may_die_between_any_two_outputs_of_their_exchange() {
    for node in [Node::Leader(1), Node::Edge(1)] {
        let mut outputs = 0;
        while life_with_a_deputy(node, outputs) {
            outputs += 1;
        }
        // A hello, a request and a record of the member.
        assert!(outputs > 3, "{node:?} lived too quietly to prove anything: {outputs}");
    }
}

#[test]
fn other_leaders_key_is_of_no_use_with_this_one() {
    let mut world = World::grouped(17, 2, 2);
    world.stop(Node::Leader(0));
    world.run_until("all follow the deputy", |world| world.follow(1, 0..2));
    // A drone whose κ with the leader in office is that with the other one: both are stored, handle by
    // handle.
    world.stop(Node::Edge(1));
    let states = world.states(1);
    let mut bytes = states.last().unwrap().as_bytes().to_vec();
    // From the end: two of handle (32), length (1), κ (41), time (5).
    const EACH: usize = 32 + 1 + 41 + 5;
    let at = bytes.len() - 2 * EACH;
    let (first, second) = bytes[at..].split_at_mut(EACH);
    first[33..74].swap_with_slice(&mut second[33..74]);
    world.set_states(1, vec![quiver_machine::Snapshot::new(bytes)]);
    let start = world.recorded.len();
    world.start(Node::Edge(1));
    world.run_until("it follows", |world| world.follow(1, [1]));
    world.command_edge(1, EdgeCommand::Leave);
    world.run_for(Duration::from_secs(10));
    world.command_edge(1, EdgeCommand::Join(name(GROUP)));
    world.run_until("it is back", |world| world.follow(1, [1]));
    let lost = |event: &EdgeEvent| matches!(event, EdgeEvent::Refused(RefusalReason::KemLost));
    assert!(world.edge_events(1).iter().any(lost));
    assert_eq!(world.ciphertexts_since(start).len(), 1);
}

/// Plays a life in which `node` dies after so many outputs, in the midst of the exchanges, and comes back.
/// Returns whether it died.
fn life(node: Node, outputs: u32) -> bool {
    let mut world = World::new(u64::from(outputs), 1);
    world.run_for(Duration::from_secs(1));
    world.crash_after(node, outputs);
    for index in 0..2 {
        world.add_edge(&format!("edge-{index}"));
    }
    let mut died = false;
    for second in 0..15 {
        world.run_for(Duration::from_secs(1));
        if !world.alive(node) && !died {
            died = true;
            world.start(node);
        }
        if second == 8 && node != Node::Leader(0) {
            world.restart(Node::Leader(0));
        }
    }
    world.spare(node);
    if !world.alive(node) {
        world.start(node);
    }
    world.run_until("both are in", |world| world.follow(0, 0..2));
    assert!(world.follow(0, 0..2), "{node:?} died after {outputs} outputs");
    // Nobody is left with half a key: what both have is enough to come back without bytes.
    let start = world.recorded.len();
    comes_back(&mut world, 0);
    assert_eq!(world.ciphertexts_since(start).len(), 0, "{node:?} died after {outputs} outputs");
    died
}

#[test]
fn either_side_may_die_between_any_two_outputs_of_the_exchange() {
    for node in [Node::Leader(0), Node::Edge(1)] {
        let mut outputs = 0;
        while life(node, outputs) {
            outputs += 1;
        }
        assert!(outputs > 8, "{node:?} lived too quietly to prove anything: {outputs}");
    }
}
