//! Errors of datagrams and messages.

/// An error of a datagram or message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A datagram does not fit its medium.
    #[error("datagram of {len} bytes is longer than the {max} that the medium takes")]
    DatagramTooLong {
        /// The length in bytes.
        len: usize,
        /// The longest in bytes.
        max: usize,
    },
    /// A message is longer than the other side takes.
    #[error("message of {len} bytes is longer than the {max} that the other side takes")]
    MessageTooLong {
        /// The encoded length in bytes.
        len: usize,
        /// The longest in bytes.
        max: usize,
    },
    /// There is no session with the other side.
    #[error("the other side has not answered yet")]
    NoSession,
    /// Bytes are no message of this version.
    #[error("not a message of this version")]
    MalformedMessage,
    /// Bytes are no datagram of this version.
    #[error("not a datagram of this version")]
    MalformedDatagram,
    /// Bytes are no data frame with short addresses within one network.
    #[error("not a data frame of IEEE 802.15.4 with short addresses within one network")]
    MalformedRadioFrame,
    /// Pieces that are no part of an erasure code: too many, too few, twice, of unequal or no length.
    #[error("not the pieces of one coded message")]
    InvalidCode,
    /// Parameters of repetition: an interval too short or too long, or none who repeats.
    #[error("not an interval from a millisecond to a day with at least one repetition")]
    InvalidTrickle,
    /// A group's name has no or too many bytes, or others than letters, digits, `.`, `_` and `-`.
    #[error("not a group's name")]
    InvalidGroup,
}
