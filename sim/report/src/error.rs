//! Errors of drawing and writing reports.

use std::io;
use std::path::PathBuf;

/// An error of drawing or writing a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A plot cannot be drawn.
    #[error("cannot draw {plot}: {reason}")]
    Plot {
        /// The plot.
        plot: String,
        /// The reason.
        reason: String,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Results cannot be printed.
    #[error("cannot print the results: {0}")]
    Print(#[source] io::Error),
    /// No browser can be started.
    #[error("cannot open {} in a browser: {source}", .page.display())]
    Open {
        /// The page.
        page: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Result of drawing or writing a report.
pub type Result<T, E = ReportError> = std::result::Result<T, E>;
