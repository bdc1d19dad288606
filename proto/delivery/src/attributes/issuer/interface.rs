//! Configuration, commands, records and events of the issuer of attribute keys.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Name, SecretScalar, Suite, UnixTime, VerifiedAuthority};
use quiver_machine::{Offence, Peer};
use quiver_message::RefusalReason;

use crate::attributes::{Grant, KeyMaker, MakeError};

/// An authority and its secrets.
#[derive(Debug)]
pub struct IssuingAuthority<S: Suite> {
    /// The KGC's statement about it.
    pub statement: VerifiedAuthority<S>,
    /// The secret a of its delivery point.
    pub delivery: SecretScalar<S>,
    /// Master key of the authority's scheme, at work.
    pub maker: Box<dyn KeyMaker>,
}

/// Configuration of an issuer.
#[derive(Debug)]
pub struct IssuerConfig<S: Suite> {
    /// The authorities; at most [`MAX_AUTHORITIES`](quiver_message::MAX_AUTHORITIES).
    pub authorities: Vec<IssuingAuthority<S>>,
    /// Grants, at least the newest of every drone: an issuer that learnt of one only later would refuse
    /// drones in between, or make keys for withdrawn grants.
    pub grants: Vec<Grant>,
    /// Time that a drone waits for its next key of one authority.
    pub interval: Duration,
}

/// Reason why an issuer cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssuerError {
    /// More authorities than a challenge can name.
    #[error("more than 16 attribute authorities")]
    TooMany,
    /// One authority given twice.
    #[error("an attribute authority is there twice")]
    Twice,
    /// The delivery secret is not that of the statement, or the statement is of another kind.
    #[error("the stored keys of attribute authority {0} are not those of its statement")]
    WrongKey(Name),
}

/// Commands of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssuerCommand {
    /// Grant or withdraw. The caller has made it durable; the same one may come again.
    Grant(Grant),
}

/// A key was issued: to be made durable, and audited, before the key leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyIssued {
    /// Fingerprint of the authority's statement.
    pub authority: [u8; 32],
    /// The drone's serial.
    pub serial: [u8; 16],
    /// Handle of the drone's public key.
    pub handle: [u8; 32],
    /// The drone's name.
    pub name: Name,
    /// The grant's revision.
    pub revision: u64,
    /// Time of issue.
    pub at: UnixTime,
}

/// Events of an issuer.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::From)]
#[non_exhaustive]
pub enum IssuerEvent {
    /// A key was issued.
    Issued {
        /// The authority.
        authority: Name,
        /// The drone.
        name: Name,
        /// Revision of its grant.
        revision: u64,
    },
    /// A drone asked that holds the key of the grant in force.
    HeldAlready {
        /// The authority.
        authority: Name,
        /// The drone.
        name: Name,
        /// The revision.
        revision: u64,
    },
    /// A drone asked whose grant is withdrawn.
    Withdrawn {
        /// The authority.
        authority: Name,
        /// The drone.
        name: Name,
    },
    /// A leader without a grant asked, and got the public data of this period.
    Published {
        /// The authority.
        authority: Name,
        /// The leader.
        name: Name,
    },
    /// A drone asked to which nothing was ever granted.
    NothingGranted {
        /// The authority.
        authority: Name,
        /// The drone.
        name: Name,
    },
    /// A grant for which no key can be made.
    NotMade {
        /// The authority.
        authority: Name,
        /// The drone.
        name: Name,
        /// Error of the scheme.
        error: MakeError,
    },
    /// A request was refused.
    #[from]
    Refused {
        /// The peer that asked.
        peer: Peer,
        /// Reason.
        reason: RefusalReason,
    },
    /// A peer did something wrong, and the server is no KGC's, which would blame it.
    #[from]
    Blamed {
        /// The peer.
        peer: Peer,
        /// The offence.
        offence: Offence,
    },
}
