//! Ranks that share a world give the trace of one process, whatever their number: over shipped scenarios, random lives
//! and runs.

use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::thread;

use quiver_ainq::StrategyKind;
use quiver_kem::KemSetting;
use quiver_world::check::{CheckSetup, SeedChecker, SeedOutcome};
use quiver_world::ranks::Ranks;
use quiver_world::run::{self, FinishedPart, Phase, PhaseCosts, Run, RunPlan};
use quiver_world::scenario::{ReadOptions, SHIPPED, Scenario, ScenarioRun};
use quiver_world::{Invariant, Setup, WorldError, WorldSuite};

/// Results of a world at each of so many ranks, which are threads of this process.
fn on_ranks<T: Send>(count: u32, play: impl Fn(Ranks) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let play = &play;
        let threads: Vec<_> =
            Ranks::threads(count).into_iter().map(|ranks| scope.spawn(move || play(ranks))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn scenario(text: &str, ranks: Option<Ranks>) -> ScenarioRun {
    let scenario = Scenario::parse("scenario", text, ReadOptions::default()).unwrap();
    let setup = Setup { ranks, ..scenario.setup.clone() };
    Scenario { setup, ..scenario }.run(WorldSuite::Toy).unwrap()
}

/// Compares shipped scenarios in one process and on so many ranks.
fn shipped(count: u32, wanted: impl Fn(&str) -> bool) {
    for (name, text) in SHIPPED.iter().filter(|(name, _)| wanted(name)) {
        let alone = scenario(text, None);
        assert!(alone.passed(), "{name}: {:?} {:?}", alone.violations, alone.unmet);
        for run in on_ranks(count, |ranks| scenario(text, Some(ranks))) {
            assert_eq!(run.trace, alone.trace, "{name} on {count} ranks");
            assert_eq!(run.tally, alone.tally, "{name} on {count} ranks");
            assert_eq!(
                (run.steps, run.lived, run.settled),
                (alone.steps, alone.lived, alone.settled),
                "{name}"
            );
            assert!(run.passed(), "{name}: {:?} {:?}", run.violations, run.unmet);
            assert_eq!(run.ledger.total(), alone.ledger.total(), "{name}");
        }
    }
}

#[test]
fn scenarios_have_one_trace_on_any_number_of_ranks() {
    shipped(2, |name| {
        ["flapping_drone", "two_drones_race_for_one_token", "two_leaders_at_once"].contains(&name)
    });
    shipped(3, |name| ["disk_full_at_the_kgc", "drones_flying_into_and_out_of_a_fence"].contains(&name));
    shipped(4, |name| ["leader_lost_for_good", "captured_drone_keeps_listening"].contains(&name));
}

#[test]
#[ignore = "takes minutes"]
fn every_shipped_scenario_has_one_trace_on_one_to_four_ranks() {
    (1..=4).for_each(|count| shipped(count, |_| true));
}

fn lives(setup: CheckSetup, count: u32, seeds: std::ops::Range<u64>) -> Vec<Vec<SeedOutcome>> {
    let live = |ranks: Ranks| {
        let checker = SeedChecker::over(setup, &ranks).unwrap();
        seeds.clone().map(|seed| checker.check(seed).unwrap()).collect()
    };
    on_ranks(count, live)
}

/// Compares random lives on these numbers of ranks with the same on one.
fn same_lives(setup: CheckSetup, counts: &[u32], seeds: std::ops::Range<u64>) {
    let alone = lives(setup, 1, seeds.clone()).remove(0);
    assert!(alone.iter().all(|life| life.violation.is_none() && life.trace.is_some()), "{setup:?}");
    for count in counts {
        for of_rank in lives(setup, *count, seeds.clone()) {
            for ((seed, life), alone) in seeds.clone().zip(&of_rank).zip(&alone) {
                assert_eq!(life, alone, "seed {seed} on {count} ranks, {setup:?}");
            }
        }
    }
}

#[test]
fn random_lives_have_one_trace_and_one_verdict_on_any_number_of_ranks() {
    let setup = CheckSetup { edges: 8, ..CheckSetup::default() };
    same_lives(setup, &[4], 1..4);
    same_lives(CheckSetup { leaders: 3, kgcs: 3, strategy: StrategyKind::Tree, ..setup }, &[3], 1..3);
    same_lives(CheckSetup { relays: 2, ..setup }, &[2], 1..3);
    same_lives(CheckSetup { admission: true, ..setup }, &[2], 1..3);
}

#[test]
#[ignore = "takes minutes"]
fn two_hundred_random_lives_have_one_trace_on_one_to_four_ranks() {
    for strategy in StrategyKind::ALL {
        let setup = CheckSetup { edges: 12, strategy, ..CheckSetup::default() };
        same_lives(setup, &[2, 3, 4], 0..70);
        same_lives(CheckSetup { leaders: 3, ..setup }, &[2, 3, 4], 0..30);
        same_lives(CheckSetup { kgcs: 3, ..setup }, &[2, 3, 4], 0..30);
        same_lives(CheckSetup { relays: 2, ..setup }, &[2, 3, 4], 0..20);
        same_lives(CheckSetup { admission: true, ..setup }, &[2, 3, 4], 0..10);
    }
}

/// A check still fails, and all ranks hear of it.
#[test]
fn a_planted_flaw_is_found_by_every_rank() {
    let sabotage = quiver_world::Sabotage::LoseRecords;
    let setup = CheckSetup { edges: 8, sabotage, ..CheckSetup::default() };
    let found = |count| -> Vec<Vec<Option<Invariant>>> {
        let invariants = |life: &SeedOutcome| life.violation.as_ref().map(|violation| violation.invariant);
        lives(setup, count, 1..9).iter().map(|lives| lives.iter().map(invariants).collect()).collect()
    };
    let (alone, split) = (found(1).remove(0), found(2));
    assert!(alone.iter().any(Option::is_some), "the flaw shows in no life");
    for of_rank in split {
        let broken = |lives: &[Option<Invariant>]| lives.iter().map(Option::is_some).collect::<Vec<_>>();
        assert_eq!(broken(&of_rank), broken(&alone));
    }
}

fn plan(drones: u32, ranks: Option<Ranks>) -> RunPlan {
    RunPlan {
        drones,
        strategy: StrategyKind::Tree,
        kem: KemSetting::None,
        seed: 1,
        leavers: 3,
        newcomers: 20,
        messages: 4,
        envelopes: false,
        kgcs: 1,
        threshold: 1,
        orders: false,
        admission: None,
        share_verifications: false,
        restart_leader: true,
        air: None,
        depot: None,
        traced: true,
        ranks,
    }
}

#[test]
fn a_run_has_one_trace_and_one_report_on_any_number_of_ranks() {
    let play = |ranks| -> Run { run::run(WorldSuite::Toy, &plan(200, ranks), &mut |_| {}).unwrap() };
    let alone = play(None);
    assert_eq!(alone.violations, []);
    assert!(alone.trace.is_some());
    for count in [1, 2, 3] {
        for run in on_ranks(count, |ranks| play(Some(ranks))) {
            assert_eq!((run.trace, run.steps, run.checks), (alone.trace, alone.steps, alone.checks));
            assert_eq!((run.violations.len(), run.operations.len()), (0, alone.operations.len()));
            for (split, alone) in run.operations.iter().zip(&alone.operations) {
                assert_eq!(
                    (split.name(), split.took, split.to_all),
                    (alone.name(), alone.took, alone.to_all)
                );
                assert_eq!((&split.latencies, split.messages), (&alone.latencies, alone.messages));
            }
        }
    }
}

#[test]
fn what_ranks_cannot_do_is_refused() {
    for plan in [
        RunPlan { envelopes: true, ..plan(5, None) },
        RunPlan { admission: Some(quiver_world::admission::FENCE.into()), ..plan(5, None) },
    ] {
        let refused = on_ranks(2, |ranks| {
            run::run(WorldSuite::Toy, &RunPlan { ranks: Some(ranks), ..plan.clone() }, &mut |_| {}).is_err()
        });
        assert_eq!(refused, [true, true]);
    }
}

#[test]
fn a_lost_rank_ends_a_run_with_its_number_after_what_was_finished() {
    let play = |ranks: Ranks| {
        let own = ranks.rank();
        let mut finished = Vec::new();
        let mut watch = |state: run::RunProgress, part: FinishedPart<'_>| {
            assert!(own != 1 || state.phase != Phase::Leave, "rank 1 is killed here");
            finished = part.operations.iter().map(PhaseCosts::name).collect();
            ControlFlow::Continue(())
        };
        let ended = run::run_while(WorldSuite::Toy, &plan(60, Some(ranks)), false, &mut watch).map(drop);
        (ended, finished)
    };
    let ends = on_ranks(3, |ranks| panic::catch_unwind(AssertUnwindSafe(|| play(ranks))).ok());
    assert!(ends[1].is_none());
    for end in [&ends[0], &ends[2]] {
        let (ended, finished) = end.as_ref().unwrap();
        assert!(matches!(ended, Err(WorldError::LostRank(1))), "{ended:?}");
        assert_eq!(finished, &["enrol", "form group", "re-key"]);
    }
}
