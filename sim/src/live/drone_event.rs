//! Events of a drone, and the sink to which its node reports them: the event log here, or that of the run
//! elsewhere.

use std::fmt::Display;

use quiver_ainq::Epoch;
use quiver_crypto::Secret;
use serde::{Deserialize, Serialize};

/// An event of a drone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum DroneEvent {
    /// The drone has enrolled.
    Enrolled,
    /// The drone has the group key of an epoch.
    Key {
        /// The epoch's term.
        term: u64,
        /// Number of the epoch in the term.
        counter: u64,
        /// The secret that the drone exported; nothing if it had none to export although it reported the
        /// epoch.
        key: Option<Exported>,
    },
    /// The drone received the message of this number.
    MessageReceived(u32),
    /// The drone received or opened a message that no node of this run sent.
    UnknownMessage,
    /// The drone opened the envelope of this number.
    EnvelopeOpened(u32),
    /// The drone's attributes do not satisfy the policy of an envelope.
    EnvelopeNotSatisfied,
    /// The drone received the order for the second phase.
    OrderReceived(Vec<u8>),
    /// The drone opened that order, and read this.
    OrderRead(Vec<u8>),
    /// The drone is an anonymous member under this pseudonym.
    Admitted([u8; 16]),
    /// The drone does not satisfy the policy of the leader.
    PolicyNotSatisfied,
    /// The drone left.
    Left,
    /// The drone was evicted from the group.
    Evicted,
    /// The drone was refused.
    Refused,
}

impl DroneEvent {
    /// The event of a new key.
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

/// Receives the events of drones.
pub(crate) trait EventSink: Send + Sync {
    /// Records an event of a drone, now.
    fn record_event(&self, drone: u32, what: DroneEvent);
    /// The order for the second phase that a drone reported last.
    fn order_of(&self, drone: u32) -> Option<Vec<u8>>;
    /// Records that a node blamed a peer. In a world without faults none should.
    fn offence(&self, who: &str, offence: &dyn Display);
}
