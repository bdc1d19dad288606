//! Every shipped scenario, to its end, with all invariants looking on.

use std::collections::BTreeSet;

use quiver_world::WorldSuite;
use quiver_world::scenario::{ReadOptions, SHIPPED, Scenario, ScenarioRun, shipped};

fn read(name: &str, seed: Option<u64>) -> Scenario {
    let text = shipped(name).unwrap_or_else(|| panic!("{name} is not shipped"));
    Scenario::parse(name, text, ReadOptions { seed, ..ReadOptions::default() })
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Requirements of every scenario's end.
fn demand(run: &ScenarioRun) {
    let complaints: Vec<String> = run.violations.iter().map(ToString::to_string).collect();
    assert!(run.passed(), "{complaints:#?} {:#?}\n{:?}", run.unmet, run.tally);
    // A scenario without comparisons, or without a message, proves nothing.
    assert!(run.checks > 200 && run.steps > 500, "{} checks, {} steps", run.checks, run.steps);
    assert!(run.ledger.total().energy().picojoules() > 0);
    assert!(run.ledger.rekeys().len() > 0);
}

/// Runs a scenario over the real group with the file's seed, and over the fast one with others.
fn lives(name: &str) {
    demand(&read(name, None).run(WorldSuite::Ristretto255).unwrap());
    for seed in 2..5 {
        demand(&read(name, Some(seed)).run(WorldSuite::Toy).unwrap());
    }
}

macro_rules! each_lives {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            lives(stringify!($name));
        })*

        #[test]
        fn every_shipped_scenario_has_a_test_and_a_file() {
            let tested: BTreeSet<&str> = [$(stringify!($name)),*].into();
            assert_eq!(SHIPPED.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>(), tested);
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");
            let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
            let files: BTreeSet<String> = files.map(|file| file.trim_end_matches(".toml").to_owned()).collect();
            assert_eq!(files, tested.into_iter().map(str::to_owned).collect());
        }
    };
}

each_lives! {
    captured_drone_keeps_listening
    churn_over_bluetooth
    clock_jumps
    deltas_lost_on_a_lora_link
    disk_full_at_the_kgc
    drones_flying_into_and_out_of_a_fence
    drones_flying_out_of_range
    flapping_drone
    kgc_crashes_between_rounds
    leader_lost_during_rekey
    leader_lost_for_good
    lying_kgc_is_named_and_routed_around
    mass_join
    mass_leave
    mavlink
    orders_wait_for_their_phase
    partition_then_merge
    quorum_split_in_two
    thirty_percent_burst_loss
    two_drones_race_for_one_token
    two_hops
    two_leaders_at_once
    usurper_without_an_identity
}

#[test]
fn one_seed_gives_one_trace_and_another_another() {
    let trace = |seed| read("flapping_drone", Some(seed)).run(WorldSuite::Toy).unwrap().trace;
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
}

#[test]
fn deputies_take_over_after_the_times_that_the_scenario_tells() {
    let run = read("leader_lost_for_good", None).run(WorldSuite::Toy).unwrap();
    let opened: Vec<f64> =
        run.epochs.iter().filter(|(_, epoch)| epoch.counter == 1).map(|(at, _)| at.as_secs_f64()).collect();
    // A leader is asked every quarter of the silence of 10 s, so that its last answer is as old when it falls.
    for (fell, opened, wait) in [(70.0, opened[1], 15.0), (140.0, opened[2], 20.0)] {
        let after = opened - fell;
        assert!((wait - 2.6..wait + 0.5).contains(&after), "{after} s after {fell} s, and not {wait} s");
    }
}
