//! Files of other programs: places of drones, telemetry logs, captures. Bytes and text alone: callers read and write
//! files.
//!
//! | module | format | in | out |
//! |---|---|---|---|
//! | [`movements`] | ns-2 movements, BonnMotion | yes | yes |
//! | [`tlog`] | telemetry logs of MAVLink ground stations | yes | yes |
//! | [`pcapng`] | captures: a station an interface; datagrams over UDP | | yes |

pub mod movements;
pub mod pcapng;
pub mod tlog;

/// Refusal of a file. Shown as `file:line: what` for text, and as `file: byte offset: what` for the rest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A line of a text.
    #[error("{file}:{line}: {what}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// Fault, with the word.
        what: String,
    },
    /// A place in bytes.
    #[error("{file}: byte {offset}: {what}")]
    Offset {
        /// The file.
        file: String,
        /// The offset, from 0.
        offset: usize,
        /// Fault.
        what: String,
    },
    /// The file as a whole.
    #[error("{file}: {what}")]
    Whole {
        /// The file.
        file: String,
        /// Fault.
        what: String,
    },
}
