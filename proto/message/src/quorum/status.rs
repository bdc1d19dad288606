//! Where a member stands.

use alloc::vec::Vec;

use quiver_ainq::Handle;

use super::optional;
use crate::{MessageError, field, wire};

/// Handles, and serials, that a member may wish revoked at one time.
pub const MAX_WISHES: usize = 1024;

/// Where a member stands: said when a connection stands, after every change, and when asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuorumStatus {
    /// Of the shares in force; 0 without any.
    pub version: u32,
    /// H(public shares of both keys in force).
    pub keys: Option<[u8; 32]>,
    /// The newest revocation list held; 0 for none.
    pub list: u64,
    /// Whether the quorum's statement about its shares in force is held.
    pub statement: bool,
    /// The sender wants to hear the same of the receiver.
    pub asks: bool,
    /// Keys to be revoked; ascending, at most [`MAX_WISHES`].
    pub handles: Vec<Handle>,
    /// Drones to be revoked; ascending, at most [`MAX_WISHES`].
    pub serials: Vec<[u8; 16]>,
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
            handles: ascending("handles", &wire.handles, Handle)?,
            serials: ascending("serials", &wire.serials, |serial| serial)?,
        })
    }

    pub(super) fn to_wire(&self) -> wire::QuorumStatus {
        wire::QuorumStatus {
            version: self.version,
            keys: self.keys.map(|keys| keys.to_vec()).unwrap_or_default(),
            list: self.list,
            statement: self.statement,
            asks: self.asks,
            handles: self.handles.iter().map(|handle| handle.as_bytes().to_vec()).collect(),
            serials: self.serials.iter().map(|serial| serial.to_vec()).collect(),
        }
    }
}

fn ascending<T: Ord, const N: usize>(
    field: &'static str,
    items: &[Vec<u8>],
    of: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, MessageError> {
    if items.len() > MAX_WISHES {
        return Err(MessageError::Invalid(field));
    }
    let items = items.iter().map(|bytes| field::array(field, bytes).map(&of));
    let items = items.collect::<Result<Vec<_>, _>>()?;
    if items.is_sorted_by(|a, b| a < b) { Ok(items) } else { Err(MessageError::Invalid(field)) }
}
