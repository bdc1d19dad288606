//! Writes logs to standard error, if RUST_LOG asks for them, without breaking the progress bars.

use std::io::{self, IsTerminal, Write};

use quiver_report::Progress;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::{Result, SimError};

/// Filter unless RUST_LOG is set. A thousand drones in one process leave no room for more.
const DEFAULT_FILTER: &str = "error";

/// Starts logging.
pub(crate) fn start(progress: &Progress) -> Result<()> {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = if wanted.is_empty() { DEFAULT_FILTER } else { wanted.as_str() };
    let filter =
        EnvFilter::try_new(filter).map_err(|error| SimError::Logging(format!("RUST_LOG: {error}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(BesideBars(progress.clone()))
        .try_init()
        .map_err(|error| SimError::Logging(error.to_string()))
}

/// Standard error, with the bars out of the way.
#[derive(Clone, Debug)]
struct BesideBars(Progress);

impl Write for BesideBars {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The formatter hands over whole lines.
        self.0.suspend(|| io::stderr().lock().write_all(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

impl<'a> MakeWriter<'a> for BesideBars {
    type Writer = Self;

    fn make_writer(&'a self) -> Self::Writer {
        self.clone()
    }
}
