//! Reasons why a frame is dropped.

use quiver_mavlink::Dropped;

/// Reason for which a frame, or bytes that are none, go no further. Metrics, status and flight logs name it by its
/// [label](Self::label).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FrameDrop {
    /// No valid key of the group is held by this end.
    NoKey,
    /// The leader granted the sender no system id.
    NoSystemId,
    /// A local program speaks as another system than the one granted to this end.
    OtherSystem,
    /// The frame is longer than a datagram can be.
    TooLong,
    /// The frame has to be signed, and this end cannot sign.
    NoSigner,
    /// The datagrams' machine does not take it.
    Refused,
    /// The drone that signed it is not the one that its slot belongs to.
    OtherSigner,
    /// The bytes, or those of a datagram's payload, are no frames of MAVLink.
    Malformed,
    /// A member sent the status of its own radio, which concerns nobody else.
    RadioStatus,
    /// A message that makes its receiver act came without a member's signature.
    UnsignedCommand,
    /// The program knows 8 bits of system ids alone, and the frame's has more.
    NarrowProgram,
    /// The program takes frames more slowly than they come.
    ProgramBehind,
    /// The endpoint has a key for MAVLink signing, and this machine's clock is not set.
    ClockNotSet,
    /// The endpoint's key for MAVLink signing does not prove the frame.
    BadLocalSignature,
    /// The bytes belong to no frame; counted once for each time that some come.
    NoFrame,
    /// The frame has flags that nobody has defined.
    UnknownFlags,
    /// The frame is of system 0, which no system may have.
    SystemZero,
    /// The link is closed.
    Closed,
    /// The check sum is wrong.
    Damaged,
    /// A filter keeps it out.
    Filtered,
    /// The frame came before.
    Duplicate,
    /// No endpoint is to receive it.
    NoReceiver,
}

impl FrameDrop {
    /// Name of the reason in metrics, status and flight logs.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::NoKey => "no key",
            Self::NoSystemId => "no system id",
            Self::OtherSystem => "other system",
            Self::TooLong => "too long",
            Self::NoSigner => "no signer",
            Self::Refused => "refused",
            Self::OtherSigner => "other signer",
            Self::Malformed => "malformed",
            Self::RadioStatus => "radio status",
            Self::UnsignedCommand => "unsigned command",
            Self::NarrowProgram => "8-bit program",
            Self::ProgramBehind => "program is behind",
            Self::ClockNotSet => "clock not set",
            Self::BadLocalSignature => "bad local signature",
            Self::NoFrame => "no frame",
            Self::UnknownFlags => "unknown flags",
            Self::SystemZero => "system 0",
            Self::Closed => "closed",
            Self::Damaged => "damaged",
            Self::Filtered => "filtered",
            Self::Duplicate => "duplicate",
            Self::NoReceiver => "no receiver",
        }
    }
}

impl From<Dropped> for FrameDrop {
    /// Reason why the router sends a frame nowhere.
    fn from(dropped: Dropped) -> Self {
        match dropped {
            Dropped::UnknownEndpoint => Self::Closed,
            Dropped::Damaged => Self::Damaged,
            Dropped::FilteredIn => Self::Filtered,
            Dropped::Duplicate => Self::Duplicate,
            Dropped::NoReceiver => Self::NoReceiver,
        }
    }
}
