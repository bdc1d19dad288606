//! Runs a plan in the live world: every drone is a libp2p node, here or hosted by other ranks, in real time.

mod admission;
pub mod checker;
mod conditions;
mod deployment;
mod drone;
mod drone_event;
mod envelopes;
mod event_log;
mod features;
pub mod flood;
mod hosts;
mod key_generation;
mod kgc;
mod mavlink;
mod node;
mod node_settings;
mod phases;
mod rank_line;
mod relays;
mod swarm;
mod worker;
mod worker_message;
mod worker_pool;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::Ristretto255;
use quiver_allocator::{map_large_blocks, use_small_pages};
use quiver_net::check_file_limit;
use quiver_report::{Machine, Progress};
use quiver_world::formats::pcapng::Capture;
use quiver_world::run::FinishedPart;

use crate::measure::{self, MemorySampler};
use crate::plan::{Plan, TransportKind};
use crate::report::RunReport;
use crate::{Result, SimError, interrupt};

#[cfg(feature = "mpi")]
pub(crate) use self::rank_line::LONGEST;
pub use self::rank_line::RankLine;
pub use self::worker::work;
use self::world::LiveWorld;

/// Descriptors for everything but the drones' connections.
const SPARE_FILES: u64 = 128;

/// The name of a drone.
pub fn drone_name(index: u32) -> String {
    format!("{NAME_PREFIX}{index:05}")
}

const NAME_PREFIX: &str = "drone-";

/// The index of the drone of this name; `None` if it is no drone's.
fn drone_index(name: &str) -> Option<u32> {
    name.strip_prefix(NAME_PREFIX)?.parse().ok()
}

/// Runs a plan in the live world, in this process.
///
/// # Errors
/// If the run could not be carried out. A run in which an invariant failed is a [`RunReport`] of it.
pub fn run(plan: &Plan, progress: &Progress) -> Result<RunReport> {
    run_over(plan, progress, Vec::new(), &mut |_| {})
}

/// Runs a plan in the live world whose drones are hosted by ranks, each at the other end of one of these lines, or here if
/// there are none. Reports to the watcher what is finished, after each operation.
///
/// # Errors
/// If the run could not be carried out. A run in which an invariant failed or a rank was lost is a [`RunReport`] of it.
pub fn run_over(
    plan: &Plan,
    progress: &Progress,
    lines: Vec<RankLine>,
    watch: &mut (dyn FnMut(RunReport) + Send),
) -> Result<RunReport> {
    check(plan)?;
    if lines.len() != plan.workers as usize {
        return Err(SimError::Usage(format!(
            "a plan for {} workers and {} of them",
            plan.workers,
            lines.len()
        )));
    }
    use_small_pages();
    if plan.transport == TransportKind::Quic {
        // Each drone has an endpoint of its own.
        map_large_blocks();
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(SimError::Runtime)?;
    let report = runtime.block_on(play(plan, progress, lines, watch));
    // Thousands of nodes need not be taken down one by one.
    runtime.shutdown_background();
    report
}

/// Refuses what cannot be done on this machine, saying why.
pub(crate) fn check(plan: &Plan) -> Result<()> {
    plan.check()?;
    check_files(plan)
}

/// Refuses a plan that needs more descriptors than there are, as running out shows only as handshakes that
/// time out.
fn check_files(plan: &Plan) -> Result<()> {
    let drones = u64::from(plan.drones) + u64::from(plan.newcomers());
    let needed = match plan.transport {
        TransportKind::Memory => return Ok(()),
        // The connections of drones are between them and their relays.
        TransportKind::Tcp if plan.workers > 0 && plan.relays > 0 => {
            u64::from(plan.relays) + u64::from(plan.kgcs) * world::ENROLLING_AT_ONCE as u64
        }
        // Both ends of a connection are in this process.
        TransportKind::Tcp if plan.workers > 0 => {
            drones + u64::from(plan.kgcs) * world::ENROLLING_AT_ONCE as u64
        }
        // All connections share the listeners' sockets; each drone's own is in its rank's process.
        TransportKind::Quic if plan.workers > 0 => u64::from(plan.kgcs),
        TransportKind::Tcp => 2 * (drones + u64::from(plan.kgcs) * world::ENROLLING_AT_ONCE as u64),
        TransportKind::Quic => drones + u64::from(plan.kgcs) + world::ENROLLING_AT_ONCE as u64,
    };
    check_file_limit(needed + SPARE_FILES).map_err(SimError::FileLimit)
}

async fn play(
    plan: &Plan,
    progress: &Progress,
    lines: Vec<RankLine>,
    watch: &mut (dyn FnMut(RunReport) + Send),
) -> Result<RunReport> {
    let started = measure::wall_clock();
    let begin = measure::now();
    let memory = MemorySampler::start();
    let mut world = tokio::select! {
        world = LiveWorld::<Ristretto255>::build(plan, progress, lines) => world?,
        () = interrupt::requested() => return Err(SimError::Interrupted),
    };
    // Nothing is known yet of what a run has at its end alone.
    let begun = RunReport {
        plan: plan.clone(),
        machine: Machine::here(),
        started,
        operations: Vec::new(),
        workers: Vec::new(),
        violations: Vec::new(),
        interrupted: true,
        pairs: None,
        checks: 0,
        steps: None,
        notes: Vec::new(),
        offences: BTreeMap::new(),
        kgc_cpu: None,
        wall: Duration::ZERO,
        peak_memory: None,
        memory: Vec::new(),
        command: measure::command_line(),
        keys_digest: None,
        choices_digest: None,
        capture: None,
    };
    let mut finished = |part: FinishedPart<'_>| {
        watch(RunReport {
            operations: part.operations.to_vec(),
            violations: part.violations.to_vec(),
            checks: part.checks,
            wall: begin.elapsed(),
            peak_memory: measure::peak_memory(),
            ..begun.clone()
        });
    };
    let results = phases::run_all(&mut world, &mut finished).await?;
    let pairs = world.pairs().await;
    let workers = world.finish().await;
    if results.interrupted && results.operations.is_empty() {
        return Err(SimError::Interrupted);
    }
    let summary = world.summary();
    Ok(RunReport {
        operations: results.operations,
        workers,
        violations: results.violations,
        interrupted: results.interrupted,
        pairs,
        checks: results.checks,
        offences: summary.offences,
        kgc_cpu: Some(summary.kgc_cpu),
        wall: begin.elapsed(),
        peak_memory: measure::peak_memory(),
        memory: memory.finish(),
        keys_digest: Some(summary.keys_digest),
        choices_digest: Some(results.choices_digest),
        capture: world.capture.take().map(Capture::into_bytes),
        ..begun
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drones_are_found_by_name() {
        for index in [0, 7, 12_345, 123_456] {
            assert_eq!(drone_index(&drone_name(index)), Some(index));
        }
        assert_eq!(drone_index("leader"), None);
        assert_eq!(drone_index("drone-x"), None);
    }
}
