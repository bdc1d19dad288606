//! Reason why there is no figure.

use core::fmt;

use thiserror::Error;

/// Reason why a benchmark does not run, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The line asks for nothing that there is.
    #[error("{0}")]
    Usage(&'static str),
    /// A number is missing, is none, or is out of bounds.
    #[error("{what} must be a number from {least} to {most}")]
    OutOfBounds {
        /// Name of the number.
        what: &'static str,
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// This image was built without it.
    #[error("this benchmark is not in this image")]
    NotInThisImage,
    /// It takes more memory than is free.
    #[error("takes {needed} bytes of heap, and {free} are free")]
    TooLittleMemory {
        /// Bytes that it takes.
        needed: usize,
        /// Bytes that are free.
        free: usize,
    },
    /// The measured operation failed.
    #[error("failed: {0}")]
    Failed(&'static str),
    /// The output could not be written.
    #[error("the output cannot be written")]
    Output,
}

impl From<fmt::Error> for BenchError {
    fn from(_: fmt::Error) -> Self {
        Self::Output
    }
}

/// A result with [`BenchError`].
pub type Result<T, E = BenchError> = core::result::Result<T, E>;
