//! Configuration, commands, records and events of the issuer of attribute keys.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Name, SecretScalar, Suite, UnixTime, VerifiedAuthority};
use quiver_machine::{Offence, Peer};
use quiver_message::Reason;

use crate::attributes::{Grant, KeyMaker, MakeError};

/// One authority and its secrets.
#[derive(Debug)]
pub struct Authority<S: Suite> {
    /// What the KGC says about it.
    pub statement: VerifiedAuthority<S>,
    /// The secret a of its delivery point.
    pub delivery: SecretScalar<S>,
    /// Its scheme's master key, at work.
    pub maker: Box<dyn KeyMaker>,
}

/// What an issuer is set up with.
#[derive(Debug)]
pub struct IssuerConfig<S: Suite> {
    /// The authorities; at most [`MAX_AUTHORITIES`](quiver_message::MAX_AUTHORITIES).
    pub authorities: Vec<Authority<S>>,
    /// What is granted, at least the newest word on every drone: an issuer that learnt of it only later would tell drones in
    /// between that it knows of no grant, or make keys for grants that were withdrawn since.
    pub grants: Vec<Grant>,
    /// How long a drone waits for its next key of one authority.
    pub interval: Duration,
}

/// Why an issuer cannot be set up.
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

/// What the operator asks of an issuer.
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
    /// When.
    pub at: UnixTime,
}

/// What an issuer reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IssuerEvent {
    /// A key was issued.
    Issued {
        /// By which authority.
        authority: Name,
        /// To whom.
        name: Name,
        /// For which revision of its grant.
        revision: u64,
    },
    /// A drone asked that holds the key of the grant in force.
    HeldAlready {
        /// Which authority.
        authority: Name,
        /// Who.
        name: Name,
        /// The revision.
        revision: u64,
    },
    /// A drone asked whose grant is withdrawn.
    Withdrawn {
        /// Which authority.
        authority: Name,
        /// Who.
        name: Name,
    },
    /// A leader to which nothing is granted asked, and was told what is public of this period.
    Published {
        /// By which authority.
        authority: Name,
        /// To whom.
        name: Name,
    },
    /// A drone asked to which nothing was ever granted.
    NothingGranted {
        /// Which authority.
        authority: Name,
        /// Who.
        name: Name,
    },
    /// A grant for which no key can be made.
    NotMade {
        /// Which authority.
        authority: Name,
        /// Who asked.
        name: Name,
        /// Why.
        error: MakeError,
    },
    /// A request was refused.
    Refused {
        /// Who asked.
        peer: Peer,
        /// Why.
        reason: Reason,
    },
    /// A peer did something wrong, and the server is no KGC's, which would blame it.
    Blamed {
        /// Who.
        peer: Peer,
        /// What.
        offence: Offence,
    },
}

impl From<(Peer, Reason)> for IssuerEvent {
    fn from((peer, reason): (Peer, Reason)) -> Self {
        Self::Refused { peer, reason }
    }
}

impl From<(Peer, Offence)> for IssuerEvent {
    fn from((peer, offence): (Peer, Offence)) -> Self {
        Self::Blamed { peer, offence }
    }
}
