//! What can go wrong at a leader, in words that say what to do, each with its exit code.

use quiver_net::{NetError, Stopped};
use quiver_role::{Reason, leader::RestoreError};
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
    /// There is nothing to draw on.
    #[error(
        "--watch draws on a terminal, and {0} is none; without --watch, `leader status --json` is for scripts"
    )]
    NoTerminal(&'static str),
    /// No state and no token.
    #[error("this leader has not enrolled yet: give --token FILE (from `kgc token issue --leads GROUP`)")]
    NoToken,
    /// The state is another group's.
    #[error(
        "the state in the data directory is of the leader of group {stored}, not {given}; use another --data-dir"
    )]
    OtherGroup {
        /// Whose it is.
        stored: String,
        /// Who we are to be.
        given: String,
    },
    /// The policy cannot be demanded.
    #[error("policy {path}: {reason}")]
    Policy {
        /// The file.
        path: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The KGC refuses for good.
    #[error(
        "the KGC refuses to enrol this leader: {0}; get a fresh token (`kgc token issue`) and start with --token"
    )]
    Refused(Reason),
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
            Self::Restore(_) | Self::OtherGroup { .. } => Exit::BadState,
            Self::Config(_) | Self::NoToken | Self::NoTerminal(_) | Self::Policy { .. } => Exit::Usage,
            Self::Refused(_) => Exit::Refused,
            _ => Exit::Failed,
        }
    }
}
