//! Drones without a name before a leader's gate, in virtual time: who gets in, and what tells who it was.

use std::collections::BTreeSet;

use quiver_ainq::{Deployment, Name, Ristretto255};
use quiver_role::admission::AdmissionError;
use quiver_world::admission::{
    COMPARED, Checkpoint, FENCE, Passage, Place, RUNS, STRETCH, Verdict, linked, pass,
};
use quiver_world::run::{RunPlan, run};
use quiver_world::treasury::{Alone, Treasury};
use quiver_world::{EPOCH_START, InsecureToy, Invariant};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

type S = Ristretto255;

const DRONES: u32 = 24;

fn checkpoint(policy: &str, seed: u64) -> Checkpoint<S> {
    let treasury: Box<dyn Treasury<S>> = Box::new(Alone::found::<S>(&mut ChaCha8Rng::seed_from_u64(seed)));
    let deployment = Deployment::new(Name::new("world").unwrap(), treasury.public());
    let group = Name::new("alpha").unwrap();
    let place =
        Place { deployment: &deployment, treasury: &*treasury, group: &group, seed, now: EPOCH_START };
    Checkpoint::found(&place, policy).unwrap()
}

fn passed(checkpoint: &Checkpoint<S>, seed: u64) -> Passage {
    let passage = pass(checkpoint, DRONES, seed, &mut |_| {}).unwrap();
    assert_eq!(passage.visits.len(), (DRONES * RUNS) as usize);
    assert_eq!(passage.blamed, 0);
    passage
}

fn verdict(checkpoint: &Checkpoint<S>, passage: &Passage) -> Verdict {
    Verdict::of(checkpoint, &passage.visits, &passage.admitted).unwrap()
}

/// Worked out here from the coordinates, not by the circuit.
fn inside(checkpoint: &Checkpoint<S>, drone: u32) -> bool {
    let [(_, x), (_, y), (_, battery)] = checkpoint.values(drone);
    (x - 200).pow(2) + (y + 100).pow(2) < 700 * 700 && battery >= 20
}

#[test]
fn exactly_those_inside_the_circle_get_in_both_times() {
    let checkpoint = checkpoint(FENCE, 1);
    let passage = passed(&checkpoint, 1);
    let verdict = verdict(&checkpoint, &passage);
    assert_eq!(verdict.complaints(), []);
    let wanted: BTreeSet<u32> = (0..DRONES).filter(|drone| inside(&checkpoint, *drone)).collect();
    assert!(!wanted.is_empty() && wanted.len() < DRONES as usize);
    for run in 0..RUNS {
        let of_run = passage.visits.iter().filter(|visit| visit.run == run);
        let got_in = of_run.filter(|visit| visit.outcome.is_ok()).map(|visit| visit.drone);
        assert_eq!(got_in.collect::<BTreeSet<u32>>(), wanted);
    }
    assert_eq!(passage.admitted.len(), wanted.len() * RUNS as usize);
    assert_eq!(passage.denied, (DRONES as usize - wanted.len()) * RUNS as usize);
}

#[test]
fn another_policy_lets_in_others() {
    let checkpoint = checkpoint("battery < 30 or x * y > 0 and not (x < y) # whoever", 2);
    let passage = passed(&checkpoint, 2);
    assert_eq!(verdict(&checkpoint, &passage).complaints(), []);
    for visit in &passage.visits {
        let [(_, x), (_, y), (_, battery)] = checkpoint.values(visit.drone);
        let wanted = battery < 30 || (x * y > 0 && x >= y);
        assert_eq!(visit.outcome.is_ok(), wanted, "{x} {y} {battery}");
    }
}

#[test]
fn one_seed_gives_one_passage() {
    let print = |seed| passed(&checkpoint(FENCE, seed), seed).digest;
    assert_eq!(print(3), print(3));
    assert_ne!(print(3), print(4));
}

/// What the leader saw, compared byte by byte, here in the plainest way: for each drone what its two runs have in common, and whether
/// that is what two drones have in common, too.
#[test]
fn two_runs_of_one_drone_have_in_common_what_any_two_drones_have() {
    const FEW: u32 = 6;
    let checkpoint = checkpoint(FENCE, 5);
    let passage = passed(&checkpoint, 5);
    let stretches = |drone: u32, run: u32| -> BTreeSet<&[u8]> {
        let visit = passage.visits.iter().find(|visit| (visit.drone, visit.run) == (drone, run)).unwrap();
        let all = visit.seen.iter().flat_map(|bytes| bytes.windows(STRETCH)).collect::<BTreeSet<_>>();
        assert!(all.len() > 8_000, "there is something to compare");
        all
    };
    let runs: Vec<_> = (0..FEW).map(|drone| [stretches(drone, 0), stretches(drone, 1)]).collect();
    let mut anybody: BTreeSet<&[u8]> = BTreeSet::new();
    for (at, drone) in runs.iter().enumerate() {
        for other in &runs[at + 1..] {
            for (one, two) in drone.iter().flat_map(|one| other.iter().map(move |two| (one, two))) {
                anybody.extend(one.intersection(two));
            }
        }
    }
    for [first, second] in &runs {
        let common: BTreeSet<&[u8]> = first.intersection(second).copied().collect();
        assert_eq!(common.difference(&anybody).count(), 0);
    }
    assert!(linked(&passage.visits).is_empty());
}

#[test]
fn somebody_who_shows_the_same_twice_is_recognised() {
    let checkpoint = checkpoint(FENCE, 6);
    let mut passage = passed(&checkpoint, 6);
    let tag = b"the serial number of drone 7".to_vec();
    for visit in passage.visits.iter_mut().filter(|visit| visit.drone == 7) {
        visit.seen.push(tag.clone());
    }
    let verdict = verdict(&checkpoint, &passage);
    let complaints = verdict.complaints();
    assert!(DRONES as usize <= COMPARED);
    assert!(matches!(complaints.as_slice(), [(Invariant::Unlinkability, drones, _)] if drones.contains(&7)));
}

#[test]
fn whoever_is_wrongly_in_or_out_is_named() {
    let checkpoint = checkpoint(FENCE, 7);
    let mut passage = passed(&checkpoint, 7);
    // The leader forgets one that it let in.
    let forgotten = passage.admitted.pop().unwrap();
    let lost = passage
        .visits
        .iter()
        .find(|visit| visit.outcome.as_ref().is_ok_and(|shown| shown.pseudonym == forgotten.pseudonym));
    let lost = lost.unwrap().drone;
    // One who is outside says that he is in, as somebody whom the leader let in; another who is inside is turned away.
    let shown = passage.admitted[0].clone();
    let outside = (0..DRONES).find(|drone| !inside(&checkpoint, *drone)).unwrap();
    let shut = (0..DRONES).rfind(|drone| inside(&checkpoint, *drone) && *drone != lost).unwrap();
    for visit in &mut passage.visits {
        match visit {
            visit if visit.drone == outside && visit.run == 0 => visit.outcome = Ok(shown.clone()),
            visit if visit.drone == shut && visit.run == 1 => visit.outcome = Err(AdmissionError::Silent),
            _ => {}
        }
    }
    let verdict = verdict(&checkpoint, &passage);
    assert!(verdict.strangers.contains(&lost));
    assert_eq!(verdict.intruders, BTreeSet::from([outside]));
    assert_eq!(verdict.shut_out, BTreeSet::from([shut]));
    assert!(verdict.troubled.is_some());
    assert!(verdict.complaints().iter().all(|(invariant, ..)| *invariant == Invariant::Admission));
}

#[test]
fn whole_run_has_a_row_about_it_under_a_quorum_too() {
    for (kgcs, threshold) in [(1, 1), (3, 2)] {
        let plan = RunPlan {
            drones: 12,
            strategy: quiver_ainq::StrategyKind::Tree,
            seed: 1,
            leavers: 1,
            newcomers: 1,
            messages: 2,
            envelopes: false,
            kgcs,
            threshold,
            orders: false,
            admission: Some(FENCE.into()),
            restart_leader: false,
            air: None,
            depot: None,
        };
        let run = run::<InsecureToy>(&plan, &mut |_| {}).unwrap();
        assert_eq!(run.violations, Vec::<String>::new());
        let row = run.rows.iter().find(|row| row.operation.starts_with("admission (")).unwrap();
        assert!(row.operation.ends_with("of 24 runs let in)"), "{}", row.operation);
        assert!(row.bytes > 24 * 8_000 && row.to_all.is_some());
    }
}
