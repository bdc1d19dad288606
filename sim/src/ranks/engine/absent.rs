//! No MPI: one rank plays alone.

use std::env;
use std::time::Duration;

use super::SIZES;
use crate::live::RankLine;
use crate::report::RunOutcome;
use crate::{Result, SimError};

/// Time in which this rank waited for the bytes of others.
pub(super) const fn waited() -> Duration {
    Duration::ZERO
}

/// Plays alone, unless an MPI starter started others.
pub(super) fn together(play: impl FnOnce() -> Result<RunOutcome>) -> Result<RunOutcome> {
    let others =
        SIZES.iter().filter_map(|name| env::var(name).ok()?.parse::<u32>().ok()).any(|size| size > 1);
    if others {
        let what =
            "this build plays alone: `--features mpi` makes one that ranks play together (docs/simulator.md)";
        return Err(SimError::Usage(what.into()));
    }
    play()
}

/// Plays without a line, because there is one rank.
pub(super) fn carry(play: impl FnOnce(Vec<RankLine>) -> Result<RunOutcome> + Send) -> Result<RunOutcome> {
    play(Vec::new())
}
