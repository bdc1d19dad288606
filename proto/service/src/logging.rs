//! Logging to standard error, as text or as JSON lines. Standard output belongs to results.

use std::io::IsTerminal;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use crate::{Error, Result};

/// What is logged unless RUST_LOG says otherwise: our own doings, the libraries' warnings.
const DEFAULT_FILTER: &str = "warn,kgc=info,leader=info,edge=info,quiver_net=info,quiver_service=info";

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line, for machines.
    Json,
}

/// Starts logging. RUST_LOG filters as usual (`RUST_LOG=debug`, `RUST_LOG=leader=trace,warn`).
pub fn start(format: LogFormat) -> Result<()> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(text) if !text.is_empty() => {
            EnvFilter::try_new(text).map_err(|e| Error::LogFilter(e.to_string()))?
        }
        _ => EnvFilter::new(DEFAULT_FILTER),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would report that standard error cannot be written by writing to standard error, and panic: a log on a full
        // disk must not end a service.
        .log_internal_errors(false);
    let started = match format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Error::LogFilter(error.to_string()))
}
