//! Errors of a drone: messages that say what to do, each with its exit code.

use std::time::Duration;

use crate::Exit;
use quiver_machine::{RefusalReason, RestoreError};
use quiver_message::MAX_PAYLOAD_LEN;
use quiver_net::{NetError, Stopped};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Files, secrets, the control socket.
    #[error(transparent)]
    Service(#[from] crate::Error),
    /// The network.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Standard output, or the runtime.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The driver has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The stored state is not what the machine wrote.
    #[error("state file: {0}; restore it from a backup, or move it away and enrol anew with a fresh token")]
    Restore(#[from] RestoreError),
    /// The state is another group's.
    #[error(
        "the state in the data directory is of the leader of group {stored}, not {given}; use another --data-dir"
    )]
    OtherGroup {
        /// The owner stored.
        stored: String,
        /// The owner expected.
        given: String,
    },
    /// No state and no token.
    #[error(
        "this drone has not enrolled yet: give --token FILE (from `kgc token issue`, for a leader with --leads)"
    )]
    NoToken,
    /// The KGC refuses for good.
    #[error(
        "the KGC refuses to enrol this drone: {0}; get a fresh token (`kgc token issue`) and start again with --token"
    )]
    EnrolmentRefused(RefusalReason),
    /// The KGC was not reached, or did not answer.
    #[error("not enrolled within {}: {why}. What was begun is kept; try again", humantime::format_duration(*.within))]
    NotEnrolledInTime {
        /// The time that it had.
        within: Duration,
        /// Reason: a KGC or leader was not reached, or did not answer.
        why: String,
    },
    /// There is nothing to draw on.
    #[error(
        "--watch needs a terminal, and {0} is not one; `status --json` is for scripts, with `--watch` a line for each change"
    )]
    NoTerminal(&'static str),
    /// The stored keyring is not what was stored.
    #[error("the stored attribute keys are invalid: {0}; restore the state file from a backup")]
    Keyring(quiver_ainq::Error),
    /// The drone has no key of its own yet.
    #[error("this drone has not enrolled yet: {0}")]
    NotEnrolled(&'static str),
    /// Nowhere to ask.
    #[error("no address of a KGC: give --kgc MULTIADDR")]
    NoAddress,
    /// So many KGCs issue keys together, and no feature of the program enrols with a quorum.
    #[error(
        "the deployment has {0} KGCs, which issue keys together, and this program was built without the feature `quorum`: build it with that"
    )]
    BuiltWithoutQuorum(usize),
    /// The KGC refuses.
    #[error("the KGC hands this drone no attribute keys: {0}")]
    Refused(RefusalReason),
    /// Nobody authentic answered: the list of authorities is empty, and whoever passes it on can make it so.
    #[error(
        "no attribute authority is named, neither by the KGC nor by what is held; nothing confirms that there is none"
    )]
    NotConfirmed,
    /// A message that the group does not carry.
    #[error("the message has {0} bytes; the longest has {MAX_PAYLOAD_LEN}")]
    MessageTooLong(usize),
    /// Some authorities answered, and for others somebody refused.
    #[error("not every attribute authority handed out what it was asked for; what was fetched is kept")]
    Incomplete,
    /// A feature that can be left out failed, with this exit code.
    #[error("{error}")]
    Feature {
        /// The feature's own error.
        error: Box<dyn std::error::Error + Send + Sync>,
        /// The exit code.
        exit: Exit,
    },
    /// The running service failed at it, with this exit code.
    #[error("{0}")]
    Answered(String, u8),
    /// The KGC was not reached, or did not answer.
    #[error("not done within {0:?}: is the KGC running and reachable? What was fetched is kept; try again")]
    TimedOut(Duration),
}

impl Error {
    /// Refuses a text that is longer than a message of the group.
    ///
    /// # Errors
    /// [`Error::MessageTooLong`].
    pub const fn check_message(text: &str) -> Result<()> {
        if text.len() > MAX_PAYLOAD_LEN { Err(Self::MessageTooLong(text.len())) } else { Ok(()) }
    }

    /// Makes the error about the settings.
    pub fn config(what: impl Into<String>) -> Self {
        crate::Error::Config(what.into()).into()
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Service(error) => error.exit(),
            Self::Net(NetError::AddressInUse { .. }) => Exit::Busy,
            Self::Keyring(_) | Self::Restore(_) | Self::OtherGroup { .. } => Exit::BadState,
            Self::MessageTooLong(_) | Self::NoToken | Self::NoTerminal(_) | Self::BuiltWithoutQuorum(_) => {
                Exit::Usage
            }
            Self::EnrolmentRefused(_) => Exit::Refused,
            Self::NotEnrolledInTime { .. } => Exit::TimedOut,
            Self::NotEnrolled(_) | Self::NoAddress => Exit::Usage,
            Self::Refused(_) | Self::Incomplete => Exit::Refused,
            Self::Feature { exit, .. } => *exit,
            Self::TimedOut(_) => Exit::TimedOut,
            Self::Answered(_, code) => Exit::of(*code),
            _ => Exit::Failed,
        }
    }
}
