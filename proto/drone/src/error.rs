//! What can go wrong around attribute keys.

use std::time::Duration;

use quiver_net::NetError;
use quiver_role::Reason;
use quiver_service::Exit;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Files, secrets, the control socket.
    #[error(transparent)]
    Service(#[from] quiver_service::Error),
    /// The network.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Standard output.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The stored keyring is not what was stored.
    #[error("the stored attribute keys do not hold: {0}; restore the state file from a backup")]
    Keyring(quiver_ainq::Error),
    /// The drone has no key of its own yet.
    #[error("this drone has not enrolled yet: {0}")]
    NotEnrolled(&'static str),
    /// Nowhere to ask.
    #[error("no address of a KGC: give --kgc MULTIADDR")]
    NoAddress,
    /// The KGC refuses.
    #[error("the KGC hands this drone no attribute keys: {0}")]
    Refused(Reason),
    /// The KGC was not reached, or did not answer.
    #[error("not done within {0:?}: is the KGC running and reachable? What was fetched is kept; try again")]
    TimedOut(Duration),
}

impl Error {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Service(error) => error.exit(),
            Self::Keyring(_) => Exit::BadState,
            Self::NotEnrolled(_) | Self::NoAddress => Exit::Usage,
            Self::Refused(_) => Exit::Refused,
            Self::TimedOut(_) => Exit::TimedOut,
            _ => Exit::Failed,
        }
    }
}
