//! Errors of encryption to conditions, each with its exit code.

use quiver_age::Error as AgeError;
use quiver_service::Exit;
use quiver_service::drone::Error as DroneError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the drone: its state file, the network, files, standard output.
    #[error(transparent)]
    Drone(#[from] DroneError),
    /// No condition is met, with the reasons that KGCs gave.
    #[error("{0}")]
    NotReleased(String),
    /// Too few KGCs answered to make a key, and nobody refused.
    #[error("{0}; are the KGCs running and reachable?")]
    TooFewShares(String),
    /// A text is no condition, or a key is not that of its condition.
    #[error("{0}")]
    Condition(quiver_ibe::Error),
    /// Keys or recipients that do not fit.
    #[error(transparent)]
    Age(#[from] AgeError),
    /// An encrypted file or a file of keys that is not what it should be, or that nothing opens.
    #[error("{file}: {error}")]
    AgeFile {
        /// The file, or the stream.
        file: String,
        /// The error.
        error: AgeError,
    },
    /// Bytes would go to a terminal.
    #[error("standard output is a terminal: give --out FILE, or --out - if that is meant")]
    Terminal,
}

impl Error {
    /// An error of the keys and statements that the drone stores.
    pub(crate) fn keyring(error: quiver_ainq::Error) -> Self {
        DroneError::Keyring(error).into()
    }

    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Drone(error) => error.exit(),
            Self::NotReleased(_) => Exit::Refused,
            Self::TooFewShares(_) => Exit::TimedOut,
            Self::Age(error) | Self::AgeFile { error, .. } => exit(error),
            Self::Condition(_) | Self::Terminal => Exit::Usage,
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

/// The exit code for what is wrong with an age file.
const fn exit(error: &AgeError) -> Exit {
    match error {
        AgeError::NoKey { .. } | AgeError::OtherMaster { .. } => Exit::Refused,
        AgeError::NotAnAgeFile
        | AgeError::NoRecipients
        | AgeError::TooManyRecipients
        | AgeError::TooManyKeys => Exit::Usage,
        _ => Exit::Failed,
    }
}
