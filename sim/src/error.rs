//! Errors that keep a run from being carried out. A run that fails a check is a report, not an error.

use std::io;
use std::time::Duration;

use quiver_net::NetError;
use quiver_world::WorldError;

/// Reason why a run could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The command line asks for something that does not go together or does not exist.
    #[error("{0}")]
    Usage(String),
    /// A node could not be started.
    #[error("{who}: {source}")]
    Node {
        /// The node.
        who: String,
        /// The cause.
        source: NetError,
    },
    /// This machine does not let the process open enough files.
    #[error(
        "{0}\n(every drone takes two file descriptors in this process over TCP, one over QUIC; at other ranks one over TCP, none over QUIC; behind `--relays` none; `--transport memory` takes none)"
    )]
    FileLimit(NetError),
    /// A node stopped by itself; the log has the reason.
    #[error("{who} stopped unexpectedly; RUST_LOG=error shows why")]
    Stopped {
        /// The node.
        who: String,
    },
    /// An event that a run waits for did not come in time.
    #[error("{what} within {} s; --timeout gives more time", .within.as_secs_f64())]
    Late {
        /// The event that did not come, as a sentence: "the leader did not enrol".
        what: String,
        /// The time limit.
        within: Duration,
    },
    /// A protocol object could not be made.
    #[error("{what}: {source}")]
    Protocol {
        /// The operation.
        what: &'static str,
        /// The cause.
        source: quiver_ainq::Error,
    },
    /// A machine could not be restored from its records.
    #[error("{who} cannot be restored from its records: {source}")]
    Restore {
        /// The machine.
        who: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A rank, or the run whose drones it hosts, cannot go on.
    #[error("{who}: {why}")]
    Worker {
        /// The rank.
        who: String,
        /// The cause.
        why: String,
    },
    /// The user ended the run before any part of it was finished.
    #[error("interrupted before anything was finished; nothing is written")]
    Interrupted,
    /// The results could not be written.
    #[error(transparent)]
    Report(#[from] quiver_report::ReportError),
    /// The async runtime could not be started.
    #[error("cannot start the runtime: {0}")]
    Runtime(#[source] io::Error),
    /// RUST_LOG does not parse, or a log subscriber exists already.
    #[error("cannot start logging: {0}")]
    Logging(String),
}

/// Result of a step of the simulator.
pub type Result<T, E = SimError> = std::result::Result<T, E>;

impl From<WorldError> for SimError {
    fn from(error: WorldError) -> Self {
        match error {
            WorldError::LostRank(rank) => {
                Self::Worker { who: format!("rank {rank}"), why: "it is lost, and the run is over".into() }
            }
            refused => Self::Usage(refused.to_string()),
        }
    }
}
