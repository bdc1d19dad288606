//! Writes the replay of a run in virtual time: one page that plays its trace.

use std::fs;
use std::path::Path;

use quiver_report::{Replay, ReportError};
use quiver_world::trace::Trace;

use crate::{Result, SimError};

/// Name of the page in a folder of results.
pub(crate) const PAGE: &str = "replay.html";
/// More drones are no longer told apart on a page.
const MAX_DRONES: u32 = 10_000;

/// Refuses more drones than a page shows.
pub(crate) fn check(drones: u32) -> Result<()> {
    if drones > MAX_DRONES {
        return Err(SimError::Usage(format!(
            "--replay: {drones} drones are too many for a page: at most {MAX_DRONES}"
        )));
    }
    Ok(())
}

/// Writes the page into a file.
pub(crate) fn write(file: &Path, title: &str, about: &str, command: &str, trace: &Trace) -> Result<()> {
    let replay = Replay {
        title: title.into(),
        about: about.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        command: command.into(),
        failures: trace.failures.clone(),
        left_out: trace.left_out.clone(),
        trace: serde_json::to_string(trace).expect("a trace has no maps and no numbers that JSON lacks"),
    };
    fs::write(file, replay.page())
        .map_err(|source| ReportError::File { path: file.to_path_buf(), source }.into())
}
