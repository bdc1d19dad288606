//! What happens to a drone, and whom its node tells: the board of this process, or that of the run it works for.

use std::fmt::Display;

use quiver_ainq::Epoch;
use quiver_crypto::Secret;
use serde::{Deserialize, Serialize};

/// What happened to a drone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Happening {
    /// It has a key of its own.
    Enrolled,
    /// It has the group's key of an epoch.
    Key {
        /// The epoch's term.
        term: u64,
        /// Its number in the term.
        counter: u64,
        /// What the drone exported of the key; nothing if it had nothing to export although it reported the epoch.
        key: Option<Exported>,
    },
    /// It heard the message of this number.
    Heard(u32),
    /// It heard or opened what nobody of this run sent.
    UnknownMessage,
    /// It opened the sealed order of this number.
    Opened(u32),
    /// A sealed order is not for it.
    Unfit,
    /// It has the order for the second phase.
    Order(Vec<u8>),
    /// It is a member without a name, under this pseudonym.
    Admitted([u8; 16]),
    /// It does not satisfy what is demanded.
    Unsatisfied,
    /// It left.
    Left,
    /// It was put out of the group.
    Evicted,
    /// It was refused.
    Refused,
}

impl Happening {
    /// It has the key of this epoch.
    pub(crate) fn key(epoch: Epoch, key: Option<Secret<32>>) -> Self {
        Self::Key { term: epoch.term, counter: epoch.counter, key: key.map(Exported) }
    }
}

/// A secret that a drone derived from the group's key, for comparison. Written as 64 hexadecimal digits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Exported(pub(crate) Secret<32>);

impl From<Exported> for String {
    fn from(exported: Exported) -> Self {
        hex::encode(exported.0.expose())
    }
}

impl TryFrom<String> for Exported {
    type Error = hex::FromHexError;

    fn try_from(text: String) -> Result<Self, hex::FromHexError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(Self(Secret::new(bytes)))
    }
}

/// Whom drones tell what happens to them.
pub(crate) trait Reports: Send + Sync {
    /// Something happened to a drone, now.
    fn happened(&self, drone: u32, what: Happening);
    /// Somebody blamed somebody. In a world without faults nobody should.
    fn offence(&self, who: &str, offence: &dyn Display);
}
