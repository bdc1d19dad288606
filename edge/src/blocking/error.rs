//! Errors of a drone within another program: a code, and words that say what and where.

use std::fmt;

use quiver_net::Stopped;
use quiver_service::Exit;
use quiver_service::drone::Error as DroneError;

/// A result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// An error. Its text names the file, the option or the peer, and says what to do; options by the flags that
/// `edge` has for them. It contains no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    text: String,
}

/// Kind of an error. The numbers do not change; up to 8 they are the exit codes of the services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum ErrorKind {
    /// The call failed for a reason that has no code of its own.
    Failed = 1,
    /// An argument, an option or a file that was given is wrong.
    Usage = 2,
    /// A service understood and refused: an expired token, a name already taken, a revoked drone.
    Refused = 3,
    /// Another process or another drone of this one uses the data directory.
    Busy = 5,
    /// Wrong passphrase or key, or a file that others may read.
    Locked = 6,
    /// The state file is damaged, or of another role or deployment.
    BadState = 7,
    /// Not done in the time given.
    TimedOut = 8,
    /// The drone is not, or not yet, in step with its group.
    NotJoined = 9,
    /// The drone was closed.
    Closed = 10,
    /// The library has another version than what the application was built for.
    Version = 11,
    /// The process is a fork of the one that opened the drone.
    Forked = 12,
    /// The library has panicked: a bug.
    Panicked = 13,
}

impl Error {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    pub(super) fn timed_out() -> Self {
        Self::new(ErrorKind::TimedOut, "not done in the time given")
    }

    pub(super) fn not_joined() -> Self {
        Self::new(ErrorKind::NotJoined, "the drone is not in step with its group: join it first")
    }

    pub(super) fn closed() -> Self {
        Self::new(ErrorKind::Closed, "the drone was closed")
    }

    /// Kind of the error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<DroneError> for Error {
    fn from(error: DroneError) -> Self {
        let kind = match error.exit() {
            // Signals are the application's.
            Exit::Interrupted | Exit::Terminated => ErrorKind::Failed,
            Exit::Done | Exit::Failed | Exit::NotRunning => ErrorKind::Failed,
            Exit::Usage => ErrorKind::Usage,
            Exit::Refused => ErrorKind::Refused,
            Exit::Busy => ErrorKind::Busy,
            Exit::Locked => ErrorKind::Locked,
            Exit::BadState => ErrorKind::BadState,
            Exit::TimedOut => ErrorKind::TimedOut,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<Stopped> for Error {
    fn from(_: Stopped) -> Self {
        Self::closed()
    }
}
