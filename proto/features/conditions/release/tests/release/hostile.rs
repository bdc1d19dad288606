//! Lying KGCs, drones without permission, and attackers.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::{Label, RevocationStatement, SignedDeliveryRequest, VerifiedDelivery};
use quiver_crypto::Zeroizing;
use quiver_ibe::{IdentityPoint, MasterShare};
use quiver_key_release::{CollectEvent, ReleaseEvent, ShareResponse, Verdict};
use quiver_machine::{Offence, RefusalReason};
use quiver_message::{DeliveryChallenge, DeliveryOffer, DeliveryReply, Message};

use crate::world::verdict;
use crate::world::{Node, PATIENCE, Packet, S, START, World, condition, not_before};

/// A lying KGC's replacement for its share of a key.
type Lie = Box<dyn FnMut(u16) -> [u8; 98]>;

/// Makes these KGCs answer every request with a share of a wrong scalar.
pub(crate) fn lie(world: &mut World, liars: &[u16]) {
    lie_with(world, liars, Box::new(|kgc| share_of(kgc, 7, "not-before/2027-01-15T08:00:01Z")));
}

fn share_of(kgc: u16, scalar: u8, condition: &str) -> [u8; 98] {
    let mut bytes = [0; 32];
    bytes[31] = scalar;
    let share = MasterShare::from_scalar_bytes(kgc, &bytes).unwrap();
    *share.extract(&IdentityPoint::of(&condition.parse().unwrap())).encode()
}

/// Makes these KGCs answer every request with the lie.
fn lie_with(world: &mut World, liars: &[u16], mut lie: Lie) {
    let (deployment, liars, version) = (world.deployment.clone(), liars.to_vec(), world.authority.version());
    let mut requests: BTreeMap<[u8; 32], VerifiedDelivery<S>> = BTreeMap::new();
    let now = world.clock().unix;
    let mut rng = world.rng.clone();
    world.change_with(move |packet| {
        match (packet.from, packet.to, Message::<S>::decode(&deployment, &packet.bytes).unwrap()) {
            (_, Node::Kgc(kgc), Message::DeliveryRequest(request)) if liars.contains(&kgc) => {
                let challenge = [request.nonce.as_slice(), &request.cookie].concat();
                let request = SignedDeliveryRequest::decode(&request.request).unwrap();
                let list = RevocationStatement::empty();
                let request = request.verify(&deployment, Label::IbeRelease, &challenge, &list, now).unwrap();
                requests.insert(*request.digest(), request);
            }
            (Node::Kgc(kgc), _, Message::DeliveryReply(reply)) if liars.contains(&kgc) => {
                let answer = ShareResponse::Share { version, share: Zeroizing::new(lie(kgc)) };
                let sealed = requests[&reply.request_digest].seal_unattested(&answer.encode(), &mut rng);
                let reply = DeliveryReply { sealed: sealed.unwrap().encode(), ..reply };
                packet.bytes = Message::<S>::DeliveryReply(reply).encode(&deployment);
            }
            _ => {}
        }
    });
}

/// The KGC that a challenge claims to be from.
fn kgc_of(challenge: &DeliveryChallenge) -> u16 {
    match challenge.offer {
        DeliveryOffer::KeyShares { kgc, .. } => kgc,
        DeliveryOffer::AttributeKeys { .. } => panic!("key shares were asked for"),
    }
}

fn is_request(message: &Message<S>) -> bool {
    matches!(message, Message::DeliveryRequest(_))
}

fn is_reply(message: &Message<S>) -> bool {
    matches!(message, Message::DeliveryReply(_))
}

#[test]
fn liars_are_named_and_routed_around() {
    let (mut world, drone) = World::with_drone(1, 3, 5);
    lie(&mut world, &[2, 4]);
    for number in 2..12 {
        let key = world.collect(drone, &not_before(number)).unwrap();
        assert!(world.opens(&key, &not_before(number)));
    }
    let mut culprits = world.culprits(drone);
    culprits.sort_unstable();
    culprits.dedup();
    assert_eq!(culprits, [2, 4]);
}

#[test]
fn every_kind_of_wrong_share_names_its_kgc() {
    let lies: [(&str, Lie); 5] = [
        ("another scalar", Box::new(|kgc| share_of(kgc, 9, "not-before/2027-01-15T08:00:01Z"))),
        ("another index", Box::new(|kgc| share_of(kgc % 3 + 1, 9, "not-before/2027-01-15T08:00:01Z"))),
        ("an index out of the quorum", Box::new(|_| share_of(99, 9, "mission/alpha"))),
        (
            "no point",
            Box::new(|kgc| {
                let mut bytes = [0xff; 98];
                bytes[..2].copy_from_slice(&kgc.to_be_bytes());
                bytes
            }),
        ),
        (
            "the identity",
            Box::new(|kgc| {
                let mut bytes = [0; 98];
                bytes[..2].copy_from_slice(&kgc.to_be_bytes());
                bytes[2] = 0xc0;
                bytes
            }),
        ),
    ];
    for (seed, (what, lie)) in (2..).zip(lies) {
        let (mut world, drone) = World::with_drone(seed, 3, 3);
        lie_with(&mut world, &[2], lie);
        let shortfall = world.collect(drone, &not_before(1)).unwrap_err();
        assert!(matches!(verdict(&shortfall, 2), Some(Verdict::Wrong(_))), "{what}: {shortfall}");
        assert_eq!(world.culprits(drone), [2], "{what}");
    }
}

#[test]
fn share_of_another_conditions_key_is_wrong() {
    let (mut world, drone) = World::with_drone(7, 2, 3);
    let other = world.share(1).extract(&IdentityPoint::of(&not_before(2)));
    lie_with(&mut world, &[1], Box::new(move |_| *other.encode()));
    world.set_mute([3].into());
    let shortfall = world.collect(drone, &not_before(1)).unwrap_err();
    assert!(matches!(verdict(&shortfall, 1), Some(Verdict::Wrong(_))));
    assert_eq!(shortfall.silent, [3]);
}

#[test]
fn liar_that_says_it_is_another_kgc_cannot_keep_that_one_out() {
    // In some of them it is asked first, and then nothing is known of KGC 2 but its claim.
    (8..16).for_each(says_it_is_another);
}

fn says_it_is_another(seed: u64) {
    let (mut world, drone) = World::with_drone(seed, 3, 3);
    let deployment = world.deployment.clone();
    // A fourth node, not of the quorum, that claims to be KGC 2: its messages go to KGC 2, and the answers
    // come back altered.
    let (mut rng, now) = (world.rng.clone(), world.clock().unix);
    world.add_impostor(9, 2);
    let mut requests: BTreeMap<[u8; 32], VerifiedDelivery<S>> = BTreeMap::new();
    world.dial(drone, 9);
    world.change_with(move |packet| {
        match (packet.from, packet.to, Message::<S>::decode(&deployment, &packet.bytes).unwrap()) {
            (_, Node::Kgc(9), Message::DeliveryRequest(request)) => {
                let challenge = [request.nonce.as_slice(), &request.cookie].concat();
                let request = SignedDeliveryRequest::decode(&request.request).unwrap();
                let list = RevocationStatement::empty();
                let request = request.verify(&deployment, Label::IbeRelease, &challenge, &list, now).unwrap();
                requests.insert(*request.digest(), request);
            }
            (Node::Kgc(9), _, Message::DeliveryReply(reply)) => {
                let share = Zeroizing::new(share_of(2, 9, "mission/alpha"));
                let answer = ShareResponse::Share { version: 1, share };
                let sealed = requests[&reply.request_digest].seal_unattested(&answer.encode(), &mut rng);
                let reply = DeliveryReply { sealed: sealed.unwrap().encode(), ..reply };
                packet.bytes = Message::<S>::DeliveryReply(reply).encode(&deployment);
            }
            _ => {}
        }
    });
    for number in 2..8 {
        let key = world.collect(drone, &not_before(number)).unwrap();
        assert!(world.opens(&key, &not_before(number)));
    }
}

#[test]
fn revoked_expired_and_foreign_drones_get_nothing() {
    let mut world = World::new(9, 2, 3);
    let revoked = world.add_drone();
    let expired = world.keypair(7, &[], START + 50);
    let expired = world.add_drone_with(expired);
    let foreign = World::new(99, 2, 3).keypair(8, &[], START + 1_000_000);
    let foreign = world.add_drone_with(foreign);
    world.revoke(revoked);
    for (drone, reason) in [
        (revoked, RefusalReason::Revoked),
        (expired, RefusalReason::Expired),
        (foreign, RefusalReason::BadSignature),
    ] {
        let shortfall = world.collect(drone, &not_before(1)).unwrap_err();
        let refused = |(_, verdict): &(_, Verdict)| *verdict == Verdict::Refused(reason);
        assert!(shortfall.verdicts.len() == 3 && shortfall.verdicts.iter().all(refused), "{shortfall}");
    }
    assert_eq!(world.released(), 0);
}

#[test]
fn drones_own_key_goes_to_no_other() {
    let mut world = World::new(10, 2, 3);
    let (drone, other) = (world.add_drone(), world.add_drone());
    let own = condition(&format!("drone/{}", "01".repeat(16)));
    let key = world.collect(drone, &own).unwrap();
    assert!(world.opens(&key, &own));
    let shortfall = world.collect(other, &own).unwrap_err();
    assert!(shortfall.verdicts.iter().all(|(_, verdict)| *verdict == Verdict::NotItsDrone));
}

#[test]
fn recorded_request_is_good_for_nothing_elsewhere_or_later() {
    let mut world = World::new(11, 1, 1);
    let (drone, thief) = (world.add_drone(), world.add_drone());
    world.collect(drone, &not_before(1)).unwrap();
    let (request, _) = world.last(is_request);
    let refused = |world: &World| match world.kgc_events(1).last() {
        Some(ReleaseEvent::Refused { reason, .. }) => Some(*reason),
        _ => None,
    };
    world.inject(Node::Drone(thief), Node::Kgc(1), &request.bytes);
    world.run_for(Duration::from_millis(1));
    assert_eq!(refused(&world), Some(RefusalReason::BadCookie));
    world.run_for(Duration::from_secs(121));
    world.inject(Node::Drone(drone), Node::Kgc(1), &request.bytes);
    world.run_for(Duration::from_millis(1));
    assert_eq!((refused(&world), world.released()), (Some(RefusalReason::BadCookie), 1));
}

#[test]
fn answer_opens_for_nobody_else_and_shows_no_share() {
    let mut world = World::new(12, 1, 1);
    let (drone, thief) = (world.add_drone(), world.add_drone());
    world.collect(drone, &not_before(1)).unwrap();
    let (reply, _) = world.last(is_reply);
    world.lose_where(|packet| packet.from == Node::Kgc(1) && packet.bytes.len() > 150);
    world.begin(thief, Some(&not_before(1)), PATIENCE, false);
    world.run_for(Duration::from_secs(1));
    world.inject(Node::Kgc(1), Node::Drone(thief), &reply.bytes);
    world.finish(thief);
    assert!(world.outcome(thief, &not_before(1)).is_err());
    let share = world.share(1).extract(&IdentityPoint::of(&not_before(1))).encode();
    let shown = |packet: &Packet| packet.bytes.windows(96).any(|bytes| bytes == &share[2..]);
    assert!(!world.recorded.iter().any(shown));
}

#[test]
fn gateway_that_tampers_can_only_delay() {
    let (mut world, drone) = World::with_drone(13, 2, 3);
    let mut place = 0_usize;
    world.change_with(move |packet| {
        place += 7;
        let bit = place % (packet.bytes.len() * 8);
        packet.bytes[bit / 8] ^= 1 << (bit % 8);
    });
    assert!(world.collect(drone, &not_before(1)).is_err());
    let blamed =
        |event: &CollectEvent| matches!(event, CollectEvent::Blamed { .. } | CollectEvent::NotCollected(_));
    assert!(world.drone_events(drone).iter().all(blamed), "{:?}", world.drone_events(drone));
    world.tamper = None;
    world.collect(drone, &not_before(1)).unwrap();
}

#[test]
fn forged_refusals_end_one_attempt_and_no_more() {
    let (mut world, drone) = World::with_drone(14, 2, 3);
    let deployment = world.deployment.clone();
    world.change_with(move |packet| {
        if let Ok(Message::DeliveryChallenge(challenge)) = Message::<S>::decode(&deployment, &packet.bytes) {
            let refusal = quiver_message::Refusal {
                reason: RefusalReason::Revoked,
                reference: challenge.nonce.to_vec(),
                retry_after: Duration::from_secs(1_000_000),
            };
            packet.bytes = Message::<S>::Refusal(refusal).encode(&deployment);
        }
    });
    assert!(world.collect(drone, &not_before(1)).is_err());
    world.tamper = None;
    world.collect(drone, &not_before(1)).unwrap();
}

#[test]
fn refusals_that_somebody_forged_once_end_no_collection_that_waits() {
    let (mut world, drone) = World::with_drone(19, 2, 3);
    let (deployment, mut refused) = (world.deployment.clone(), std::collections::BTreeSet::new());
    world.change_with(move |packet| {
        if let Ok(Message::DeliveryChallenge(challenge)) = Message::<S>::decode(&deployment, &packet.bytes)
            && refused.insert(kgc_of(&challenge))
        {
            let reference = challenge.nonce.to_vec();
            let retry_after = Duration::ZERO;
            let refusal =
                quiver_message::Refusal { reason: RefusalReason::Malformed, reference, retry_after };
            packet.bytes = Message::<S>::Refusal(refusal).encode(&deployment);
        }
    });
    world.begin(drone, Some(&not_before(1)), PATIENCE, true);
    world.finish(drone);
    let key = world.outcome(drone, &not_before(1)).unwrap();
    assert!(world.opens(&key, &not_before(1)));
}

#[test]
fn challenge_that_somebody_altered_once_ends_no_collection() {
    let (mut world, drone) = World::with_drone(18, 2, 3);
    world.collect(drone, &not_before(1)).unwrap();
    // The next one needs new challenges.
    world.run_for(Duration::from_secs(120));
    let (deployment, mut altered) = (world.deployment.clone(), std::collections::BTreeSet::new());
    world.change_with(move |packet| {
        if let Ok(Message::DeliveryChallenge(mut challenge)) =
            Message::<S>::decode(&deployment, &packet.bytes)
            && altered.insert(kgc_of(&challenge))
        {
            if let DeliveryOffer::KeyShares { master, .. } = &mut challenge.offer {
                master[0] ^= 1;
            }
            packet.bytes = Message::<S>::DeliveryChallenge(challenge).encode(&deployment);
        }
    });
    let key = world.collect(drone, &not_before(2)).unwrap();
    assert!(world.opens(&key, &not_before(2)));
}

#[test]
fn loss_and_repetition_are_got_over() {
    let (mut world, drone) = World::with_drone(15, 3, 5);
    let mut count = 0;
    world.tamper = Some(Box::new(move |packet| {
        count += 1;
        match count % 3 {
            0 => vec![],
            1 => vec![packet.clone(), packet],
            _ => vec![packet],
        }
    }));
    for number in 1..5 {
        world.begin(drone, Some(&not_before(number)), Duration::from_secs(600), false);
        world.finish(drone);
        let key = world.outcome(drone, &not_before(number)).unwrap();
        assert!(world.opens(&key, &not_before(number)));
    }
    assert!(world.culprits(drone).is_empty());
}

#[test]
fn messages_out_of_place_are_blamed() {
    let (mut world, drone) = World::with_drone(16, 1, 1);
    let query = Message::<S>::RevocationQuery(quiver_message::RevocationQuery { number: 0, max_len: 0 });
    let bytes = query.encode(&world.deployment);
    world.inject(Node::Drone(drone), Node::Kgc(1), &bytes);
    world.inject(Node::Kgc(1), Node::Drone(drone), &bytes);
    world.run_for(Duration::from_millis(1));
    let at_kgc =
        matches!(world.kgc_events(1)[..], [ReleaseEvent::Blamed { offence: Offence::OutOfPlace(_), .. }]);
    let at_drone = matches!(
        world.drone_events(drone)[..],
        [CollectEvent::Blamed { offence: Offence::OutOfPlace(_), .. }]
    );
    assert!(at_kgc && at_drone);
}
