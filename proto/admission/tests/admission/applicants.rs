//! Tests of which applicants are admitted, and of what others learn of them.

use std::collections::BTreeSet;

use quiver_abke::Error as AbkeError;
use quiver_admission::applicant::ApplicantEvent;
use quiver_admission::gate::GateEvent;
use quiver_admission::{AdmissionError, Exhausted, Ledger, WINDOW};
use quiver_machine::{Input, Machine, Output, Peer, Route};

use crate::world::{MOST, Outcome, Said, World, by_drone};

const FENCE: &str = "(x - 100)^2 + (y + 50)^2 < 2500 or medic";

#[test]
fn exactly_those_inside_the_fence_or_exempt_get_in() {
    let mut world = World::new(1);
    let gate = world.gate(FENCE);
    for (x, y, medic, inside) in [
        (100, -50, false, true),
        (149, -50, false, true),
        (150, -50, false, false),
        (-100, 50, false, false),
        (32767, -32768, false, false),
        (32767, -32768, true, true),
    ] {
        let credential = world.credential(x, y, medic);
        let drone = world.applicant(&credential, Ledger::default());
        let outcome = world.apply(gate, drone);
        assert_eq!(outcome.admitted(), inside, "{x} {y} {medic}: {:?} {:?}", outcome.gate, outcome.drone);
        assert!(outcome.over);
        if !inside {
            let unsatisfied = AdmissionError::Exchange(AbkeError::Unsatisfied);
            assert_eq!(outcome.drone, [ApplicantEvent::Failed(unsatisfied.clone())]);
            assert!(
                matches!(outcome.gate.as_slice(), [GateEvent::Denied { why, .. }] if *why == unsatisfied)
            );
            assert!(outcome.sessions.0.is_none() && outcome.sessions.1.is_none());
        }
    }
}

#[test]
fn drone_that_applies_to_one_leader_greets_no_other() {
    let mut world = World::new(22);
    let credential = world.credential(100, -50, false);
    let mut drone = world.applicant(&credential, Ledger::default());
    let mut greeted = |peer: u64| {
        let connected = Input::Connected { peer: Peer(peer), route: Route::Leader };
        drone.handle_input(world.clock(), connected, &mut world.rng);
        matches!(drone.poll_output(), Output::Transmit { .. })
    };
    assert!(greeted(1));
    assert!(!greeted(2));
}

#[test]
fn circuit_of_many_pieces_is_sent_as_the_drone_asks_for_it() {
    let mut world = World::new(2);
    let gate = world
        .gate("(x^8 + y^8 + x^4 * y^4 + 7) * (x^4 + 3) > 1_000 or (x^8 - y^8) * (y^4 + 9) > 77 or medic");
    let credential = world.credential(3, 4, false);
    let drone = world.applicant(&credential, Ledger::default());
    let outcome = world.apply(gate, drone);
    assert!(outcome.admitted(), "{:?} {:?}", outcome.gate, outcome.drone);
    let steps = |of_drone: bool| {
        let of = outcome.said.iter().filter(move |packet| by_drone(packet) == of_drone);
        of.filter_map(|packet| match world.decode(packet) {
            Said::Step(step) => Some(step.step.len()),
            _ => None,
        })
    };
    assert!(steps(false).count() > WINDOW + 3, "more than one window, an offer, seeds, a confirmation");
    assert!(steps(true).any(|length| length == 0), "it asked for more");
}

#[test]
fn what_a_drone_says_has_the_same_lengths_whether_it_gets_in_or_not() {
    let mut world = World::new(3);
    let gate = world.gate(FENCE);
    let mut lengths = Vec::new();
    for x in [100, 1000] {
        let credential = world.credential(x, -50, false);
        let drone = world.applicant(&credential, Ledger::default());
        let outcome = world.apply(gate, drone);
        let of_drone = outcome.said.iter().filter(by_drone);
        lengths.push(of_drone.map(|packet| packet.bytes.len()).collect::<Vec<_>>());
    }
    assert_eq!(lengths[0], lengths[1]);
}

/// Every stretch of 12 bytes that the drone said in a run, but for the hello, which is the same for
/// everybody, and the KGC's fingerprint.
fn stretches(world: &World, outcome: &Outcome) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    for packet in outcome.said.iter().filter(by_drone) {
        let said = match world.decode(packet) {
            Said::Proof(proof) => [proof.nonce.to_vec(), proof.step].concat(),
            Said::Step(step) => [step.nonce.to_vec(), step.step].concat(),
            Said::Hello(hello) => hello.nonce.to_vec(),
            other => panic!("a drone that says {other:?}"),
        };
        found.extend(said.windows(12).map(<[u8]>::to_vec));
    }
    found
}

#[test]
fn two_runs_of_one_drone_have_nothing_in_common_that_a_leader_sees() {
    let mut world = World::new(4);
    let gate = world.gate(FENCE);
    let (one, other) = (world.credential(100, -50, false), world.credential(100, -50, false));
    let mut run = |credential| {
        let drone = world.applicant(credential, Ledger::default());
        let outcome = world.apply(gate, drone);
        assert!(outcome.admitted());
        (stretches(&world, &outcome), outcome.sessions.0.unwrap().pseudonym())
    };
    let runs = [run(&one), run(&one), run(&other)];
    for (at, (said, pseudonym)) in runs.iter().enumerate() {
        assert!(said.len() > 6_000, "there was something to compare");
        for (again, known) in &runs[at + 1..] {
            assert_eq!(said.intersection(again).count(), 0, "a stretch of one run in another");
            assert_ne!(pseudonym, known);
        }
    }
}

#[test]
fn leader_is_answered_so_often_in_a_period_and_that_is_durable_before_it_learns_anything() {
    let mut world = World::new(5);
    let gate = world.gate(FENCE);
    let credential = world.credential(100, -50, false);
    let mut ledger = Ledger::default();
    for _ in 0..MOST {
        let drone = world.applicant(&credential, ledger.clone());
        let mut outcome = world.apply(gate, drone);
        assert!(outcome.admitted());
        ledger = outcome.counted.pop().expect("it was counted");
    }
    // The content of the disk counts, not its reader.
    let ledger = Ledger::decode(&ledger.encode()).unwrap();
    let drone = world.applicant(&credential, ledger);
    let outcome = world.apply(gate, drone);
    let exhausted = AdmissionError::Exhausted(Exhausted::Leader(MOST));
    assert_eq!(outcome.drone, [ApplicantEvent::Failed(exhausted)]);
    assert!(matches!(outcome.gate.as_slice(), [GateEvent::Denied { why: AdmissionError::Silent, .. }]));
    let steps = outcome.said.iter().filter(by_drone);
    let committed = steps.filter(|packet| matches!(world.decode(packet), Said::Step(_)));
    assert_eq!(committed.count(), 0, "it says nothing after the offer");
}
