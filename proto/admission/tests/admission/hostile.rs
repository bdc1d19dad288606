//! Leaders that may not ask, drones that may not enter, and attackers between them.

use std::time::Duration;

use quiver_abke::Error as AbkeError;
use quiver_abke::exchange::Hello;
use quiver_admission::applicant::ApplicantEvent;
use quiver_admission::gate::{Gate, GateCommand, GateConfig, GateEvent, GateTiming};
use quiver_admission::{
    AdmissionChallenge, AdmissionError, AdmissionHello, AdmissionPolicyError, AdmissionProof, AdmissionStep,
    Ledger,
};
use quiver_ainq::{Error as AinqError, Label, RevocationStatement, Revoked, Role};
use quiver_crypto::Secret;
use quiver_crypto::canonical::Writer;
use quiver_message::{Message, RefusalReason};
use quiver_testbed::Stimulus;

use crate::world::{Node, Outcome, PERIOD, Packet, S, Said, World, by_drone, name};

const FENCE: &str = "(x - 100)^2 + (y + 50)^2 < 2500";

fn inside(world: &mut World) -> quiver_abke::Credential {
    world.credential(100, -50, false)
}

/// Reasons of the leader's refusals.
fn refusals(world: &World, outcome: &Outcome) -> Vec<RefusalReason> {
    let of_leader = outcome.said.iter().filter(|packet| !by_drone(packet));
    let reason = |packet| match world.decode(packet) {
        Said::Other(Message::Refusal(refusal)) => Some(refusal.reason),
        _ => None,
    };
    of_leader.filter_map(reason).collect()
}

/// Applies with a fresh ledger.
fn apply(world: &mut World, gate: Node) -> Outcome {
    let credential = inside(world);
    let drone = world.applicant(&credential, Ledger::default());
    world.apply(gate, drone)
}

#[test]
fn message_altered_repeated_or_lost_admits_nobody_and_tells_nobody_why() {
    let mut world = World::new(1);
    let honest = {
        let gate = world.gate(FENCE);
        apply(&mut world, gate)
    };
    assert!(honest.admitted());
    let last = honest.said.len() - 1;
    let deeds: [fn(&mut Vec<u8>, usize); 4] = [
        |bytes, at| bytes[at] ^= 1,
        |bytes, at| bytes[at] ^= 0x80,
        |bytes, at| bytes.truncate(at),
        |bytes, _| bytes.push(0),
    ];
    for number in 0..=last {
        for (which, deed) in deeds.iter().enumerate() {
            let gate = world.gate(FENCE);
            let credential = inside(&mut world);
            let drone = world.applicant(&credential, Ledger::default());
            let outcome = world.apply_through(gate, drone, |_, mut packet, count| {
                if count == number {
                    // Behind the nonce, in the middle of what counts.
                    let at = packet.bytes.len() * (2 + which) / 7;
                    deed(&mut packet.bytes, at);
                }
                vec![packet]
            });
            assert!(!outcome.admitted(), "message {number}, deed {which}");
            assert!(outcome.sessions.1.is_none(), "message {number}, deed {which}");
            let told = refusals(&world, &outcome);
            let known = [RefusalReason::NotAuthorised, RefusalReason::BadCookie, RefusalReason::WrongGroup];
            assert!(told.iter().all(|reason| known.contains(reason)), "message {number}: {told:?}");
            assert!(outcome.over, "it does not wait for ever");
        }
    }
    // Lost: both give up in time.
    for number in 0..=last {
        let gate = world.gate(FENCE);
        let credential = inside(&mut world);
        let drone = world.applicant(&credential, Ledger::default());
        let outcome = world.apply_through(gate, drone, |_, packet, count| match count {
            _ if count == number => vec![],
            _ => vec![packet],
        });
        assert!(outcome.sessions.1.is_none() && outcome.over, "message {number}");
    }
    // Repeated: what is said twice is out of turn at the leader and ignored or out of turn at the drone.
    for number in 0..=last {
        let gate = world.gate(FENCE);
        let credential = inside(&mut world);
        let drone = world.applicant(&credential, Ledger::default());
        let outcome = world.apply_through(gate, drone, |_, packet, count| match count {
            _ if count == number => vec![packet.clone(), packet],
            _ => vec![packet],
        });
        if !outcome.admitted() {
            assert!(outcome.sessions.1.is_none() || number == last, "message {number}");
        }
    }
}

#[test]
fn drones_answer_only_leaders_of_the_group_that_are_not_revoked() {
    let mut world = World::new(2);
    let policy = world.policy(FENCE, "alpha");
    let credential = inside(&mut world);
    for (role, why) in [
        (Role::Leader { group: name("beta"), ordinal: 1 }, "it does not lead this group"),
        (Role::Edge, "it does not lead this group"),
    ] {
        let keypair = world.keypair(7, role);
        let gate = world.gate_with(policy.clone(), keypair);
        let drone = world.applicant(&credential, Ledger::default());
        let outcome = world.apply(gate, drone);
        assert_eq!(outcome.drone, [ApplicantEvent::Failed(AdmissionError::Leader(why))]);
    }
    let keypair = world.leader(7);
    let mut list = RevocationStatement::empty();
    list.revoked.push(Revoked::unknown([7; 16]));
    let gate = world.gate_with(policy, keypair);
    let drone = world.applicant_knowing(&credential, Ledger::default(), list);
    let outcome = world.apply(gate, drone);
    assert_eq!(outcome.drone, [ApplicantEvent::Failed(AdmissionError::Leader("it is revoked"))]);
}

#[test]
fn drones_answer_only_policies_that_the_kgc_signed_for_the_group_and_that_are_not_over() {
    let mut world = World::new(3);
    let mut other_kgc = World::new(4);
    let replaced = [
        (world.policy(FENCE, "beta").bytes(), AdmissionPolicyError::OtherGroup(name("beta"))),
        (
            other_kgc.policy(FENCE, "alpha").bytes(),
            AdmissionPolicyError::Statement(AinqError::InvalidSignature),
        ),
    ];
    let run = |world: &mut World, policy: Option<&[u8]>| {
        let (demanded, keypair) = (world.policy(FENCE, "alpha"), world.leader(1));
        // The leader stands by what it demands.
        let signature = policy.map(|policy| {
            let statement = Writer::new().lp(b"alpha").lp(policy).finish();
            keypair.sign(&world.deployment, Label::Admission, &statement, &mut world.rng)
        });
        let gate = world.gate_with(demanded, keypair);
        let credential = inside(world);
        let drone = world.applicant(&credential, Ledger::default());
        let deployment = world.deployment.clone();
        let outcome = world.apply_through(gate, drone, |_, packet, _| {
            match (Said::decode(&deployment, &packet.bytes), policy.zip(signature)) {
                (Said::Challenge(challenge), Some((policy, signature))) => {
                    let challenge = AdmissionChallenge { policy: policy.to_vec(), signature, ..challenge };
                    let bytes = Said::Challenge(challenge).encode(&deployment);
                    vec![Packet { bytes, ..packet }]
                }
                _ => vec![packet],
            }
        });
        assert!(!outcome.admitted());
        outcome.drone
    };
    for (policy, why) in replaced {
        assert_eq!(run(&mut world, Some(&policy)), [ApplicantEvent::Failed(AdmissionError::Policy(why))]);
    }
    // Nobody else's word is enough: neither the KGC's, on a policy that the leader does not demand, nor
    // another leader's.
    let (policy, other) = (world.policy("medic or x > 5", "alpha").bytes(), world.leader(2));
    let statement = Writer::new().lp(b"alpha").lp(&policy).finish();
    let others = other.sign(&world.deployment, Label::Admission, &statement, &mut world.rng);
    for forge in [false, true] {
        let gate = world.gate(FENCE);
        let credential = inside(&mut world);
        let drone = world.applicant(&credential, Ledger::default());
        let deployment = world.deployment.clone();
        let outcome =
            world.apply_through(gate, drone, |_, packet, _| match Said::decode(&deployment, &packet.bytes) {
                Said::Challenge(challenge) => {
                    let signature = if forge { others } else { challenge.signature };
                    let challenge = AdmissionChallenge { policy: policy.clone(), signature, ..challenge };
                    let bytes = Said::Challenge(challenge).encode(&deployment);
                    vec![Packet { bytes, ..packet }]
                }
                _ => vec![packet],
            });
        let unsigned = AdmissionError::Leader("it did not sign what it demands");
        assert_eq!(outcome.drone, [ApplicantEvent::Failed(unsigned)]);
        assert_eq!(outcome.said.len(), 2, "nothing was shown");
    }
    // A gate notices that its policy is over, and demands nothing any more.
    let gate = world.gate(FENCE);
    world.skip(Duration::from_secs(11 * PERIOD));
    world.give_slot_keys(gate);
    let outcome = apply(&mut world, gate);
    assert_eq!(refusals(&world, &outcome), [RefusalReason::NotReady]);
}

#[test]
fn credential_of_the_last_period_or_of_another_authority_shows_nothing() {
    let mut world = World::new(5);
    let old = inside(&mut world);
    let early = world.applicant(&old, Ledger::default());
    world.skip(Duration::from_secs(PERIOD));
    let gate = world.gate(FENCE);
    let outcome = world.apply(gate, early);
    assert_eq!(outcome.drone, [ApplicantEvent::Failed(AdmissionError::Expired)]);
    // A drone that claims to be of this period: the leader does not believe it.
    let liar = world.applicant(&old, Ledger::default());
    let outcome = world.apply(gate, liar);
    assert_eq!(refusals(&world, &outcome), [RefusalReason::NotAuthorised]);
    let invalid = AdmissionError::Exchange(AbkeError::InvalidSignature);
    assert!(matches!(outcome.gate.as_slice(), [GateEvent::Denied { why, .. }] if *why == invalid));
    // A gate without the slot keys of the period starts no run.
    world.skip(Duration::from_secs(PERIOD));
    let outcome = apply(&mut world, gate);
    assert_eq!(refusals(&world, &outcome), [RefusalReason::NotReady]);
}

/// Gives a gate a message, and time to verify. What it answers.
fn give(world: &mut World, gate: Node, from: Node, message: &Said) -> Vec<Said> {
    let first = world.recorded.len();
    world.say(from, gate, message);
    world.skip(Duration::from_millis(60));
    // One piece of work with each input.
    for _ in 0..3 {
        world.feed(gate, Stimulus::Deadline);
    }
    world.lose_all();
    world.recorded[first..].iter().map(|packet| world.decode(packet)).collect()
}

/// A gate's immediate answer to a hello.
fn challenge(world: &mut World, gate: Node, from: Node, nonce: [u8; 16]) -> AdmissionChallenge<S> {
    world.say(from, gate, &Said::Hello(AdmissionHello { nonce, group: name("alpha"), kem: world.kem.set() }));
    world.lose_all();
    match world.recorded.last().map(|packet| world.decode(packet)) {
        Some(Said::Challenge(challenge)) => challenge,
        other => panic!("{other:?}"),
    }
}

#[test]
fn run_that_is_relayed_to_another_leader_ends_at_its_signature() {
    let mut world = World::new(6);
    let near = world.gate(FENCE);
    let (policy, keypair) = (world.policy(FENCE, "alpha"), world.leader(2));
    let far = world.gate_with(policy, keypair);
    let at_far = world.stranger(far);
    let far_challenge = challenge(&mut world, far, at_far, [5; 16]);
    let credential = inside(&mut world);
    let drone = world.applicant(&credential, Ledger::default());
    // The near leader passes the drone's key on to the far one, and the far one's offer back as its own.
    let outcome = world.apply_through(near, drone, |world, packet, _| {
        let Said::Proof(proof) = world.decode(&packet) else { return vec![packet] };
        let (nonce, cookie) = (far_challenge.nonce, far_challenge.cookie);
        let passed = Said::Proof(AdmissionProof { nonce, cookie, ..proof.clone() });
        let steps = give(world, far, at_far, &passed).into_iter().filter_map(|message| match message {
            Said::Step(step) => {
                let step = Said::Step(AdmissionStep { nonce: proof.nonce, ..step });
                let bytes = step.encode(&world.deployment);
                Some(Packet { from: packet.to, to: packet.from, via: packet.via, bytes })
            }
            _ => None,
        });
        let steps: Vec<_> = steps.collect();
        assert!(steps.len() > 1, "the far leader made an offer");
        steps
    });
    let refused = AdmissionError::Exchange(AbkeError::InvalidContext);
    assert_eq!(outcome.drone, [ApplicantEvent::Failed(refused)]);
}

#[test]
fn strangers_cost_nothing_before_their_cookie_and_one_run_afterwards() {
    let mut world = World::new(7);
    let gate = world.gate(FENCE);
    let peer = world.stranger(gate);
    let hello = |group: &str| Said::Hello(AdmissionHello { nonce: [1; 16], group: name(group), kem: None });
    let reason = |said: Vec<Said>| match said.as_slice() {
        [Said::Other(Message::Refusal(refusal))] => refusal.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(give(&mut world, gate, peer, &hello("beta"))), RefusalReason::WrongGroup);
    let good = challenge(&mut world, gate, peer, [1; 16]);
    let proof = |cookie, length| {
        let (nonce, step) = ([1; 16], vec![1; length]);
        Said::Proof(AdmissionProof { nonce, cookie, step, kem: None })
    };
    let right = Hello::encoded_len(world.terms.schema().bits());
    assert_eq!(reason(give(&mut world, gate, peer, &proof([0; 40], right))), RefusalReason::BadCookie);
    let elsewhere = world.stranger(gate);
    let moved = give(&mut world, gate, elsewhere, &proof(good.cookie, right));
    assert_eq!(reason(moved), RefusalReason::BadCookie, "of another connection");
    // Garbage of the right length and of another gets the same answer, and no second try.
    assert_eq!(
        reason(give(&mut world, gate, peer, &proof(good.cookie, right))),
        RefusalReason::NotAuthorised
    );
    assert_eq!(
        reason(give(&mut world, gate, peer, &proof(good.cookie, right))),
        RefusalReason::NotAuthorised
    );
    let again = challenge(&mut world, gate, elsewhere, [1; 16]);
    let short = give(&mut world, gate, elsewhere, &proof(again.cookie, right - 1));
    assert_eq!(reason(short), RefusalReason::NotAuthorised);
    // Steps of no run, and bytes that are nothing.
    let step = Said::Step(AdmissionStep { nonce: [1; 16], step: vec![3; 33], ciphertext: vec![] });
    assert!(give(&mut world, gate, peer, &step).is_empty());
    let said = world.recorded.len();
    world.hand_over(peer, gate, vec![1, 2, 3]);
    assert_eq!(world.recorded.len(), said);
}

#[test]
fn gate_takes_no_policy_that_is_not_for_it_and_no_keys_for_other_fields() {
    let mut world = World::new(8);
    let made = |world: &mut World, text: &str, group: &str| {
        let config = GateConfig {
            deployment: world.deployment.clone(),
            group: name("alpha"),
            keypair: world.leader(1),
            policy: world.policy(text, group),
            authority: world.authority.clone(),
            timing: GateTiming::default(),
            kem: None,
        };
        Gate::new(config, Secret::new([1; 32]), world.clock().unix).map(drop).unwrap_err()
    };
    assert_eq!(made(&mut world, FENCE, "beta"), AdmissionPolicyError::OtherGroup(name("beta")));
    assert!(matches!(made(&mut world, "z < 5", "alpha"), AdmissionPolicyError::Text(_)));
    let terms: Vec<_> = (1..60).map(|at| format!("(x + {at})^8 * (y - {at})^8 < 5")).collect();
    let refused = made(&mut world, &terms.join(" or "), "alpha");
    assert!(
        matches!(refused, AdmissionPolicyError::TooLarge(_) | AdmissionPolicyError::Text(_)),
        "{refused}"
    );
    let gate = world.gate(FENCE);
    let foreign = quiver_abke::Authority::derive(&Secret::new([1; 32]), world.period(), 5).unwrap();
    world.command::<Gate<S>>(gate, GateCommand::SlotKeys(foreign.key().clone()));
    assert!(apply(&mut world, gate).admitted(), "it goes on with those that it has");
}

/// A proof of the right length behind a good cookie, as anybody can make one.
fn worthless(world: &mut World, gate: Node, nonce: u8) -> Node {
    let stranger = world.stranger(gate);
    let AdmissionChallenge { nonce, cookie, .. } = challenge(world, gate, stranger, [nonce; 16]);
    let step = vec![1; Hello::encoded_len(world.terms.schema().bits())];
    world.say(stranger, gate, &Said::Proof(AdmissionProof { nonce, cookie, step, kem: None }));
    stranger
}

fn pieces(world: &World, gate: Node) -> u64 {
    world.machine::<Gate<S>>(gate).pieces()
}

#[test]
fn keys_of_drones_whose_time_is_over_are_not_verified() {
    let mut world = World::new(9);
    let gate = world.gate(FENCE);
    let strangers: Vec<Node> = (0..3).map(|nonce| worthless(&mut world, gate, nonce)).collect();
    assert_eq!(pieces(&world, gate), 0, "no message costs curve work");
    // The gate was held up for longer than their patience.
    world.skip(GateTiming::default().patience);
    world.feed(gate, Stimulus::Deadline);
    assert_eq!(pieces(&world, gate), 0);
    let silent = world.node::<Gate<S>>(gate).events.iter().filter_map(|event| match event {
        GateEvent::Denied { peer, why: AdmissionError::Silent } => world.behind(gate, *peer),
        _ => None,
    });
    let mut silent: Vec<_> = silent.collect();
    silent.sort_unstable();
    assert_eq!(silent, strangers);
    world.lose_all();
    assert_eq!(world.due(), None, "nothing is left to be done");
}

#[test]
fn gate_does_one_piece_of_work_with_a_timeout_and_none_with_a_message() {
    let mut world = World::new(10);
    let gate = world.gate(FENCE);
    for nonce in 0..9 {
        worthless(&mut world, gate, nonce);
    }
    world.skip(GateTiming::default().batching);
    for piece in 1..=3 {
        // Other peers of the machine wait for nothing.
        let (stranger, before) = (world.stranger(gate), pieces(&world, gate));
        challenge(&mut world, gate, stranger, [99; 16]);
        assert_eq!(pieces(&world, gate), before);
        world.feed(gate, Stimulus::Deadline);
        assert_eq!(pieces(&world, gate), piece, "nine keys, four at a time");
    }
}

#[test]
fn forged_key_is_denied_although_its_sender_hung_up_while_it_was_verified() {
    let mut world = World::new(21);
    let honest = {
        let gate = world.gate(FENCE);
        apply(&mut world, gate)
    };
    let shown = honest.said.iter().find_map(|packet| match world.decode(packet) {
        Said::Proof(proof) => Some(proof.step),
        _ => None,
    });
    let genuine = shown.unwrap();
    let mut forged = genuine.clone();
    // The last two points in each other's place.
    let points = forged.len() - 2 * 96;
    forged[points..].rotate_left(96);
    let invalid = AdmissionError::Exchange(AbkeError::InvalidSignature);
    for (step, expected) in [(forged, vec![invalid]), (genuine, Vec::new())] {
        let mut config = world.gate_config(FENCE);
        config.timing.workers = 1;
        let gate = world.gate_from(config);
        let peer = world.stranger(gate);
        let AdmissionChallenge { nonce, cookie, .. } = challenge(&mut world, gate, peer, [5; 16]);
        let proof = Said::Proof(AdmissionProof { nonce, cookie, step, kem: None });
        assert!(give(&mut world, gate, peer, &proof).is_empty());
        let (handle, told) = (world.peer(gate, peer).unwrap(), world.node::<Gate<S>>(gate).events.len());
        assert_eq!(world.jobs.len(), 1);
        world.disconnect(peer, gate);
        let said = world.recorded.len();
        assert!(world.work());
        assert_eq!(world.recorded.len(), said);
        assert!(world.unheard.is_empty());
        let denied = world.node_mut::<Gate<S>>(gate).events.split_off(told).into_iter();
        let denied = denied.map(|event| match event {
            GateEvent::Denied { peer: of, why } if of == handle => why,
            other => panic!("{other:?}"),
        });
        assert_eq!(denied.collect::<Vec<_>>(), expected);
    }
}
