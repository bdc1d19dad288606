//! A large group's life, with memory: `cargo run --release -p quiver-world --example scale -- 100000 tree
//! ristretto`.
#![expect(clippy::print_stdout, reason = "an example for people")]

use std::time::Duration;

use peak_alloc::PeakAlloc;
use quiver_ainq::{Ristretto255, StrategyKind};
use quiver_quorum::QuorumSuite;
use quiver_world::run::{Progress, RunPlan, run};
use quiver_world::{InsecureToy, SharedRistretto255};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let drones = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let strategy = if has("tree") { StrategyKind::Tree } else { StrategyKind::Flat };
    let plan = RunPlan {
        drones,
        strategy,
        seed: 1,
        leavers: (drones / 100).min(100),
        newcomers: (drones / 10).min((1 << 20) - drones),
        messages: 2,
        envelopes: false,
        kgcs: 1,
        threshold: 1,
        orders: false,
        admission: None,
        restart_leader: true,
        air: None,
        depot: None,
    };
    if has("shared") {
        return live::<SharedRistretto255>(&plan);
    }
    if has("ristretto") { live::<Ristretto255>(&plan) } else { live::<InsecureToy>(&plan) }
}

fn live<S: QuorumSuite>(plan: &RunPlan) {
    println!(
        "{} over {}; an edge's machine {} bytes, a leader's {}",
        plan.drones,
        S::ID,
        size_of::<quiver_group::Edge<S>>(),
        size_of::<quiver_group::Leader<S>>()
    );
    let mut last = (None, Duration::ZERO);
    let mut show = |progress: Progress| {
        if Some(progress.phase) != last.0 || progress.at > last.1 + Duration::from_secs(5) {
            last = (Some(progress.phase), progress.at);
            println!("  {progress:?}, {:.0} MB allocated", MEMORY.current_usage_as_mb());
        }
    };
    let start = cpu_time::ProcessTime::now();
    let outcome = run::<S>(plan, &mut show).expect("a world");
    for operation in &outcome.operations {
        println!(
            "{:<28} {:>8} leader {:>10.3?} to all {:?}, {} epochs, {:?} messages, {:?} bytes, CPU {:.2?}",
            operation.name(),
            operation.drones,
            operation.leader_cpu,
            operation.to_all,
            operation.epochs,
            operation.messages,
            operation.bytes,
            operation.cpu
        );
    }
    println!(
        "{} violations {:?}; {} checks, {} steps; CPU {:.1?}, peak {:.0} MB",
        outcome.violations.len(),
        outcome.violations,
        outcome.checks,
        outcome.steps,
        start.elapsed(),
        MEMORY.peak_usage_as_mb()
    );
}
