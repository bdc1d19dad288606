//! Reason why bytes, an endpoint or a line of a configuration file are not used.

use alloc::string::String;

/// Reason of a refusal. It quotes no input from outside but the line of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MavlinkError {
    /// Bytes do not begin with a MAVLink start byte.
    #[error("not a MAVLink frame: it begins with neither 0xFE nor 0xFD")]
    NotAFrame,
    /// A frame is cut short.
    #[error("a MAVLink frame is cut short: {have} of {need} bytes")]
    Truncated {
        /// Bytes there are.
        have: usize,
        /// Bytes the header asks for.
        need: usize,
    },
    /// Bytes follow a frame that should stand alone.
    #[error("{0} bytes follow the MAVLink frame")]
    TrailingBytes(usize),
    /// A frame says that it can only be understood with features that nobody here knows.
    #[error("a MAVLink frame has unknown incompatibility flags: {0:#04x}")]
    UnknownFlags(u8),
    /// A frame comes from system 0, which no sender may use.
    #[error("a MAVLink frame comes from system 0")]
    NoSystemId,
    /// The payload of a datagram is not what [`FrameBatch`](crate::FrameBatch) writes.
    #[error("a datagram's payload is not a batch of MAVLink frames")]
    NotABatch,
    /// More bytes than a frame can carry.
    #[error("{len} bytes are more than the {max} that fit")]
    TooLong {
        /// Bytes given.
        len: usize,
        /// Bytes that fit.
        max: usize,
    },
    /// A frame that should be signed is not.
    #[error("a MAVLink frame is not signed")]
    Unsigned,
    /// A frame's signature was not made with the key.
    #[error("a MAVLink frame's signature is not of the local key")]
    WrongSignature,
    /// A frame's signature is old: it was received before, or its sender's clock is behind.
    #[error("a MAVLink frame's signature is too old")]
    OldSignature,
    /// The clock is not set, by which frames that were received before are told from new ones.
    #[error("the clock is not set: MAVLink frames are neither signed nor taken as signed until it is")]
    ClockNotSet,
    /// A key for signing is not 32 bytes.
    #[error(
        "a key for MAVLink signing has 32 bytes, written as 64 hexadecimal digits; this is something else"
    )]
    SigningKey,
    /// An endpoint is not written as one.
    #[error("`{given}` is not an endpoint: {reason}")]
    Endpoint {
        /// Text that was given.
        given: String,
        /// Fault of it, and a text to write instead.
        reason: String,
    },
    /// Two endpoints need the same port or device.
    #[error("`{first}` and `{second}` both need {what}: give each its own")]
    EndpointConflict {
        /// The one given first.
        first: String,
        /// The one given second.
        second: String,
        /// The port or device.
        what: String,
    },
    /// A line of a configuration file cannot be used.
    #[error("{path}:{line}: {place}: {reason}")]
    Config {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The section, or section and key.
        place: String,
        /// Fault, and a text to write instead.
        reason: String,
    },
    /// A system id is granted already.
    #[error("system id {id} is granted to `{holder}`: withdraw it there first, or choose another")]
    SystemIdTaken {
        /// The system id.
        id: u32,
        /// Drone that has it.
        holder: String,
    },
    /// A number that is no system id.
    #[error(
        "{0} is not a system id: they go from 1 to 255, and to 4294967295 for programs that know wide ones"
    )]
    SystemIdRange(u64),
    /// A text that is no system id.
    #[error(
        "`{0}` is not a system id: write a number from 1 to 255, or to 4294967295 for programs that know wide ones"
    )]
    SystemId(String),
    /// As many system ids are granted as a table holds.
    #[error("{0} system ids are granted, and a table holds no more: withdraw one first")]
    SystemIdsFull(usize),
    /// A name that no member can have.
    #[error("`{0}` is not a member's name: 1 to 64 of A-Z a-z 0-9 . _ -")]
    Name(String),
    /// Bytes are not an encoded table of system ids.
    #[error("not a table of system ids: {0}")]
    Table(&'static str),
}
