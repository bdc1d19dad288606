//! Configuration, commands, records and events of the releaser of key shares.

use alloc::vec::Vec;

use quiver_ainq::{KgcId, Name, Suite, UnixTime};
use quiver_ibe::{Condition, MasterShare};
use quiver_machine::{Offence, Peer, Rate};
use quiver_message::RefusalReason;

use crate::{Approval, ReleaseAuthority, ReleasePolicy};

/// A KGC's share of a master key, with the public statement about the key.
#[derive(Debug)]
pub struct Holding<S: Suite> {
    pub(super) authority: ReleaseAuthority<S>,
    pub(super) share: MasterShare,
}

impl<S: Suite> Holding<S> {
    /// Puts the two together.
    ///
    /// # Errors
    /// [`HoldingError`] if the share is not the one that the statement has for its index.
    pub fn new(authority: ReleaseAuthority<S>, share: MasterShare) -> Result<Self, HoldingError> {
        // §4.3: checked once, here, so that a KGC with a share of another key releases nothing.
        authority.publics().check(&share).map_err(|_| HoldingError { kgc: share.index() })?;
        Ok(Self { authority, share })
    }

    /// The KGC that holds it.
    #[must_use]
    pub const fn kgc(&self) -> KgcId {
        self.share.index()
    }

    /// The public statement.
    #[must_use]
    pub const fn authority(&self) -> &ReleaseAuthority<S> {
        &self.authority
    }
}

/// A share is not the one of its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored share of KGC {kgc} is not the one that the signed statement names")]
pub struct HoldingError {
    /// The index that the share has.
    pub kgc: KgcId,
}

/// Configuration of a releaser.
#[derive(Debug)]
pub struct ReleaseConfig<S: Suite> {
    /// The share; `None` before there is a master key.
    pub holding: Option<Holding<S>>,
    /// The newest policy of every pattern. Without any, nothing is released.
    pub policies: Vec<ReleasePolicy>,
    /// The newest decision about every mission's points.
    pub approvals: Vec<Approval>,
    /// Number of shares that a drone gets at once, and time until one more.
    pub rate: Rate,
}

/// Commands of the operator. The caller has made it durable; the same may come again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseCommand {
    /// A policy for a pattern.
    Policy(ReleasePolicy),
    /// A decision whether a mission has come to a point.
    Approval(Approval),
}

/// A share was released: to be made durable, and audited, before it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareReleased {
    /// The condition.
    pub condition: Condition,
    /// Fingerprint of the master public key.
    pub master: [u8; 32],
    /// The drone's serial.
    pub serial: [u8; 16],
    /// Handle of the drone's public key.
    pub handle: [u8; 32],
    /// The drone's name.
    pub name: Name,
    /// Time of release.
    pub at: UnixTime,
}

/// Events of a releaser.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::From)]
#[non_exhaustive]
pub enum ReleaseEvent {
    /// A share was released.
    Released {
        /// The condition.
        condition: Condition,
        /// The drone.
        name: Name,
    },
    /// A drone asked for a key whose condition is not met, or that it may not have.
    Denied {
        /// The condition.
        condition: Condition,
        /// The drone.
        name: Name,
        /// Reason, in words.
        why: &'static str,
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
