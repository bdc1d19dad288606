//! Events of envelopes.

use alloc::vec::Vec;

use quiver_ainq::{Name, Role, UnixTime};
use zeroize::Zeroizing;

/// Signer of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// Name of the signer.
    pub name: Name,
    /// Role of the signer.
    pub role: Role,
}

/// Events of envelopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeEvent {
    /// One opened, whole and verified.
    Opened {
        /// Names its session.
        session: [u8; 32],
        /// Number of the message in the session, from 0.
        number: u32,
        /// Time at which the session began, in seconds since 1970, by its sender's clock: the message is not
        /// older.
        begun: UnixTime,
        /// The plaintext.
        data: Zeroizing<Vec<u8>>,
        /// Signer of the message; `None` if it is unsigned, so that nothing is known of its source.
        author: Option<Author>,
    },
    /// One is for others: no key of this drone fits. Reported once per session.
    NotSatisfied {
        /// Names its session.
        session: [u8; 32],
    },
    /// The policy or the attributes of one are more than this drone's limits allow. Reported once per
    /// session.
    TooLarge {
        /// Names its session.
        session: [u8; 32],
    },
    /// One was sealed and sent to the group.
    Sent {
        /// Names its session.
        session: [u8; 32],
        /// Number of the message in the session, from 0.
        number: u32,
    },
    /// One was not sealed or not sent: why.
    NotSent(&'static str),
}
