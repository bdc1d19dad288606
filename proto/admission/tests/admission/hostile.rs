//! Leaders that may not ask, drones that may not enter, and whoever is between them.

use std::time::Duration;

use quiver_abke::Error as AbkeError;
use quiver_abke::exchange::Hello;
use quiver_admission::applicant::ApplicantEvent;
use quiver_admission::gate::{Gate, GateCommand, GateConfig, GateEvent, GateTiming};
use quiver_admission::{AdmissionError, Ledger, PolicyError};
use quiver_ainq::{Error as AinqError, Label, RevocationList, Revoked, Role};
use quiver_crypto::Secret;
use quiver_crypto::canonical::Writer;
use quiver_machine::{Input, Machine, Output, Peer, Via};
use quiver_message::{AdmissionChallenge, AdmissionHello, AdmissionProof, AdmissionStep, Message, Reason};

use crate::world::{Flight, Outcome, PERIOD, S, World, name};

const FENCE: &str = "(x - 100)^2 + (y + 50)^2 < 2500";

fn inside(world: &mut World) -> quiver_abke::Credential {
    world.credential(100, -50, false)
}

/// What the leader told: the reason, each time.
fn refusals(world: &World, outcome: &Outcome) -> Vec<Reason> {
    let of_leader = outcome.said.iter().filter(|flight| !flight.by_drone);
    let reason = |flight| match world.decode(flight) {
        Message::Refusal(refusal) => Some(refusal.reason),
        _ => None,
    };
    of_leader.filter_map(reason).collect()
}

/// Applies with a fresh ledger.
fn apply(world: &mut World, gate: &mut Gate<S>) -> Outcome {
    let credential = inside(world);
    let mut drone = world.applicant(&credential, Ledger::default());
    world.apply(gate, &mut drone)
}

#[test]
fn message_altered_repeated_or_lost_admits_nobody_and_tells_nobody_why() {
    let mut world = World::new(1);
    let honest = {
        let mut gate = world.gate(FENCE);
        apply(&mut world, &mut gate)
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
            let mut gate = world.gate(FENCE);
            let credential = inside(&mut world);
            let mut drone = world.applicant(&credential, Ledger::default());
            let outcome = world.apply_through(&mut gate, &mut drone, |mut flight, count| {
                if count == number {
                    // Behind the nonce, in the middle of what counts.
                    let at = flight.bytes.len() * (2 + which) / 7;
                    deed(&mut flight.bytes, at);
                }
                vec![flight]
            });
            assert!(!outcome.admitted(), "message {number}, deed {which}");
            assert!(outcome.sessions.1.is_none(), "message {number}, deed {which}");
            let told = refusals(&world, &outcome);
            let known = [Reason::NotAuthorised, Reason::BadCookie, Reason::WrongGroup];
            assert!(told.iter().all(|reason| known.contains(reason)), "message {number}: {told:?}");
            assert!(drone.is_over(), "it does not wait for ever");
        }
    }
    // Lost: both give up in time.
    for number in 0..=last {
        let mut gate = world.gate(FENCE);
        let credential = inside(&mut world);
        let mut drone = world.applicant(&credential, Ledger::default());
        let outcome = world.apply_through(&mut gate, &mut drone, |flight, count| match count {
            _ if count == number => vec![],
            _ => vec![flight],
        });
        assert!(outcome.sessions.1.is_none() && drone.is_over(), "message {number}");
    }
    // Repeated: what is said twice is out of turn at the leader and ignored or out of turn at the drone.
    for number in 0..=last {
        let mut gate = world.gate(FENCE);
        let credential = inside(&mut world);
        let mut drone = world.applicant(&credential, Ledger::default());
        let outcome = world.apply_through(&mut gate, &mut drone, |flight, count| match count {
            _ if count == number => vec![flight.clone(), flight],
            _ => vec![flight],
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
        let mut gate = world.gate_with(policy.clone(), keypair);
        let mut drone = world.applicant(&credential, Ledger::default());
        let outcome = world.apply(&mut gate, &mut drone);
        assert_eq!(outcome.drone, [ApplicantEvent::Failed(AdmissionError::Leader(why))]);
    }
    let keypair = world.leader(7);
    let mut list = RevocationList::empty();
    list.revoked.push(Revoked::unknown([7; 16]));
    let mut gate = world.gate_with(policy, keypair);
    let mut drone = world.applicant_knowing(&credential, Ledger::default(), list);
    let outcome = world.apply(&mut gate, &mut drone);
    assert_eq!(outcome.drone, [ApplicantEvent::Failed(AdmissionError::Leader("it is revoked"))]);
}

#[test]
fn drones_answer_only_policies_that_the_kgc_signed_for_the_group_and_that_are_not_over() {
    let mut world = World::new(3);
    let mut other_kgc = World::new(4);
    let replaced = [
        (world.policy(FENCE, "beta").bytes(), PolicyError::OtherGroup(name("beta"))),
        (other_kgc.policy(FENCE, "alpha").bytes(), PolicyError::Statement(AinqError::InvalidSignature)),
    ];
    let run = |world: &mut World, policy: Option<&[u8]>| {
        let (demanded, keypair) = (world.policy(FENCE, "alpha"), world.leader(1));
        // Whatever it demands, it stands by it.
        let signature = policy.map(|policy| {
            let statement = Writer::new().lp(b"alpha").lp(policy).finish();
            keypair.sign(&world.deployment, Label::Admission, &statement, &mut world.rng)
        });
        let mut gate = world.gate_with(demanded, keypair);
        let credential = inside(world);
        let mut drone = world.applicant(&credential, Ledger::default());
        let deployment = world.deployment.clone();
        let outcome = world.apply_through(&mut gate, &mut drone, |flight, _| {
            match (Message::<S>::decode(&deployment, &flight.bytes).unwrap(), policy.zip(signature)) {
                (Message::AdmissionChallenge(challenge), Some((policy, signature))) => {
                    let challenge = AdmissionChallenge { policy: policy.to_vec(), signature, ..challenge };
                    let bytes = Message::AdmissionChallenge(challenge).encode(&deployment);
                    vec![Flight { bytes, ..flight }]
                }
                _ => vec![flight],
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
        let mut gate = world.gate(FENCE);
        let credential = inside(&mut world);
        let mut drone = world.applicant(&credential, Ledger::default());
        let deployment = world.deployment.clone();
        let outcome = world.apply_through(&mut gate, &mut drone, |flight, _| {
            match Message::<S>::decode(&deployment, &flight.bytes).unwrap() {
                Message::AdmissionChallenge(challenge) => {
                    let signature = if forge { others } else { challenge.signature };
                    let challenge = AdmissionChallenge { policy: policy.clone(), signature, ..challenge };
                    let bytes = Message::AdmissionChallenge(challenge).encode(&deployment);
                    vec![Flight { bytes, ..flight }]
                }
                _ => vec![flight],
            }
        });
        let unsigned = AdmissionError::Leader("it did not sign what it demands");
        assert_eq!(outcome.drone, [ApplicantEvent::Failed(unsigned)]);
        assert_eq!(outcome.said.len(), 2, "nothing was shown");
    }
    // A gate notices that its policy is over, and demands nothing any more.
    let mut gate = world.gate(FENCE);
    world.clock += Duration::from_secs(11 * PERIOD);
    let command = Input::Command(GateCommand::SlotKeys(world.slot_keys()));
    gate.handle_input(world.now(), command, &mut world.rng);
    let outcome = apply(&mut world, &mut gate);
    assert_eq!(refusals(&world, &outcome), [Reason::NotReady]);
}

#[test]
fn credential_of_the_last_period_or_of_another_authority_shows_nothing() {
    let mut world = World::new(5);
    let old = inside(&mut world);
    let mut early = world.applicant(&old, Ledger::default());
    world.clock += Duration::from_secs(PERIOD);
    let mut gate = world.gate(FENCE);
    let outcome = world.apply(&mut gate, &mut early);
    assert_eq!(outcome.drone, [ApplicantEvent::Failed(AdmissionError::Expired)]);
    // Who says that it is of this period: the leader does not believe it.
    let mut liar = world.applicant(&old, Ledger::default());
    let outcome = world.apply(&mut gate, &mut liar);
    assert_eq!(refusals(&world, &outcome), [Reason::NotAuthorised]);
    let invalid = AdmissionError::Exchange(AbkeError::InvalidSignature);
    assert!(matches!(outcome.gate.as_slice(), [GateEvent::Denied { why, .. }] if *why == invalid));
    // A gate without the slot keys of the period lets nobody begin.
    world.clock += Duration::from_secs(PERIOD);
    let outcome = apply(&mut world, &mut gate);
    assert_eq!(refusals(&world, &outcome), [Reason::NotReady]);
}

/// Drains a gate: what it sent to whom.
fn sent(gate: &mut Gate<S>) -> Vec<(Peer, Vec<u8>)> {
    let mut sent = Vec::new();
    loop {
        match gate.poll_output() {
            Output::Transmit { to: quiver_machine::Destination::Peer(to), payload } => {
                sent.push((to, payload))
            }
            Output::Timeout(_) => return sent,
            _ => {}
        }
    }
}

/// Gives a gate a message, and time to verify.
fn give(world: &mut World, gate: &mut Gate<S>, from: Peer, message: &Message<S>) -> Vec<Message<S>> {
    let bytes = message.encode(&world.deployment);
    gate.handle_input(world.now(), Input::Received { from, via: Via::Peer, bytes: &bytes }, &mut world.rng);
    world.clock += Duration::from_millis(60);
    // One piece of work with each input.
    for _ in 0..3 {
        gate.handle_input(world.now(), Input::Timeout, &mut world.rng);
    }
    let decoded = |(_, bytes): (Peer, Vec<u8>)| Message::decode(&world.deployment, &bytes).unwrap();
    sent(gate).into_iter().map(decoded).collect()
}

fn challenge(world: &mut World, gate: &mut Gate<S>, from: Peer, nonce: [u8; 16]) -> AdmissionChallenge<S> {
    let hello = Message::AdmissionHello(AdmissionHello { nonce, group: name("alpha") });
    match give(world, gate, from, &hello).pop() {
        Some(Message::AdmissionChallenge(challenge)) => challenge,
        other => panic!("{other:?}"),
    }
}

#[test]
fn run_that_is_relayed_to_another_leader_ends_at_its_signature() {
    let mut world = World::new(6);
    let mut near = world.gate(FENCE);
    let (policy, keypair) = (world.policy(FENCE, "alpha"), world.leader(2));
    let mut far = world.gate_with(policy, keypair);
    let at_far = world.fresh_peer();
    let far_challenge = challenge(&mut world, &mut far, at_far, [5; 16]);
    let credential = inside(&mut world);
    let mut drone = world.applicant(&credential, Ledger::default());
    let deployment = world.deployment.clone();
    let (now, mut rng) = (world.now(), world.rng.clone());
    // The near leader passes the drone's key on to the far one, and the far one's offer back as its own.
    let outcome = world.apply_through(&mut near, &mut drone, |flight, _| {
        let Ok(Message::AdmissionProof(proof)) = Message::<S>::decode(&deployment, &flight.bytes) else {
            return vec![flight];
        };
        let (nonce, cookie) = (far_challenge.nonce, far_challenge.cookie);
        let passed = Message::AdmissionProof(AdmissionProof { nonce, cookie, step: proof.step });
        let bytes = passed.encode(&deployment);
        far.handle_input(now, Input::Received { from: at_far, via: Via::Peer, bytes: &bytes }, &mut rng);
        let later = quiver_machine::Now { monotonic: now.monotonic + Duration::from_secs(1), ..now };
        far.handle_input(later, Input::Timeout, &mut rng);
        far.handle_input(later, Input::Timeout, &mut rng);
        let steps = sent(&mut far).into_iter().filter_map(|(_, bytes)| {
            match Message::<S>::decode(&deployment, &bytes).unwrap() {
                Message::AdmissionStep(step) => {
                    let step = AdmissionStep { nonce: proof.nonce, ..step };
                    let bytes = Message::<S>::AdmissionStep(step).encode(&deployment);
                    Some(Flight { by_drone: false, bytes })
                }
                _ => None,
            }
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
    let mut gate = world.gate(FENCE);
    let peer = world.fresh_peer();
    let hello = |group: &str| Message::AdmissionHello(AdmissionHello { nonce: [1; 16], group: name(group) });
    let reason = |said: Vec<Message<S>>| match said.as_slice() {
        [Message::Refusal(refusal)] => refusal.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(give(&mut world, &mut gate, peer, &hello("beta"))), Reason::WrongGroup);
    let good = challenge(&mut world, &mut gate, peer, [1; 16]);
    let proof = |cookie, length| {
        Message::AdmissionProof(AdmissionProof { nonce: [1; 16], cookie, step: vec![1; length] })
    };
    let right = Hello::encoded_len(world.terms.schema().bits());
    assert_eq!(reason(give(&mut world, &mut gate, peer, &proof([0; 40], right))), Reason::BadCookie);
    let elsewhere = world.fresh_peer();
    let moved = give(&mut world, &mut gate, elsewhere, &proof(good.cookie, right));
    assert_eq!(reason(moved), Reason::BadCookie, "of another connection");
    // Garbage of the right length and of another gets the same answer, and no second try.
    assert_eq!(reason(give(&mut world, &mut gate, peer, &proof(good.cookie, right))), Reason::NotAuthorised);
    assert_eq!(reason(give(&mut world, &mut gate, peer, &proof(good.cookie, right))), Reason::NotAuthorised);
    let again = challenge(&mut world, &mut gate, elsewhere, [1; 16]);
    let short = give(&mut world, &mut gate, elsewhere, &proof(again.cookie, right - 1));
    assert_eq!(reason(short), Reason::NotAuthorised);
    // Steps of no run, and bytes that are nothing.
    let step = Message::AdmissionStep(AdmissionStep { nonce: [1; 16], step: vec![3; 33] });
    assert!(give(&mut world, &mut gate, peer, &step).is_empty());
    gate.handle_input(
        world.now(),
        Input::Received { from: peer, via: Via::Peer, bytes: &[1, 2, 3] },
        &mut world.rng,
    );
    assert!(sent(&mut gate).is_empty());
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
        };
        Gate::new(config, Secret::new([1; 32]), world.now().unix).map(drop).unwrap_err()
    };
    assert_eq!(made(&mut world, FENCE, "beta"), PolicyError::OtherGroup(name("beta")));
    assert!(matches!(made(&mut world, "z < 5", "alpha"), PolicyError::Text(_)));
    let terms: Vec<_> = (1..60).map(|at| format!("(x + {at})^8 * (y - {at})^8 < 5")).collect();
    let refused = made(&mut world, &terms.join(" or "), "alpha");
    assert!(matches!(refused, PolicyError::TooLarge(_) | PolicyError::Text(_)), "{refused}");
    let mut gate = world.gate(FENCE);
    let foreign = quiver_abke::Authority::derive(&Secret::new([1; 32]), world.period(), 5).unwrap();
    let command = Input::Command(GateCommand::SlotKeys(foreign.key().clone()));
    gate.handle_input(world.now(), command, &mut world.rng);
    assert!(apply(&mut world, &mut gate).admitted(), "it goes on with those that it has");
}

/// A proof of the right length behind a good cookie, as anybody can make one.
fn worthless(world: &mut World, gate: &mut Gate<S>, nonce: u8) -> Peer {
    let peer = world.fresh_peer();
    let nonce = [nonce; 16];
    let hello = Message::<S>::AdmissionHello(AdmissionHello { nonce, group: name("alpha") });
    let bytes = hello.encode(&world.deployment);
    gate.handle_input(
        world.now(),
        Input::Received { from: peer, via: Via::Peer, bytes: &bytes },
        &mut world.rng,
    );
    let cookie =
        sent(gate).into_iter().find_map(|(_, bytes)| match Message::<S>::decode(&world.deployment, &bytes) {
            Ok(Message::AdmissionChallenge(challenge)) => Some(challenge.cookie),
            _ => None,
        });
    let cookie = cookie.expect("it answers");
    let length = Hello::encoded_len(world.terms.schema().bits());
    let proof = Message::<S>::AdmissionProof(AdmissionProof { nonce, cookie, step: vec![1; length] });
    let bytes = proof.encode(&world.deployment);
    gate.handle_input(
        world.now(),
        Input::Received { from: peer, via: Via::Peer, bytes: &bytes },
        &mut world.rng,
    );
    peer
}

#[test]
fn keys_of_drones_whose_time_is_over_are_not_verified() {
    let mut world = World::new(9);
    let mut gate = world.gate(FENCE);
    let peers: Vec<Peer> = (0..3).map(|nonce| worthless(&mut world, &mut gate, nonce)).collect();
    assert_eq!(gate.pieces(), 0, "no message costs curve work");
    // The gate was held up for longer than their patience.
    world.clock += GateTiming::default().patience;
    gate.handle_input(world.now(), Input::Timeout, &mut world.rng);
    assert_eq!(gate.pieces(), 0);
    let mut silent = Vec::new();
    loop {
        match gate.poll_output() {
            Output::Event(GateEvent::Denied { peer, why: AdmissionError::Silent }) => silent.push(peer),
            Output::Timeout(deadline) => break assert_eq!(deadline, None, "nothing is left to be done"),
            _ => {}
        }
    }
    silent.sort_unstable();
    assert_eq!(silent, peers);
}

#[test]
fn gate_does_one_piece_of_work_with_a_timeout_and_none_with_a_message() {
    let mut world = World::new(10);
    let mut gate = world.gate(FENCE);
    for nonce in 0..9 {
        worthless(&mut world, &mut gate, nonce);
    }
    world.clock += GateTiming::default().batching;
    for piece in 1..=3 {
        // Whoever else talks to the machine waits for nothing.
        let hello = Message::<S>::AdmissionHello(AdmissionHello { nonce: [99; 16], group: name("alpha") });
        let (peer, bytes) = (world.fresh_peer(), hello.encode(&world.deployment));
        let before = gate.pieces();
        gate.handle_input(
            world.now(),
            Input::Received { from: peer, via: Via::Peer, bytes: &bytes },
            &mut world.rng,
        );
        assert_eq!(gate.pieces(), before);
        gate.handle_input(world.now(), Input::Timeout, &mut world.rng);
        assert_eq!(gate.pieces(), piece, "nine keys, four at a time");
    }
}

#[test]
fn forged_key_is_denied_although_its_sender_hung_up_while_it_was_verified() {
    let mut world = World::new(21);
    let honest = {
        let mut gate = world.gate(FENCE);
        apply(&mut world, &mut gate)
    };
    let shown = honest.said.iter().find_map(|flight| match world.decode(flight) {
        Message::AdmissionProof(proof) => Some(proof.step),
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
        let mut gate = world.gate_from(config);
        let peer = world.fresh_peer();
        let AdmissionChallenge { nonce, cookie, .. } = challenge(&mut world, &mut gate, peer, [5; 16]);
        let proof = Message::AdmissionProof(AdmissionProof { nonce, cookie, step });
        assert!(give(&mut world, &mut gate, peer, &proof).is_empty());
        let job = gate.take_job().unwrap();
        gate.handle_input(world.now(), Input::Disconnected { peer }, &mut world.rng);
        gate.finish_job(world.now(), job.run(), &mut world.rng);
        let mut denied = Vec::new();
        loop {
            match gate.poll_output() {
                Output::Event(GateEvent::Denied { peer: of, why }) if of == peer => denied.push(why),
                Output::Timeout(_) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(denied, expected);
    }
}
