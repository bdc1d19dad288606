//! Offences of peers: messages that fail a check.

use quiver_ainq::Error as AinqError;
use quiver_message::MessageError;

/// Offence of a peer. The machine's state is as it was before the message came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Offence {
    /// The bytes are no message.
    #[error("{0}")]
    Message(#[from] MessageError),
    /// The message does not hold cryptographically, or breaks the protocol's rules.
    #[error("{0}")]
    Protocol(#[from] AinqError),
    /// A cookie or challenge that this service did not give to this peer, or too long ago.
    #[error("cookie or challenge is not ours or too old")]
    Cookie,
    /// A message that this role does not take, or not now.
    #[error("message `{0}` is out of place")]
    OutOfPlace(&'static str),
    /// A MAC between member and leader does not verify.
    #[error("message authentication code of `{0}` does not verify")]
    Mac(&'static str),
    /// An envelope that no honest sender made.
    #[cfg(feature = "envelopes")]
    #[error("{0}")]
    Envelope(quiver_abe::envelope::EnvelopeError),
    /// A quorum member's message fails a check.
    #[cfg(feature = "quorum")]
    #[error("{0}")]
    Quorum(#[from] quiver_quorum::Error),
    /// Two signed headers exist for one epoch: proof against the leader.
    #[error("the leader signed two headers for one epoch")]
    Equivocation,
    /// Something of a leader that is refused because it contradicted itself.
    #[error("the leader is refused: it signed two headers for one epoch")]
    RefusedLeader,
}
