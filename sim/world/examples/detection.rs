//! Detection power of `sim check`, a measurement at a time, for `models/detection`.
//!
//! `detection list` prints what there is to measure: `arrangement NAME` and `planted FLAW`. `detection rate
//! ARRANGEMENT STRATEGY FIRST SEEDS` lives through seeds and prints `rate SEEDS CPU-SECONDS VIRTUAL-SECONDS`
//! and `action KIND COUNT`, what took place. `detection search FLAW FIRST LIMIT` looks for a planted flaw and
//! prints `search SEEDS CPU-SECONDS found|missed`. Between words are tabs.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeMap;
use std::time::Duration;

use cpu_time::ProcessTime;
use quiver_ainq::StrategyKind;
use quiver_kem::KemSetting;
use quiver_world::check::{CheckSetup, SeedChecker, find_planted};
use quiver_world::scenario::{ReadOptions, Scenario, shipped};
use quiver_world::{Sabotage, WorldSuite};

/// Result of a measurement, or why there is none.
type Measured<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Worlds in which random lives are checked, with the names of what is special about them.
fn arrangements() -> Vec<(&'static str, CheckSetup)> {
    let plain = CheckSetup::default();
    vec![
        ("one leader", plain),
        ("three leaders", CheckSetup { leaders: 3, ..plain }),
        ("five KGCs", CheckSetup { kgcs: 5, ..plain }),
        ("three relays", CheckSetup { relays: 3, ..plain }),
        ("admission", CheckSetup { edges: 10, admission: true, ..plain }),
    ]
}

/// World in which a planted flaw can show.
#[derive(Clone, Copy)]
enum Place {
    /// Random lives.
    Lives(CheckSetup),
    /// A shipped scenario.
    Scenario(&'static str),
}

/// Planted flaws, each with the world in which it can show. Quorums of random lives have just more than half
/// of their KGCs as threshold, and none can have a lower degree: `LowDegree` is a test's.
fn planted() -> Vec<(Sabotage, Place)> {
    let plain = CheckSetup { edges: 8, ..CheckSetup::default() };
    let quorum = CheckSetup { kgcs: 5, ..plain };
    let hybrid = CheckSetup { kem: Some(KemSetting::MlKem768), ..plain };
    let lives = |sabotage, setup| (sabotage, Place::Lives(CheckSetup { sabotage, ..setup }));
    vec![
        lives(Sabotage::TransmitBeforePersist, plain),
        lives(Sabotage::LoseRecords, plain),
        lives(Sabotage::StaleState, plain),
        lives(Sabotage::SameDice, plain),
        lives(Sabotage::MissDeadlines, plain),
        lives(Sabotage::HideGroup, plain),
        lives(Sabotage::KeepProofs, CheckSetup { leaders: 3, ..plain }),
        lives(Sabotage::KeepDrones, CheckSetup { relays: 1, ..plain }),
        lives(Sabotage::LeaveOutKem, hybrid),
        lives(Sabotage::KeepStates, hybrid),
        lives(Sabotage::LogRunKem, CheckSetup { admission: true, ..hybrid }),
        lives(Sabotage::ForgetPins, quorum),
        lives(Sabotage::EarlyRelease, quorum),
        (Sabotage::KeepDatagramKey, Place::Scenario("mavlink")),
        (Sabotage::ForgetDatagrams, Place::Scenario("mavlink")),
    ]
}

fn rate(arrangement: &str, strategy: &str, first: u64, seeds: u64) -> Measured {
    let known = arrangements().into_iter().find(|(name, _)| *name == arrangement);
    let (_, setup) = known.ok_or("no such arrangement")?;
    let checker = SeedChecker::new(CheckSetup { strategy: strategy.parse::<StrategyKind>()?, ..setup })?;
    let mut actions = BTreeMap::<&str, u64>::new();
    let (cpu, mut time) = (ProcessTime::now(), Duration::ZERO);
    for seed in first..first.saturating_add(seeds) {
        let outcome = checker.check(seed)?;
        if let Some(violation) = outcome.violation {
            return Err(format!("seed {seed}, {arrangement}, {strategy}: {violation:?}").into());
        }
        time += outcome.time;
        for (kind, count) in outcome.actions {
            *actions.entry(kind).or_default() += count;
        }
    }
    println!("rate\t{seeds}\t{:.3}\t{:.0}", cpu.elapsed().as_secs_f64(), time.as_secs_f64());
    for (kind, count) in actions {
        println!("action\t{kind}\t{count}");
    }
    Ok(())
}

/// Returns true if a scenario with this seed breaks an invariant.
fn breaks(name: &str, sabotage: Sabotage, seed: u64) -> Measured<bool> {
    let reading = ReadOptions { seed: Some(seed), ..ReadOptions::default() };
    let mut scenario = Scenario::parse(name, shipped(name).ok_or("no such scenario")?, reading)?;
    scenario.setup.sabotage = sabotage;
    Ok(!scenario.run(WorldSuite::Toy)?.violations.is_empty())
}

fn search(flaw: &str, first: u64, limit: u64) -> Measured {
    let known = planted().into_iter().find(|(sabotage, _)| format!("{sabotage:?}") == flaw);
    let (sabotage, place) = known.ok_or("no such planted flaw")?;
    let seeds = first..first.saturating_add(limit);
    let cpu = ProcessTime::now();
    let found = match place {
        Place::Lives(setup) => find_planted(setup, seeds)?,
        Place::Scenario(name) => {
            let mut found = None;
            for seed in seeds {
                if breaks(name, sabotage, seed)? {
                    found = Some(seed);
                    break;
                }
            }
            found
        }
    };
    let (needed, word) = found.map_or((limit, "missed"), |seed| (seed - first + 1, "found"));
    println!("search\t{needed}\t{:.3}\t{word}", cpu.elapsed().as_secs_f64());
    Ok(())
}

fn main() -> Measured {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["list"] => {
            for (name, _) in arrangements() {
                println!("arrangement\t{name}");
            }
            for (sabotage, _) in planted() {
                println!("planted\t{sabotage:?}");
            }
            Ok(())
        }
        ["rate", arrangement, strategy, first, seeds] => {
            rate(arrangement, strategy, first.parse()?, seeds.parse()?)
        }
        ["search", flaw, first, limit] => search(flaw, first.parse()?, limit.parse()?),
        _ => Err("detection list | rate ARRANGEMENT STRATEGY FIRST SEEDS | search FLAW FIRST LIMIT".into()),
    }
}
