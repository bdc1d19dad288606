//! Refusals of a service.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use quiver_kem::KemSet;

use crate::{MessageError, wire};

/// Reason why a service refuses. Never authenticated: it sets the pace of a receiver's retries and, as
/// [`Rejoin`](Self::Rejoin) in answer to a member's own question, makes it give up its membership and join
/// anew. It ends no enrolment and costs no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the Display text of each variant says it")]
pub enum RefusalReason {
    BadCookie,
    TokenExpired,
    TokenReused,
    TokenRevoked,
    TokenForeign,
    NameTaken,
    Malformed,
    Busy,
    NotAuthorised,
    Revoked,
    Evicted,
    Expired,
    Rejoin,
    Full,
    NotReady,
    WrongGroup,
    BadSignature,
    UnknownAuthority,
    RoundOver,
    AdmissionOnly,
    TokenSpent,
    OrdinalTaken,
    KemNone,
    Kem768,
    Kem1024,
    KemLost,
}

/// The reasons beside their numbers on the wire: one list for both directions.
const REASONS: &[(RefusalReason, wire::refusal::Reason)] = &[
    (RefusalReason::BadCookie, wire::refusal::Reason::BadCookie),
    (RefusalReason::TokenExpired, wire::refusal::Reason::TokenExpired),
    (RefusalReason::TokenReused, wire::refusal::Reason::TokenReused),
    (RefusalReason::TokenRevoked, wire::refusal::Reason::TokenRevoked),
    (RefusalReason::TokenForeign, wire::refusal::Reason::TokenForeign),
    (RefusalReason::NameTaken, wire::refusal::Reason::NameTaken),
    (RefusalReason::Malformed, wire::refusal::Reason::Malformed),
    (RefusalReason::Busy, wire::refusal::Reason::Busy),
    (RefusalReason::NotAuthorised, wire::refusal::Reason::NotAuthorised),
    (RefusalReason::Revoked, wire::refusal::Reason::Revoked),
    (RefusalReason::Evicted, wire::refusal::Reason::Evicted),
    (RefusalReason::Expired, wire::refusal::Reason::Expired),
    (RefusalReason::Rejoin, wire::refusal::Reason::Rejoin),
    (RefusalReason::Full, wire::refusal::Reason::Full),
    (RefusalReason::NotReady, wire::refusal::Reason::NotReady),
    (RefusalReason::WrongGroup, wire::refusal::Reason::WrongGroup),
    (RefusalReason::BadSignature, wire::refusal::Reason::BadSignature),
    (RefusalReason::UnknownAuthority, wire::refusal::Reason::UnknownAuthority),
    (RefusalReason::RoundOver, wire::refusal::Reason::RoundOver),
    (RefusalReason::AdmissionOnly, wire::refusal::Reason::AdmissionOnly),
    (RefusalReason::TokenSpent, wire::refusal::Reason::TokenSpent),
    (RefusalReason::OrdinalTaken, wire::refusal::Reason::OrdinalTaken),
    (RefusalReason::KemNone, wire::refusal::Reason::KemNone),
    (RefusalReason::Kem768, wire::refusal::Reason::Kem768),
    (RefusalReason::Kem1024, wire::refusal::Reason::Kem1024),
    (RefusalReason::KemLost, wire::refusal::Reason::KemLost),
];

impl RefusalReason {
    /// The reason by which a leader with this parameter set, or none, refuses drones of another.
    #[must_use]
    pub const fn other_kem(own: Option<KemSet>) -> Self {
        match own {
            None => Self::KemNone,
            Some(KemSet::MlKem768) => Self::Kem768,
            Some(KemSet::MlKem1024) => Self::Kem1024,
        }
    }

    /// Each of them, once.
    pub fn all() -> impl Iterator<Item = Self> {
        REASONS.iter().map(|(reason, _)| *reason)
    }

    /// Returns true if trying the same thing again may work later.
    pub fn is_transient(self) -> bool {
        if self == Self::KemLost {
            return true;
        }
        matches!(
            self,
            Self::BadCookie | Self::Busy | Self::NotReady | Self::Rejoin | Self::Full | Self::RoundOver
        )
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadCookie => "the cookie is unknown or too old",
            Self::TokenExpired => "the enrolment token has expired",
            Self::TokenReused => "the enrolment token was already used with another key",
            Self::TokenRevoked => "the enrolment token was revoked",
            Self::TokenForeign => "the enrolment token was not signed by an operator of this deployment",
            Self::NameTaken => "another drone holds this name",
            Self::Malformed => "the request was malformed",
            Self::Busy => "too busy",
            Self::NotAuthorised => "not authorised for this group",
            Self::Revoked => "revoked by the KGC",
            Self::Evicted => "evicted from the group",
            Self::Expired => "the identity has expired",
            Self::Rejoin => "out of date beyond catching up; join again",
            Self::Full => "the group is full",
            Self::NotReady => "not serving the group yet",
            Self::WrongGroup => "this leader serves another group",
            Self::BadSignature => "a signature does not verify",
            Self::UnknownAuthority => "no such authority here",
            Self::RoundOver => "no such signing round is open any more",
            Self::AdmissionOnly => "this group admits by policy only; use `edge run --anonymous`",
            Self::TokenSpent => "the enrolment token is used up: revoke it and issue another",
            Self::KemNone => "the leader's deployment says `kem = \"none\"`, and the drone's another",
            Self::Kem768 => "the leader's deployment says `kem = \"ml-kem-768\"`, and the drone's another",
            Self::Kem1024 => "the leader's deployment says `kem = \"ml-kem-1024\"`, and the drone's another",
            Self::KemLost => "the leader does not have the post-quantum key that was named",
            Self::OrdinalTaken => "another leader of the group has this ordinal: issue a token with another",
        })
    }
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Reason.
    pub reason: RefusalReason,
    /// The nonce, digest or number of the request refused; at most 32 bytes.
    pub reference: Vec<u8>,
    /// Time to wait before trying again.
    pub retry_after: Duration,
}

impl Refusal {
    pub(crate) fn from_wire(wire: wire::Refusal) -> Result<Self, MessageError> {
        let reason = REASONS.iter().find(|(_, number)| *number as i32 == wire.reason);
        if wire.reference.len() > 32 {
            return Err(MessageError::Invalid("reference"));
        }
        Ok(Self {
            reason: reason.map(|(reason, _)| *reason).ok_or(MessageError::Invalid("reason"))?,
            reference: wire.reference,
            retry_after: Duration::from_millis(wire.retry_after_ms.into()),
        })
    }

    pub(crate) fn to_wire(&self) -> wire::Refusal {
        let number = REASONS.iter().find(|(reason, _)| *reason == self.reason).map_or(0, |(_, n)| *n as i32);
        wire::Refusal {
            reason: number,
            reference: self.reference.clone(),
            retry_after_ms: u32::try_from(self.retry_after.as_millis()).unwrap_or(u32::MAX),
        }
    }
}
