//! Detection power of `sim check`, for `models/detection`: what a CPU minute buys, which faults took place, and after how many
//! CPU seconds each planted flaw is found. `detection SEEDS LIMIT`: seeds for the rates, seeds for each search at most.
//!
//! Prints lines of words with tabs between them: `rate STRATEGY SEEDS CPU-SECONDS VIRTUAL-SECONDS`,
//! `action KIND COUNT`, `planted FLAW CPU-SECONDS SEEDS FOUND` with the medians of five searches and how many of them found it.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeMap;
use std::time::Duration;

use cpu_time::ProcessTime;
use quiver_ainq::StrategyKind;
use quiver_world::Sabotage;
use quiver_world::check::{CheckSetup, Checker, find_planted};

/// Searches for one flaw, each among other seeds.
const SEARCHES: u64 = 5;

/// Planted flaws, each in worlds in which it can show.
fn planted() -> Vec<CheckSetup> {
    let with = |sabotage| CheckSetup { edges: 8, sabotage, ..CheckSetup::default() };
    let quorum = |sabotage| CheckSetup { kgcs: 5, ..with(sabotage) };
    vec![
        with(Sabotage::TransmitBeforePersist),
        with(Sabotage::LoseRecords),
        with(Sabotage::StaleState),
        with(Sabotage::SameDice),
        with(Sabotage::MissDeadlines),
        with(Sabotage::HideGroup),
        CheckSetup { leaders: 3, ..with(Sabotage::KeepProofs) },
        CheckSetup { relays: 1, ..with(Sabotage::KeepDrones) },
        quorum(Sabotage::ForgetPins),
        quorum(Sabotage::LowDegree),
        quorum(Sabotage::EarlyRelease),
    ]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let mut number = || words.next().ok_or("detection SEEDS LIMIT").map(|word| word.parse::<u64>());
    let (seeds, limit) = (number()??, number()??.min(100_000));
    let mut actions = BTreeMap::<&str, u64>::new();
    for strategy in StrategyKind::ALL {
        let checker = Checker::new(CheckSetup { strategy, ..CheckSetup::default() })?;
        let (cpu, mut time) = (ProcessTime::now(), Duration::ZERO);
        for seed in 1..=seeds {
            let outcome = checker.check(seed)?;
            time += outcome.time;
            for (kind, count) in outcome.actions {
                *actions.entry(kind).or_default() += count;
            }
        }
        println!("rate\t{strategy}\t{seeds}\t{:.3}\t{:.0}", cpu.elapsed().as_secs_f64(), time.as_secs_f64());
    }
    for (kind, count) in actions {
        println!("action\t{kind}\t{count}");
    }
    for setup in planted() {
        let (mut seconds, mut needed, mut found) = (Vec::new(), Vec::new(), 0);
        for search in 0..SEARCHES {
            let first = search * 100_000 + 1;
            let cpu = ProcessTime::now();
            let seed = find_planted(setup, first..first + limit)?;
            seconds.push(cpu.elapsed());
            needed.push(seed.map_or(limit, |seed| seed - first + 1));
            found += u64::from(seed.is_some());
        }
        seconds.sort_unstable();
        needed.sort_unstable();
        let middle = seconds.len() / 2;
        let flaw = setup.sabotage;
        println!("planted\t{flaw:?}\t{:.2}\t{}\t{found}", seconds[middle].as_secs_f64(), needed[middle]);
    }
    Ok(())
}
