//! Checks seeds and prints how fast: `cargo run --release -p quiver-world --example check -- [first] [count]
//! [leaders] [tree]`.
#![expect(clippy::print_stdout, reason = "an example for people")]

use quiver_world::check::{CheckSetup, Checker};
use rayon::prelude::*;

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (first, count) = (arguments.next().unwrap_or(1), arguments.next().unwrap_or(200));
    let strategy = match std::env::args().next_back().as_deref() {
        Some("tree") => quiver_ainq::StrategyKind::Tree,
        _ => quiver_ainq::StrategyKind::Flat,
    };
    let leaders = u16::try_from(arguments.next().unwrap_or(1)).expect("few leaders");
    let checker = Checker::new(CheckSetup { strategy, leaders, ..CheckSetup::default() }).expect("a world");
    let start = cpu_time::ProcessTime::now();
    let outcomes: Vec<_> = (first..first + count)
        .into_par_iter()
        .map(|seed| (seed, checker.check(seed).expect("a world")))
        .collect();
    let took = start.elapsed();
    let sum = |of: fn(&quiver_world::check::Outcome) -> u64| outcomes.iter().map(|(_, o)| of(o)).sum::<u64>();
    println!(
        "{count} seeds in {took:?} CPU ({:.0} per minute and core), {} steps, {} epochs, {} checks, longest convergence {:?}",
        count as f64 * 60.0 / took.as_secs_f64(),
        sum(|o| o.steps),
        sum(|o| o.epochs as u64),
        sum(|o| o.checks),
        outcomes.iter().map(|(_, o)| o.convergence).max().unwrap_or_default(),
    );
    let failed: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.violation.is_some()).collect();
    println!("{} failed", failed.len());
    for (seed, outcome) in failed.iter().take(12) {
        println!("seed {seed}: {}", outcome.violation.as_ref().expect("failed"));
    }
    if let Some((seed, _)) = failed.first()
        && let Some(failure) = checker.explain(*seed).expect("a world")
    {
        println!(
            "seed {seed}: {} (of {} actions, {} left)",
            failure.violation,
            failure.planned,
            failure.plan.actions.len()
        );
        println!("{}", failure.plan);
        failure.story.iter().for_each(|line| println!("{line}"));
    }
}
