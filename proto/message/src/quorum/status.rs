//! Status of a quorum member.

use alloc::vec::Vec;

use quiver_ainq::Revoked;

use super::optional;
use crate::{MessageError, field, wire};

/// Greatest number of drones that a member may propose to revoke at one time.
pub const MAX_PROPOSED: usize = 1024;

/// Status of a member: sent when a connection is up, after every change, and on request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuorumStatus {
    /// Version of the shares in force; 0 without any.
    pub version: u32,
    /// H(public shares of both keys in force).
    pub keys: Option<[u8; 32]>,
    /// The newest revocation list held; 0 for none.
    pub list: u64,
    /// True if the quorum's statement about its shares in force is held.
    pub statement: bool,
    /// True if the sender asks for the receiver's status.
    pub asks: bool,
    /// Drones to be revoked; their serials ascend, at most [`MAX_PROPOSED`].
    pub proposed: Vec<Revoked>,
}

impl QuorumStatus {
    pub(super) fn from_wire(wire: &wire::QuorumStatus) -> Result<Self, MessageError> {
        let keys = optional("keys", &wire.keys)?;
        if keys.is_none() && wire.version > 0 {
            return Err(MessageError::Invalid("version"));
        }
        Ok(Self {
            version: wire.version,
            keys,
            list: wire.list,
            statement: wire.statement,
            asks: wire.asks,
            proposed: proposed(&wire.proposed)?,
        })
    }

    pub(super) fn to_wire(&self) -> wire::QuorumStatus {
        wire::QuorumStatus {
            version: self.version,
            keys: self.keys.map(|keys| keys.to_vec()).unwrap_or_default(),
            list: self.list,
            statement: self.statement,
            asks: self.asks,
            proposed: self.proposed.iter().map(proposal).collect(),
        }
    }
}

fn proposed(wire: &[wire::ProposedRevocation]) -> Result<Vec<Revoked>, MessageError> {
    if wire.len() > MAX_PROPOSED {
        return Err(MessageError::Invalid("proposed"));
    }
    let proposal = |proposal: &wire::ProposedRevocation| {
        let serial = field::array("proposed", &proposal.serial)?;
        Ok(Revoked { serial, not_after: proposal.not_after, leader: proposal.leader })
    };
    let proposed = wire.iter().map(proposal).collect::<Result<Vec<_>, MessageError>>()?;
    let ascending = proposed.is_sorted_by(|a, b| a.serial < b.serial);
    if ascending { Ok(proposed) } else { Err(MessageError::Invalid("proposed")) }
}

fn proposal(proposal: &Revoked) -> wire::ProposedRevocation {
    wire::ProposedRevocation {
        serial: proposal.serial.to_vec(),
        not_after: proposal.not_after,
        leader: proposal.leader,
    }
}
