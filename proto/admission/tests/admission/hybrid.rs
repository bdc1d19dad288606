//! The second factor of members without a name: one exchange in each run, nothing that outlives it, and no
//! way round it.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::swarm::{FENCE, Swarm};
use crate::world::{Outcome, Said, World, by_drone, name};
use quiver_abke::Error as AbkeError;
use quiver_abke::exchange::Hello;
use quiver_admission::applicant::ApplicantEvent;
use quiver_admission::gate::GateEvent;
use quiver_admission::{AdmissionError, AdmissionProof, AdmissionStep, AnonymousEvent, Ledger};
use quiver_ainq::{KemTerm, StrategyKind};
use quiver_crypto::Secret;
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand, LeaderEvent};
use quiver_kem::{DecapsulationKey, KemError, KemSet, KemSetting, encapsulate};
use quiver_message::{KemOffer, Message, RefusalReason};

const A_WHILE: Duration = Duration::from_secs(20);
const SET: KemSet = KemSet::MlKem768;

/// Everything that is decoded of what was said.
fn said(world: &World) -> Vec<Said> {
    world.recorded.iter().map(|packet| world.decode(packet)).collect()
}

/// The encapsulation keys, and the ciphertexts.
fn exchanges(said: &[Said]) -> (Vec<&Vec<u8>>, Vec<&Vec<u8>>) {
    let keys = said.iter().filter_map(|message| match message {
        Said::Proof(AdmissionProof { kem: Some(KemOffer::Key { key, .. }), .. }) => Some(key),
        _ => None,
    });
    let ciphertexts = said.iter().filter_map(|message| match message {
        Said::Step(AdmissionStep { ciphertext, .. }) => Some(ciphertext),
        _ => None,
    });
    (keys.collect(), ciphertexts.filter(|ciphertext| !ciphertext.is_empty()).collect())
}

/// Second factors that headers to members name.
fn factors(said: &[Said]) -> Vec<Option<KemTerm>> {
    let headers = said.iter().filter_map(|message| match message {
        Said::Other(Message::Welcome(welcome)) => Some(&welcome.header),
        Said::Other(Message::Rekey(rekey)) => Some(&rekey.header),
        _ => None,
    });
    headers.map(|header| header.core.kem).collect()
}

fn followed_with_a_second_factor(strategy: StrategyKind, kem: KemSetting) {
    let set = kem.set().unwrap();
    let mut swarm = Swarm::hybrid(1, strategy, kem);
    let inside = [swarm.add(100, -50, false), swarm.add(-9, -9, true)];
    let outside = swarm.add(300, -50, false);
    swarm.run(A_WHILE);
    swarm.assert_in(&inside);
    assert!(swarm.drone(outside).export(&name("test")).is_none());
    swarm.lead(LeaderCommand::Rekey);
    swarm.run(A_WHILE);
    swarm.command(inside[0], EdgeCommand::Leave);
    swarm.run(A_WHILE);
    swarm.assert_in(&inside[1..]);
    // A term later it is another membership.
    swarm.crash_leader();
    swarm.start_leader();
    let credential = swarm.world.credential(-9, -9, true);
    swarm.apply(inside[1], &credential);
    swarm.run(A_WHILE);
    swarm.assert_in(&inside[1..]);
    let said = said(&swarm.world);
    let (keys, ciphertexts) = exchanges(&said);
    assert!(keys.iter().all(|key| key.len() == set.key_len()));
    assert!(ciphertexts.iter().all(|ciphertext| ciphertext.len() == set.ciphertext_len()));
    // Fresh in each of four runs, those of one drone among them: nothing links two.
    for list in [keys, ciphertexts] {
        assert_eq!((list.len(), list.iter().collect::<BTreeSet<_>>().len()), (4, 4));
    }
    let factors = factors(&said);
    let counts: BTreeSet<_> = factors.iter().map(|term| term.map(|term| (term.set(), term.g()))).collect();
    let first = factors[0].unwrap().g();
    assert_eq!(counts, [Some((set, first)), Some((set, first + 1))].into());
}

#[test]
fn members_without_a_name_follow_with_a_second_factor_of_their_run() {
    followed_with_a_second_factor(StrategyKind::Flat, KemSetting::MlKem768);
    followed_with_a_second_factor(StrategyKind::Tree, KemSetting::MlKem1024);
}

/// A run with somebody in between who alters every message as he likes.
fn altered(world: &mut World, mut deed: impl FnMut(&mut World, Said) -> Said) -> Outcome {
    let gate = world.gate(FENCE);
    let credential = world.credential(100, -50, false);
    let drone = world.applicant(&credential, Ledger::default());
    world.apply_through(gate, drone, |world, mut packet, _| {
        let message = world.decode(&packet);
        let message = deed(world, message);
        packet.bytes = message.encode(&world.deployment);
        vec![packet]
    })
}

fn hybrid_world(seed: u64) -> World {
    let mut world = World::new(seed);
    world.kem = KemSetting::MlKem768;
    world
}

/// An encapsulation key of an attacker's own.
fn own_key(set: KemSet) -> Vec<u8> {
    DecapsulationKey::generate(set, Secret::new([9; 64])).1
}

/// Replaces the offer of a proof.
fn offering(message: Said, kem: Option<KemOffer>) -> Said {
    match message {
        Said::Proof(proof) => Said::Proof(AdmissionProof { kem, ..proof }),
        other => other,
    }
}

/// Replaces the ciphertext of a step that has one.
fn answering(message: Said, ciphertext: &[u8]) -> Said {
    match message {
        Said::Step(step) if !step.ciphertext.is_empty() => {
            Said::Step(AdmissionStep { ciphertext: ciphertext.to_vec(), ..step })
        }
        other => other,
    }
}

/// Asserts that nobody was admitted and why, by the drone's log.
fn assert_failed(outcome: &Outcome, why: AdmissionError) {
    assert!(!outcome.admitted() && outcome.kem.1.is_none());
    assert_eq!(outcome.drone, [ApplicantEvent::Failed(why)]);
}

#[test]
fn both_ends_of_a_run_that_nobody_disturbs_have_one_key_of_the_term() {
    let mut world = hybrid_world(2);
    let outcome = altered(&mut world, |_, message| message);
    assert!(outcome.admitted());
    assert_eq!(outcome.kem.0.map(|key| key.term()), world.kem_term());
    world.kem = KemSetting::None;
    let outcome = altered(&mut world, |_, message| message);
    assert!(outcome.admitted() && outcome.kem.0.is_none() && outcome.kem.1.is_none());
}

#[test]
fn encapsulation_key_that_is_swapped_or_taken_out_on_the_way_admits_nobody() {
    let mut world = hybrid_world(3);
    let key = own_key(SET);
    let outcome = altered(&mut world, |_, message| {
        offering(message, Some(KemOffer::Key { set: SET, key: key.clone() }))
    });
    assert_failed(&outcome, AdmissionError::Exchange(AbkeError::InvalidContext));
    let larger = KemSet::MlKem1024;
    for kem in [None, Some(KemOffer::Key { set: larger, key: own_key(larger) })] {
        let outcome = altered(&mut world, |_, message| offering(message, kem.clone()));
        assert_failed(&outcome, AdmissionError::Refused(RefusalReason::Kem768));
        let (own, other) = (KemSetting::MlKem768, kem.as_ref().map(KemOffer::set).into());
        let reported = |event: &GateEvent| matches!(event, GateEvent::KemDiffers { own: mine, other: theirs, .. } if (*mine, *theirs) == (own, other));
        assert!(outcome.gate.iter().any(reported), "{:?}", outcome.gate);
    }
    // Bytes that are no key cost no offer.
    let outcome = altered(&mut world, |_, message| {
        offering(message, Some(KemOffer::Key { set: SET, key: vec![255; SET.key_len()] }))
    });
    assert_failed(&outcome, AdmissionError::Refused(RefusalReason::NotAuthorised));
    let why = AdmissionError::Kem(KemError::WrongKey(SET));
    assert!(matches!(outcome.gate.as_slice(), [GateEvent::Denied { why: found, .. }] if *found == why));
    assert!(!outcome.said.iter().any(|packet| matches!(world.decode(packet), Said::Step(_))));
}

#[test]
fn ciphertext_that_is_swapped_or_taken_out_or_comes_late_ends_the_run() {
    let mut world = hybrid_world(4);
    // Anybody can encapsulate to the drone's key; the leader's signature says who did.
    let mut key = Vec::new();
    let outcome = altered(&mut world, |_, message| {
        if let Said::Proof(AdmissionProof { kem: Some(KemOffer::Key { key: shown, .. }), .. }) = &message {
            key.clone_from(shown);
        }
        match encapsulate(SET, &key, &Secret::new([3; 32])) {
            Ok((ciphertext, _)) => answering(message, &ciphertext),
            Err(_) => message,
        }
    });
    assert_failed(&outcome, AdmissionError::Exchange(AbkeError::InvalidContext));
    let outcome = altered(&mut world, |_, message| answering(message, &[]));
    let without = AdmissionError::OutOfTurn("an offer with another second factor than the run's");
    assert_failed(&outcome, without.clone());
    let mut steps = 0;
    let outcome = altered(&mut world, |_, message| match message {
        Said::Step(step) if step.ciphertext.is_empty() => {
            steps += 1;
            Said::Step(AdmissionStep { ciphertext: vec![1; SET.ciphertext_len()], ..step })
        }
        other => other,
    });
    assert!(steps > 0 && !outcome.admitted());
    assert_eq!(
        outcome.drone,
        [ApplicantEvent::Failed(AdmissionError::OutOfTurn("a ciphertext without an offer"))]
    );
    // None is taken where the deployment has no second factor.
    world.kem = KemSetting::None;
    let mut first = true;
    let outcome = altered(&mut world, |_, message| match message {
        Said::Step(step) if std::mem::take(&mut first) => {
            Said::Step(AdmissionStep { ciphertext: vec![1; SET.ciphertext_len()], ..step })
        }
        other => other,
    });
    assert_failed(&outcome, without);
}

#[test]
fn drone_that_sends_a_ciphertext_is_denied() {
    let mut world = hybrid_world(5);
    let gate = world.gate(FENCE);
    let credential = world.credential(100, -50, false);
    let drone = world.applicant(&credential, Ledger::default());
    let outcome = world.apply_through(gate, drone, |world, mut packet, _| {
        if let (true, Said::Step(step)) = (by_drone(&&packet), world.decode(&packet)) {
            let ciphertext = vec![1; SET.ciphertext_len()];
            let step = Said::Step(AdmissionStep { ciphertext, ..step });
            packet.bytes = step.encode(&world.deployment);
        }
        vec![packet]
    });
    assert_failed(&outcome, AdmissionError::Refused(RefusalReason::NotAuthorised));
    let why = AdmissionError::OutOfTurn("a ciphertext from a drone");
    assert!(matches!(outcome.gate.as_slice(), [GateEvent::Denied { why: found, .. }] if *found == why));
}

#[test]
fn challenge_of_another_second_factor_is_shown_nothing_and_of_another_count_ends_at_the_signature() {
    let mut world = hybrid_world(6);
    let challenged = |world: &mut World, kem: Option<KemTerm>| {
        altered(world, |_, message| match message {
            Said::Challenge(mut challenge) => {
                challenge.kem = kem;
                Said::Challenge(challenge)
            }
            other => other,
        })
    };
    for kem in [None, KemTerm::new(KemSet::MlKem1024, 5).ok()] {
        let outcome = challenged(&mut world, kem);
        let (own, leader) = (KemSetting::MlKem768, kem.map(|term| term.set()).into());
        assert_failed(&outcome, AdmissionError::OtherKem { own, leader });
        assert_eq!(outcome.said.len(), 2, "hello and challenge alone");
    }
    for g in [4, 6] {
        let outcome = challenged(&mut world, KemTerm::new(SET, g).ok());
        assert_failed(&outcome, AdmissionError::Exchange(AbkeError::InvalidContext));
    }
}

#[test]
fn ends_whose_deployments_differ_both_say_so_and_nothing_is_shown() {
    for own in KemSetting::ALL {
        for other in KemSetting::ALL.into_iter().filter(|other| *other != own) {
            let mut world = World::new(7);
            world.kem = own;
            let gate = world.gate(FENCE);
            world.kem = other;
            let credential = world.credential(100, -50, false);
            let drone = world.applicant(&credential, Ledger::default());
            let outcome = world.apply(gate, drone);
            assert_failed(&outcome, AdmissionError::OtherKem { own: other, leader: own });
            let told = |event: &GateEvent| matches!(event, GateEvent::KemDiffers { own: mine, other: theirs, .. } if (*mine, *theirs) == (own, other));
            assert!(outcome.gate.iter().all(told) && outcome.gate.len() == 1, "{:?}", outcome.gate);
            assert_eq!(outcome.said.len(), 2, "hello and challenge alone");
            assert!(outcome.counted.is_empty(), "no answer is counted");
        }
    }
    let mut swarm = Swarm::hybrid(8, StrategyKind::Flat, KemSetting::MlKem768);
    swarm.world.kem = KemSetting::None;
    let drone = swarm.add(100, -50, false);
    swarm.run(A_WHILE);
    swarm.assert_in(&[]);
    let differs = EdgeEvent::KemDiffers { own: KemSetting::None, leader: KemSetting::MlKem768 };
    assert!(swarm.events_of(drone).contains(&AnonymousEvent::Edge(differs)));
    let told = |event: &LeaderEvent| match event {
        LeaderEvent::KemDiffers { own, other, .. } => Some((*own, *other)),
        _ => None,
    };
    let told: BTreeSet<_> = swarm.events().into_iter().filter_map(told).collect();
    assert_eq!(told, [(KemSetting::MlKem768, KemSetting::None)].into());
}

#[test]
fn nobody_gets_a_ciphertext_for_a_key_that_no_authority_certified() {
    let mut world = hybrid_world(9);
    let outcome = altered(&mut world, |world, message| match message {
        Said::Proof(proof) => {
            let step = vec![1; Hello::encoded_len(world.terms.schema().bits())];
            Said::Proof(AdmissionProof { step, ..proof })
        }
        other => other,
    });
    assert_failed(&outcome, AdmissionError::Refused(RefusalReason::NotAuthorised));
    assert!(!outcome.said.iter().any(|packet| matches!(world.decode(packet), Said::Step(_))));
}
