//! What can go wrong at an edge, in words that say what to do, each with its exit code.

use std::time::Duration;

use quiver_net::{NetError, Stopped};
use quiver_role::{Reason, edge::RestoreError};
use quiver_service::Exit;

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// Files, secrets, configuration, the control socket.
    #[error(transparent)]
    Service(#[from] quiver_service::Error),
    /// The network.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Attribute keys.
    #[error(transparent)]
    Attributes(#[from] quiver_service::drone::Error),
    /// The stored state is not what the machine wrote.
    #[error("state file: {0}; restore it from a backup, or move it away and enrol anew with a fresh token")]
    Restore(#[from] RestoreError),
    /// Standard output, or the runtime.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The configuration does not make sense.
    #[error("configuration: {0}")]
    Config(String),
    /// No state and no token.
    #[error("this drone has not enrolled yet: give --token FILE (from `kgc token issue`)")]
    NoToken,
    /// The KGC refuses for good.
    #[error(
        "the KGC refuses to enrol this drone: {0}; get a fresh token (`kgc token issue`) and enrol with --token"
    )]
    Refused(Reason),
    /// The KGC was not reached, or did not answer.
    #[error("not enrolled within {0:?}: is the KGC running and reachable? What was begun is kept; try again")]
    TimedOut(Duration),
    /// The driver has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Error {
    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Service(error) => error.exit(),
            Self::Attributes(error) => error.exit(),
            Self::Net(NetError::AddressInUse { .. }) => Exit::Busy,
            Self::Restore(_) => Exit::BadState,
            Self::Config(_) | Self::NoToken => Exit::Usage,
            Self::Refused(_) => Exit::Refused,
            Self::TimedOut(_) => Exit::TimedOut,
            _ => Exit::Failed,
        }
    }
}
