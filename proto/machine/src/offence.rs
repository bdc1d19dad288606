//! Offences of peers: messages that fail a check.

use alloc::string::{String, ToString};
use core::fmt::Display;

use quiver_ainq::{Error as AinqError, Suite};
use quiver_message::{Message, MessageError};

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
    /// A message of a feature fails one of the feature's checks. Its errors are text here, because the contract must not
    /// depend on what can be removed.
    #[error("{text}")]
    Feature {
        /// Name of the feature, a constant of its crate.
        feature: &'static str,
        /// Description of the error, as the feature's own type displays it.
        text: String,
    },
    /// Two signed headers exist for one epoch: proof against the leader.
    #[error("the leader signed two headers for one epoch")]
    Equivocation,
    /// Something of a leader that is refused because it contradicted itself.
    #[error("the leader is refused: it signed two headers for one epoch")]
    RefusedLeader,
}

impl Offence {
    /// Offence of a message that a role does not take. A message of a feature that the machine does not have is one of no
    /// known kind to it, which is no reason to disconnect its sender (docs/protocol.md §13.8).
    #[must_use]
    pub const fn out_of_place<S: Suite>(message: &Message<S>, what: &'static str) -> Self {
        match message {
            Message::Extension(_) => Self::Message(MessageError::NoBody),
            _ => Self::OutOfPlace(what),
        }
    }

    /// Offence of this feature.
    #[must_use]
    pub fn of_feature(feature: &'static str, error: &impl Display) -> Self {
        Self::Feature { feature, text: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offence_of_a_feature_reads_as_its_error_and_is_told_from_anothers() {
        let offence = Offence::of_feature("tides", &AinqError::Stale);
        assert_eq!(offence.to_string(), AinqError::Stale.to_string());
        assert_eq!(offence, Offence::of_feature("tides", &AinqError::Stale));
        assert_ne!(offence, Offence::of_feature("winds", &AinqError::Stale));
        assert_ne!(offence, Offence::Protocol(AinqError::Stale));
    }
}
