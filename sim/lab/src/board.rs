//! The bench shell on boards: published figures beside ours, native and emulated.
//!
//! Sources: a bench shell for RIOT (AES and RSA on an IoT-LAB M3 node), and Bücheler, *Implementation of ABE
//! in Rust on ARM Cortex-M*, Technical University of Munich (groups, YCT14 and GPSW06 on an nRF52840).
//!
//! | experiment | published | ours |
//! |---|---|---|
//! | `symmetric` | AES and RSA | the same, and hashing and authenticated encryption |
//! | `edge` | – | AinQ: keys, first key retrieval, re-keys |
//! | `board-groups` | sampling, group operation, power, pairing | the same |
//! | `board-gpsw06`, `board-yct14` | setup, encryption, key generation, decryption for 1 to 30 attributes | the same |
//! | `board-fabeo22` | – | encryption |
//! | `images` | flash and RAM | flash, static RAM |
//!
//! The native shell runs in this process. Emulated figures are those recorded in `embedded/figures.csv`,
//! which CI measures again: instructions, from which milliseconds at 64 MHz are estimated as
//! `quiver_bench::estimate` says.

mod boards;
pub(crate) mod command;
mod figures;
mod plan;
mod schemes;
mod summary;
mod tables;

use quiver_bench::BenchError;
use quiver_bench::figures::FiguresError;
use quiver_bench::transcript::TranscriptError;
use quiver_report::{Making, Observer, Report};

use self::boards::Boards;
use self::figures::BoardMeasurements;
pub use self::plan::BoardPlan;
use crate::abe::published::PublishedAbe;
use crate::blank_report::blank_report;
use crate::{LabError, Result};

impl From<BenchError> for LabError {
    fn from(error: BenchError) -> Self {
        Self::refused("bench shell", error)
    }
}

impl From<TranscriptError> for LabError {
    fn from(error: TranscriptError) -> Self {
        Self::refused("bench shell", error)
    }
}

impl From<FiguresError> for LabError {
    fn from(error: FiguresError) -> Self {
        Self::refused("embedded/figures.csv", error)
    }
}

/// Runs the native shell and reads the recorded figures.
///
/// # Errors
/// [`Refused`](LabError::Refused) if the shell refuses a line or writes something else than figures, or if
/// recorded figures cannot be read, and [`Reference`](LabError::Reference) if published ones cannot.
pub fn reproduce(plan: &BoardPlan, making: Making, observer: &mut dyn Observer) -> Result<Report> {
    let (published, boards) = (PublishedAbe::read()?, Boards::read()?);
    let measured = BoardMeasurements::take(plan, observer)?;
    let experiments = vec![
        tables::symmetric(&boards, &measured),
        tables::edge(&measured),
        tables::groups(&published, &measured),
        schemes::gpsw(plan, &published, &measured),
        schemes::yct(plan, &published, &measured),
        schemes::fabeo(plan, &measured),
        tables::images(&published, &measured),
    ];
    Ok(Report {
        slug: "board".into(),
        title: "The bench shell on boards".into(),
        lead: summary::lead(),
        highlights: summary::highlights(&experiments),
        experiments,
        sources: summary::sources(),
        ..blank_report(making)
    })
}
