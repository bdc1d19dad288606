//! Parses what the shell wrote: for hosts that run a board's or an emulator's console.

use alloc::string::String;
use alloc::vec::Vec;

use thiserror::Error;

/// The figures of one benchmark. Times are microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkOutcome {
    /// The board.
    pub board: String,
    /// Processor of the target.
    pub mcu: String,
    /// The benchmark with its operation, as on the command line but for the number of iterations.
    pub benchmark: String,
    /// Parameters of the benchmark, for people.
    pub parameters: String,
    /// Number of iterations.
    pub iterations: u64,
    /// All iterations.
    pub total: f64,
    /// One on average.
    pub average: f64,
    /// The quickest.
    pub minimum: f64,
    /// The slowest.
    pub maximum: f64,
    /// Instructions on average, where they are counted.
    pub instructions: Option<u64>,
    /// Milliseconds at 64 MHz, at least and at most, where instructions are counted.
    pub at_64_mhz: Option<(f64, f64)>,
    /// Bytes of heap at most, where they are known.
    pub heap: Option<u64>,
    /// Bytes of stack at most, where they are known.
    pub stack: Option<u64>,
}

/// Error of a transcript that is not the shell's output.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// A field is missing or cannot be read.
    #[error("no `{field}` in the figures of `{benchmark}`")]
    Field {
        /// The field.
        field: &'static str,
        /// The benchmark, as far as known.
        benchmark: String,
    },
    /// The shell reported an error.
    #[error("the shell: {0}")]
    Refused(String),
}

/// The figures in a transcript, in order. Other output between them is skipped.
///
/// # Errors
/// [`TranscriptError`].
pub fn parse(text: &str) -> Result<Vec<BenchmarkOutcome>, TranscriptError> {
    let mut outcomes = Vec::new();
    let mut block: Option<Vec<(&str, &str)>> = None;
    for line in text.lines().map(str::trim).chain([""]) {
        if let Some(error) = line.strip_prefix("error: ") {
            return Err(TranscriptError::Refused(error.into()));
        }
        match (line.split_once(": "), &mut block) {
            (Some(field @ ("Board", _)), None) => block = Some(Vec::from([field])),
            (Some(field), Some(fields)) => fields.push(field),
            (None, Some(fields)) => {
                outcomes.push(outcome(fields)?);
                block = None;
            }
            (_, None) => {}
        }
    }
    Ok(outcomes)
}

fn outcome(fields: &[(&str, &str)]) -> Result<BenchmarkOutcome, TranscriptError> {
    let find = |name| fields.iter().find(|(field, _)| *field == name).map(|(_, value)| *value);
    let missing =
        |field| TranscriptError::Field { field, benchmark: find("Benchmark").unwrap_or_default().into() };
    let text = |field| find(field).map(String::from).ok_or(missing(field));
    let micros = |field| {
        let value = find(field).and_then(|value| value.strip_suffix(" us")?.parse().ok());
        value.ok_or(missing(field))
    };
    let bytes = |field| find(field).and_then(|value| value.strip_suffix(" bytes")?.parse().ok());
    let number = |field| find(field).and_then(|value| value.parse().ok());
    Ok(BenchmarkOutcome {
        board: text("Board")?,
        mcu: text("MCU")?,
        benchmark: text("Benchmark")?,
        parameters: text("Parameters")?,
        iterations: number("Iterations").ok_or(missing("Iterations"))?,
        total: micros("Total")?,
        average: micros("Average")?,
        minimum: micros("Minimum")?,
        maximum: micros("Maximum")?,
        instructions: number("Instructions"),
        at_64_mhz: find("At 64 MHz").and_then(estimate),
        heap: bytes("Heap"),
        stack: bytes("Stack"),
    })
}

/// `1.234 to 2.345 ms, estimated`
fn estimate(text: &str) -> Option<(f64, f64)> {
    let (low, high) = text.strip_suffix(" ms, estimated")?.split_once(" to ")?;
    Some((low.parse().ok()?, high.parse().ok()?))
}
