//! Errors of attributes and envelopes, each with its exit code.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use quiver_abe::envelope::EnvelopeError;
use quiver_ainq::Name;
use quiver_service::Exit;
use quiver_service::drone::Error as DroneError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the drone: its state file, files, standard output.
    #[error(transparent)]
    Drone(#[from] DroneError),
    /// Policy or attributes are not what the authority's schema allows.
    #[error("invalid policy or list of attributes:\n{0}")]
    Target(String),
    /// No attribute authority fits, or several do, or one is not of use.
    #[error("{0}")]
    Authority(String),
    /// None of the keys fits.
    #[error("policy not satisfied")]
    NotSatisfied,
    /// A file is no envelope, or a damaged one, or not its sender's.
    #[error("{path}: {error}")]
    Envelope {
        /// The file.
        path: PathBuf,
        /// The error.
        error: EnvelopeError,
    },
    /// A message out of the middle of a session, which its opening alone makes readable.
    #[error("{0}: not an envelope of its own, but a message of a session")]
    NotAlone(PathBuf),
}

impl Error {
    /// Makes the error about an authority of this name.
    pub(crate) fn authority(name: &Name, error: &dyn Display) -> Self {
        Self::Authority(format!("attribute authority {name}: {error}"))
    }

    /// Makes the error about the envelope in this file.
    pub(crate) fn envelope(path: &Path, error: EnvelopeError) -> Self {
        match error {
            EnvelopeError::NotSatisfied => Self::NotSatisfied,
            error => Self::Envelope { path: path.into(), error },
        }
    }

    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Drone(error) => error.exit(),
            Self::Target(_) | Self::Authority(_) | Self::NotAlone(_) => Exit::Usage,
            Self::NotSatisfied => Exit::Refused,
            Self::Envelope { error: EnvelopeError::NotAnEnvelope, .. } => Exit::Usage,
            Self::Envelope { .. } => Exit::Failed,
        }
    }
}

impl From<quiver_service::Error> for Error {
    fn from(error: quiver_service::Error) -> Self {
        DroneError::from(error).into()
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        DroneError::from(error).into()
    }
}

impl From<Error> for DroneError {
    fn from(error: Error) -> Self {
        match error {
            Error::Drone(error) => error,
            other => {
                let exit = other.exit();
                Self::Feature { error: Box::new(other), exit }
            }
        }
    }
}
