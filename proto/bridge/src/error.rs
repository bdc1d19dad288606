//! Errors of a bridge's settings and of opening it, in words that say what to write instead.

use std::io;

use quiver_mavlink::MavlinkError;

/// An error of a bridge.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// An endpoint or a file's line is wrong.
    #[error(transparent)]
    Mavlink(#[from] MavlinkError),
    /// A carrier is not written as one.
    #[error("`{given}` is not a carrier: {reason}")]
    Carrier {
        /// Text that was given.
        given: String,
        /// Fault of it, and a text to write instead.
        reason: String,
    },
    /// A serial endpoint or carrier at a path where there is no device.
    #[error("`{given}`: {reason}")]
    NotALine {
        /// Text that was given.
        given: String,
        /// Kind of file that is there.
        reason: String,
    },
    /// Endpoints without a carrier, or the other way round.
    #[error("{0}")]
    Incomplete(&'static str),
    /// Two carriers, or a carrier and an endpoint, need the same port or device.
    #[error("`{first}` and `{second}` both need {what}: give each its own")]
    Conflict {
        /// The one given first.
        first: String,
        /// The one given second.
        second: String,
        /// The port or device.
        what: String,
    },
    /// One endpoint or carrier sends to another of the same process.
    #[error(
        "`{sender}` sends to `{listener}` of this process, to which everything would come back: write the other end's address"
    )]
    Loop {
        /// The endpoint or carrier that sends.
        sender: String,
        /// The one that listens.
        listener: String,
    },
    /// The system has no room for an endpoint or a carrier.
    #[error("{place}: {source}{}", advice(.source))]
    Open {
        /// The endpoint or carrier.
        place: String,
        /// The reason given.
        source: io::Error,
    },
    /// A file with a key for MAVLink signing cannot be used.
    #[error("{path}: {reason}")]
    SigningKey {
        /// The file.
        path: String,
        /// Fault of it.
        reason: String,
    },
}

impl BridgeError {
    /// Returns true if an address is taken by another program.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::Open { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => ": another program listens there; end it, or choose another port",
        io::ErrorKind::AddrNotAvailable => {
            ": this machine has no such address; write one of its own, or 0.0.0.0"
        }
        io::ErrorKind::PermissionDenied => ": choose a port above 1023",
        _ => "",
    }
}
