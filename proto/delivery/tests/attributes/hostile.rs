//! Drones without a grant, and attackers.

use std::time::Duration;

use quiver_ainq::{Deployment, Error, MasterSecret, Role};
use quiver_delivery::attributes::{FetchEvent, IssuerEvent};
use quiver_enrolment::KgcEvent;
use quiver_machine::{Either, Misdeed, Offence, RefusalReason};
use quiver_message::{DeliveryHello, DeliveryOffer, DeliveryRequest, Message, MessageError, Payload};

use quiver_testbed::matching;

use crate::world::{INTERVAL, Node, S, START, World, name};

fn blamed_by_the_kgc(world: &World) -> Vec<Offence> {
    world
        .centre_events()
        .iter()
        .filter_map(matching!(Either::Left(KgcEvent::Blamed { offence, .. }) => offence.clone()))
        .collect()
}

fn is_request(message: &Message<S>) -> bool {
    matches!(message, Message::DeliveryRequest(_))
}

fn is_reply(message: &Message<S>) -> bool {
    matches!(message, Message::DeliveryReply(_))
}

/// The authorities that a challenge lists.
fn offered(offer: &mut DeliveryOffer) -> &mut Vec<[u8; 32]> {
    match offer {
        DeliveryOffer::AttributeKeys { authorities } => authorities,
        DeliveryOffer::KeyShares { .. } => panic!("attribute keys were asked for"),
    }
}

#[test]
fn revoked_and_expired_drones_get_nothing() {
    let mut world = World::new(1, &["orders"]);
    let revoked = world.add_drone();
    let expired = world.keypair(7, Role::Edge, START + 50);
    let expired = world.add_drone_with(expired);
    let foreign = World::new(99, &[]).keypair(8, Role::Edge, START + 1_000_000);
    let foreign = world.add_drone_with(foreign);
    for drone in [revoked, expired, foreign] {
        world.grant("orders", drone, Some(b"scout"));
    }
    world.revoke(revoked);
    for (drone, reason) in [
        (revoked, RefusalReason::Revoked),
        (expired, RefusalReason::Expired),
        (foreign, RefusalReason::BadSignature),
    ] {
        world.fetch(drone);
        assert_eq!(world.refusals(drone), [reason]);
        assert_eq!(world.key(drone, "orders"), None);
    }
    // Also after a restart, from the list that the KGC stored.
    world.restart_centre();
    world.fetch(revoked);
    assert_eq!(world.refusals(revoked).last(), Some(&RefusalReason::Revoked));
    assert_eq!((world.made(), world.issued()), (0, 0));
}

#[test]
fn recorded_request_is_good_for_nothing_elsewhere_or_later() {
    let mut world = World::new(2, &["orders"]);
    let (drone, thief) = (world.add_drone(), world.add_drone());
    world.grant("orders", drone, Some(b"scout"));
    world.fetch(drone);
    world.dial(thief);
    let (request, _) = world.last(Node::Drone(drone), is_request);
    // From another connection: its cookie is not for that one.
    world.inject(Node::Drone(thief), Node::Centre, &request.bytes);
    world.run_for(Duration::from_millis(1));
    let refused = |world: &World| {
        world
            .issuer_events()
            .into_iter()
            .rev()
            .find_map(matching!(IssuerEvent::Refused { reason, .. } => *reason))
    };
    assert_eq!(refused(&world), Some(RefusalReason::BadCookie));
    // From the same connection, at once: made once more at the most, and not before the interval is over.
    world.inject(Node::Drone(drone), Node::Centre, &request.bytes);
    world.run_for(Duration::from_millis(1));
    assert_eq!(refused(&world), Some(RefusalReason::Busy));
    world.run_for(Duration::from_secs(121));
    world.inject(Node::Drone(drone), Node::Centre, &request.bytes);
    world.run_for(Duration::from_millis(1));
    assert_eq!(refused(&world), Some(RefusalReason::BadCookie));
    assert_eq!((world.made(), world.issued()), (1, 1));
}

/// Lets no request for a key arrive but those that are injected.
fn keep_requests_away(world: &mut World) {
    let deployment = world.deployment.clone();
    world.lose_where(move |packet| {
        let message = Message::<S>::decode(&deployment, &packet.bytes).unwrap();
        is_request(&message)
    });
}

#[test]
fn recorded_request_under_another_nonce_or_cookie_is_refused() {
    let mut world = World::new(14, &["orders"]);
    let (drone, thief) = (world.add_drone(), world.add_drone());
    world.grant("orders", drone, Some(b"scout"));
    // Requests arrive only as the thief passes them on.
    keep_requests_away(&mut world);
    world.dial(drone);
    world.dial(thief);
    world.run_for(Duration::from_millis(1));
    let (request, message) = world.last(Node::Drone(drone), is_request);
    let Message::DeliveryRequest(recorded) = message else { unreachable!() };
    // The thief has cookies of its own: for the drone's nonce, and for another one.
    for (count, nonce) in [(1, recorded.nonce), (2, [9; 16])] {
        let hello = Message::<S>::DeliveryHello(DeliveryHello { payload: Payload::AttributeKeys, nonce })
            .encode(&world.deployment);
        world.inject(Node::Drone(thief), Node::Centre, &hello);
        world.run_for(Duration::from_millis(1));
        let (_, answer) = world.last(
            Node::Centre,
            |message| matches!(message, Message::DeliveryChallenge(challenge) if challenge.nonce == nonce),
        );
        let Message::DeliveryChallenge(challenge) = answer else { unreachable!() };
        assert_ne!(challenge.cookie, recorded.cookie);
        let moved = DeliveryRequest {
            payload: Payload::AttributeKeys,
            nonce,
            cookie: challenge.cookie,
            request: recorded.request.clone(),
        };
        let moved = Message::<S>::DeliveryRequest(moved).encode(&world.deployment);
        world.inject(Node::Drone(thief), Node::Centre, &moved);
        world.run_for(Duration::from_millis(1));
        let forged = Offence::Protocol(Error::InvalidSignature);
        assert_eq!(blamed_by_the_kgc(&world), vec![forged; count]);
        // §13.8
        let penalty = (Node::Centre, Node::Drone(thief), Misdeed::Forgery);
        assert_eq!(world.penalized, vec![penalty; count]);
        assert_eq!((world.made(), world.issued()), (0, 0));
    }
    // As the drone made it, it is valid.
    world.inject(Node::Drone(drone), Node::Centre, &request.bytes);
    world.run_for(Duration::from_millis(1));
    assert_eq!((world.made(), world.issued()), (1, 1));
}

#[test]
fn recorded_request_under_another_payload_is_nobodys() {
    let (mut world, drone) = World::granted(15, b"scout");
    keep_requests_away(&mut world);
    world.dial(drone);
    world.run_for(Duration::from_millis(1));
    let (request, message) = world.last(Node::Drone(drone), is_request);
    let Message::DeliveryRequest(recorded) = message else { unreachable!() };
    let relabelled = DeliveryRequest { payload: Payload::KeyShares, ..recorded };
    let relabelled = Message::<S>::DeliveryRequest(relabelled).encode(&world.deployment);
    world.inject(Node::Drone(drone), Node::Centre, &relabelled);
    world.run_for(Duration::from_millis(1));
    assert_eq!((world.made(), world.issued()), (0, 0));
    assert_eq!(blamed_by_the_kgc(&world), [Offence::OutOfPlace("message to a KGC")]);
    // As the drone made it, it is good.
    world.inject(Node::Drone(drone), Node::Centre, &request.bytes);
    world.run_for(Duration::from_millis(1));
    assert_eq!((world.made(), world.issued()), (1, 1));
}

#[test]
fn answer_opens_for_nobody_else() {
    let mut world = World::new(3, &["orders"]);
    let (drone, thief) = (world.add_drone(), world.add_drone());
    world.grant("orders", drone, Some(b"scout"));
    world.fetch(drone);
    let (reply, _) = world.last(Node::Centre, is_reply);
    // The thief has a request under way when the drone's answer comes.
    world.lose_where(|packet| packet.from == Node::Centre && packet.bytes.len() > 200);
    world.dial(thief);
    world.run_for(Duration::from_millis(1));
    world.inject(Node::Centre, Node::Drone(thief), &reply.bytes);
    world.run_for(Duration::from_millis(1));
    assert_eq!(world.key(thief, "orders"), None);
    let key = world.key(drone, "orders").unwrap();
    assert!(!world.recorded.iter().any(|packet| packet.bytes.windows(key.len()).any(|bytes| bytes == key)));
}

#[test]
fn request_in_another_drones_name_is_blamed_on_its_sender() {
    let mut world = World::new(4, &["orders"]);
    let (victim, thief) = (world.add_drone(), world.add_drone());
    world.grant("orders", victim, Some(b"scout"));
    let (own, theirs) = (world.public(thief).encode(), world.public(victim).encode());
    world.change_messages(move |message| {
        if let Message::DeliveryRequest(request) = message {
            assert!(request.request.starts_with(&own));
            request.request.splice(..own.len(), theirs.iter().copied());
        }
    });
    world.dial(thief);
    world.run_for(Duration::from_secs(1));
    assert_eq!(blamed_by_the_kgc(&world).first(), Some(&Offence::Protocol(Error::InvalidSignature)));
    assert_eq!(world.made(), 0);
}

#[test]
fn gateway_that_tampers_can_only_delay() {
    let mut world = World::new(5, &["orders", "sensors"]);
    let drone = world.add_drone();
    world.grant("orders", drone, Some(b"scout"));
    world.grant("sensors", drone, Some(b"thermal"));
    let mut place = 0_usize;
    world.change_with(move |packet| {
        place += 7;
        let bit = place % (packet.bytes.len() * 8);
        packet.bytes[bit / 8] ^= 1 << (bit % 8);
    });
    world.dial(drone);
    world.run_for(Duration::from_secs(120));
    let answered = world.drone_events(drone).iter().any(|event| matches!(event, FetchEvent::Answered { .. }));
    assert!(!answered, "nothing altered is believed");
    world.tamper = None;
    world.fetch(drone);
    assert!(world.key(drone, "orders").is_some() && world.key(drone, "sensors").is_some());
}

#[test]
fn forged_refusals_and_challenges_take_nothing_away() {
    let (mut world, drone) = World::granted(6, b"scout");
    world.fetch(drone);
    let key = world.key(drone, "orders").unwrap().to_vec();
    world.change_messages(|message| match message {
        Message::DeliveryReply(reply) => {
            let reference = reply.request_digest.to_vec();
            let (reason, retry_after) = (RefusalReason::Revoked, Duration::from_secs(1_000_000));
            *message = Message::Refusal(quiver_message::Refusal { reason, reference, retry_after });
        }
        // An authority without the KGC's statement.
        Message::DeliveryChallenge(challenge) => offered(&mut challenge.offer).insert(0, [0; 32]),
        _ => {}
    });
    world.fetch(drone);
    assert_eq!(world.refusals(drone), [RefusalReason::UnknownAuthority, RefusalReason::Revoked]);
    assert_eq!(world.key(drone, "orders"), Some(key.as_slice()));
    let last = |world: &World| world.drone_events(drone).last().cloned();
    assert_eq!(last(&world), Some(FetchEvent::Done { answered: 0, refused: 2 }), "nothing is confirmed");
    world.tamper = None;
    world.fetch(drone);
    assert_eq!(last(&world), Some(FetchEvent::Done { answered: 1, refused: 0 }));
}

#[test]
fn list_that_leaves_an_authority_out_does_not_hide_a_withdrawal() {
    let mut world = World::new(12, &["orders", "test"]);
    let drone = world.add_drone();
    world.grant("orders", drone, Some(b"scout"));
    world.fetch(drone);
    world.grant("orders", drone, None);
    let left_out = *world.authorities[0].statement.fingerprint();
    world.change_messages(move |message| {
        if let Message::DeliveryChallenge(challenge) = message {
            offered(&mut challenge.offer).retain(|authority| *authority != left_out);
        }
    });
    world.fetch(drone);
    assert_eq!(world.key(drone, "orders"), None, "it was asked all the same");
    assert_eq!(world.drone_events(drone).last(), Some(&FetchEvent::Done { answered: 2, refused: 0 }));
}

#[test]
fn empty_list_confirms_nothing_to_a_drone_that_holds_nothing() {
    let (mut world, drone) = World::granted(13, b"scout");
    world.change_messages(|message| {
        if let Message::DeliveryChallenge(challenge) = message {
            offered(&mut challenge.offer).clear();
        }
    });
    world.fetch(drone);
    assert_eq!(world.drone_events(drone).last(), Some(&FetchEvent::Done { answered: 0, refused: 0 }));
    world.tamper = None;
    world.fetch(drone);
    assert!(world.key(drone, "orders").is_some(), "the next fetch is not held up by it");
}

#[test]
fn statement_of_another_kgc_is_not_believed() {
    let mut world = World::new(7, &["orders"]);
    let other = World::new(8, &["orders"]);
    let drone = world.add_drone();
    let theirs = other.authorities[0].statement.bytes();
    world.change_messages(move |message| {
        if let Message::DeliveryReply(reply) = message {
            reply.statement.clone_from(&theirs);
        }
    });
    world.dial(drone);
    world.run_for(Duration::from_secs(1));
    assert!(world.ring(drone).is_empty());
    assert!(world.drone_events(drone).iter().any(|event| matches!(
        event,
        FetchEvent::Blamed { offence: Offence::Protocol(Error::InvalidSignature), .. }
    )));
}

#[test]
fn messages_of_another_deployment_and_garbage_are_blamed() {
    let mut world = World::new(9, &["orders"]);
    let drone = world.add_drone();
    world.fetch(drone);
    let hello =
        Message::<S>::DeliveryHello(DeliveryHello { payload: Payload::AttributeKeys, nonce: [1; 16] });
    let master = MasterSecret::<S>::generate(&mut world.rng);
    let elsewhere = Deployment::new(name("elsewhere"), master.public());
    let endless = vec![0x42; quiver_machine::MAX_MESSAGE_LEN + 1];
    let out_of_place = Message::<S>::DeliveryReply(quiver_message::DeliveryReply {
        payload: Payload::AttributeKeys,
        request_digest: [1; 32],
        statement: vec![],
        sealed: vec![1],
    });
    for bytes in [
        hello.encode(&elsewhere),
        vec![0xff; 100],
        vec![],
        endless.clone(),
        out_of_place.encode(&world.deployment),
    ] {
        world.inject(Node::Drone(drone), Node::Centre, &bytes);
        world.inject(Node::Centre, Node::Drone(drone), &bytes);
    }
    world.run_for(Duration::from_secs(1));
    let blamed = blamed_by_the_kgc(&world);
    let expected = [
        Offence::Message(MessageError::ForeignDeployment),
        Offence::Message(MessageError::NotProtobuf),
        Offence::Message(MessageError::TooLong(endless.len())),
        Offence::OutOfPlace("message to a KGC"),
    ];
    for offence in &expected {
        assert!(blamed.contains(offence), "{offence:?}: {blamed:?}");
    }
    world.grant("orders", drone, Some(b"scout"));
    world.fetch(drone);
    assert!(world.key(drone, "orders").is_some());
}

#[test]
fn flood_buys_neither_keys_nor_memory() {
    let (mut world, drone) = World::granted(10, b"scout");
    world.fetch(drone);
    let (request, _) = world.last(Node::Drone(drone), is_request);
    let (records, events) = (world.centre_records().len(), world.centre_events().len());
    for _ in 0..1000 {
        world.inject(Node::Drone(drone), Node::Centre, &request.bytes);
    }
    for number in 0..1000_u32 {
        let mut nonce = [0; 16];
        nonce[..4].copy_from_slice(&number.to_be_bytes());
        let hello = Message::<S>::DeliveryHello(DeliveryHello { payload: Payload::AttributeKeys, nonce })
            .encode(&world.deployment);
        world.inject(Node::Drone(drone), Node::Centre, &hello);
    }
    world.run_for(Duration::from_millis(1));
    assert_eq!((world.made(), world.centre_records().len()), (1, records));
    assert_eq!(world.centre_events().len(), events + 1000, "one refusal each, nothing for a hello");
    world.run_for(INTERVAL);
}

#[test]
fn drone_that_may_have_nothing_buys_no_more_checks_than_its_connection_may() {
    let mut world = World::new(15, &["orders"]);
    let drone = world.add_drone();
    world.fetch(drone);
    let (request, _) = world.last(Node::Drone(drone), is_request);
    let count = |world: &World| {
        let refused = world.issuer_events().into_iter();
        let refused: Vec<_> =
            refused.filter_map(matching!(IssuerEvent::Refused { reason, .. } => *reason)).collect();
        let busy = refused.iter().filter(|reason| **reason == RefusalReason::Busy).count();
        (busy, refused.len())
    };
    let (busy, refused) = count(&world);
    for _ in 0..1000 {
        world.inject(Node::Drone(drone), Node::Centre, &request.bytes);
    }
    world.run_for(Duration::from_millis(1));
    let (busy, refused) = (count(&world).0 - busy, count(&world).1 - refused);
    assert!(refused <= 1000 && busy >= 1000 - 64, "{busy} of {refused}");
}

#[test]
fn every_corruption_of_a_request_is_refused() {
    let (mut world, drone) = World::granted(11, b"scout");
    // The request never arrives, so that only corrupted ones do.
    keep_requests_away(&mut world);
    world.dial(drone);
    world.run_for(Duration::from_millis(1));
    let (request, _) = world.last(Node::Drone(drone), is_request);
    for bit in 0..request.bytes.len() * 8 {
        let mut bytes = request.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        world.inject(Node::Drone(drone), Node::Centre, &bytes);
    }
    world.run_for(Duration::from_millis(1));
    assert_eq!((world.made(), world.issued()), (0, 0));
    world.inject(Node::Drone(drone), Node::Centre, &request.bytes);
    world.run_for(Duration::from_millis(1));
    assert_eq!(world.made(), 1);
}
