//! Revocation lists, which everyone carries.

use alloc::vec::Vec;

use crate::message::MAX_MESSAGE_LEN;
use crate::{MessageError, field, wire};

/// "Send your revocation list if it is newer than mine."
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationQuery {
    /// The number of the list held, 0 for none.
    pub number: u64,
    /// Maximum length in bytes of a list that the asker takes: a longer one comes without its edges. 0 if it
    /// takes whole lists only.
    pub max_len: u32,
}

/// A signed revocation list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationList {
    /// An encoded [`quiver_ainq::SignedRevocationList`], unverified.
    pub list: Vec<u8>,
}

impl RevocationQuery {
    pub(crate) fn from_wire(wire: wire::RevocationQuery) -> Result<Self, MessageError> {
        Ok(Self { number: wire.number, max_len: wire.max_len })
    }

    pub(crate) fn to_wire(&self) -> wire::RevocationQuery {
        wire::RevocationQuery { number: self.number, max_len: self.max_len }
    }
}

impl RevocationList {
    pub(crate) fn from_wire(wire: wire::RevocationList) -> Result<Self, MessageError> {
        Ok(Self { list: field::bounded("list", wire.list, MAX_MESSAGE_LEN)? })
    }

    pub(crate) fn to_wire(&self) -> wire::RevocationList {
        wire::RevocationList { list: self.list.clone() }
    }
}
