//! Logging to standard error, as text or as JSON lines, and requests to a collector of traces. Standard
//! output belongs to results. No place in the source writes more than so many lines in a minute.

mod limit;
mod line;
mod spans;

use std::io::IsTerminal;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, Registry};

pub use self::spans::Export;

use crate::line_output::LogWriter;
use crate::{Error, Result};

/// Default log filter: info of our crates by their common beginning, so that no feature's is forgotten; warnings of libraries, and
/// errors alone of those that warn of what strangers send.
const DEFAULT_FILTER: &str = "warn,kgc=info,leader=info,quiver_=info,\
    libp2p_gossipsub=error,libp2p_request_response=error,libp2p_swarm=error,yamux=off";

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people: time in seconds, level, sentence, fields
    #[default]
    Text,
    /// One JSON object per line, for machines: also request ids, microseconds, and where it was logged
    Json,
}

/// Starts logging. RUST_LOG filters as usual (`RUST_LOG=debug`, `RUST_LOG=leader=trace,warn`), also what is
/// exported: with `otlp`, the URL of a collector, what `role` does about each request goes there as well,
/// until the value that is returned is dropped.
///
/// # Errors
/// [`Error::LogFilter`] for RUST_LOG, [`Error::Config`] for the URL.
pub fn start(role: &str, format: LogFormat, otlp: Option<&str>) -> Result<Option<Export>> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(text) if !text.is_empty() => {
            EnvFilter::try_new(text).map_err(|e| Error::LogFilter(e.to_string()))?
        }
        _ => EnvFilter::new(DEFAULT_FILTER),
    };
    let (spans, export) = otlp.map(|endpoint| spans::export(role, endpoint)).transpose()?.unzip();
    let note = match format {
        LogFormat::Text => line::unwritten,
        LogFormat::Json => line::unwritten_json,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(move || LogWriter { note })
        // It would report that standard error cannot be written by writing to standard error, and panic: a
        // log on a full disk must not end a service.
        .log_internal_errors(false);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => {
            let limited = limit::Limited::new(line::LineFormatter, false);
            Box::new(lines.with_ansi(std::io::stderr().is_terminal()).event_format(limited))
        }
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            Box::new(lines.map_event_format(|json| limit::Limited::new(json, true)))
        }
    };
    let started = tracing_subscriber::registry().with(lines).with(spans).with(filter).try_init();
    started.map_err(|error: TryInitError| Error::LogFilter(error.to_string()))?;
    Ok(export)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn info_of_a_features_crate_is_shown_and_that_of_a_library_is_not() {
        let lines = Registry::default().with(EnvFilter::new(DEFAULT_FILTER));
        tracing::subscriber::with_default(lines, || {
            assert!(tracing::enabled!(target: "quiver_feature::task", Level::INFO));
            assert!(tracing::enabled!(target: "leader", Level::INFO));
            assert!(!tracing::enabled!(target: "quiver_feature::task", Level::DEBUG));
            assert!(!tracing::enabled!(target: "libp2p_tcp", Level::INFO));
            assert!(tracing::enabled!(target: "libp2p_tcp", Level::WARN));
            assert!(!tracing::enabled!(target: "libp2p_swarm", Level::WARN));
        });
    }
}
