//! Ranks of a run under MPI: processes that play one virtual world together. They need the feature `mpi`.
//!
//! MPI is the process's, and so are its ranks here: [`together`] joins those that `mpirun`, `srun` or an MPIJob started.

#[cfg_attr(not(feature = "mpi"), path = "ranks/engine/absent.rs")]
mod engine;

use std::env;
use std::fmt::Write as _;
use std::sync::OnceLock;

use cpu_time::ProcessTime;
use quiver_report::{OutputArgs, Unit};
use quiver_world::ranks::Ranks;

use crate::live::RankLine;
use crate::report::RunOutcome;
use crate::{Result, interrupt, measure};

/// Variables in which starters of MPI programs put the number of processes.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"];
/// Variables that only processes have which an MPI starter started.
const MARKS: [&str; 2] = ["PMIX_RANK", "PMI_RANK"];

static RANKS: OnceLock<Ranks> = OnceLock::new();

/// The ranks of this run, if an MPI starter started it.
pub(crate) fn current() -> Option<&'static Ranks> {
    RANKS.get()
}

/// Number of processes that play a world together.
pub(crate) fn count() -> u32 {
    current().map_or(1, Ranks::count)
}

/// Returns true if this process is the one that reports.
pub(crate) fn is_first() -> bool {
    current().is_none_or(|ranks| ranks.rank() == 0)
}

/// Output of this process: all that is wanted at the first rank, nothing at others.
pub(crate) fn output(wanted: &OutputArgs) -> OutputArgs {
    if is_first() {
        return wanted.clone();
    }
    OutputArgs { no_results: true, json: false, quiet: true, ..wanted.clone() }
}

/// Returns true if the user has asked any rank for the end.
pub(crate) fn is_interrupted() -> bool {
    let own = interrupt::is_requested();
    match current() {
        None => own,
        Some(ranks) => ranks.all_gather(&[own.into()]).iter().any(|wants| wants.first() == Some(&1)),
    }
}

/// Returns true if an MPI starter started this process, with others or alone.
fn is_started() -> bool {
    SIZES.iter().chain(&MARKS).any(|name| env::var_os(name).is_some())
}

/// Plays with all other processes that the MPI starter started, or alone if none did. A failure here ends all
/// of them: the others would wait for this one.
pub(crate) fn together(play: impl FnOnce() -> Result<RunOutcome>) -> Result<RunOutcome> {
    if !is_started() {
        return play();
    }
    engine::together(play)
}

/// Plays on a thread of its own with lines to other ranks: the first rank with one to each of them in their order, every other
/// with one to the first. This thread carries their messages meanwhile. Alone it plays here, without a line.
pub(crate) fn beside_lines(
    play: impl FnOnce(Vec<RankLine>) -> Result<RunOutcome> + Send,
) -> Result<RunOutcome> {
    if count() == 1 {
        return play(Vec::new());
    }
    engine::carry(play)
}

/// Costs of all ranks since the process began, one sentence each; nothing outside of MPI. All ranks ask for them.
pub(crate) fn costs() -> Vec<String> {
    let Some(ranks) = current() else { return Vec::new() };
    let mut own = format!("Rank {} of {} on {}: ", ranks.rank(), ranks.count(), host());
    let cpu = ProcessTime::try_now().map(|now| now.as_duration()).unwrap_or_default();
    let _ = write!(
        own,
        "{} of processor time, waited {} for others",
        Unit::duration(cpu),
        Unit::duration(engine::waited())
    );
    if let Some(bytes) = measure::peak_memory() {
        let _ = write!(own, ", {} MB of memory at most", bytes / 1_000_000);
    }
    let all = ranks.all_gather(own.as_bytes());
    all.iter().map(|line| String::from_utf8_lossy(line).into_owned() + ".").collect()
}

/// Name of this host.
pub(crate) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "a host without a name".into() } else { name.trim().into() }
}

/// Text about a digest, as all commands print it.
pub(crate) fn digest(trace: &[u8; 32]) -> String {
    format!("SHA-256 over every step: {}.", hex::encode(trace))
}
