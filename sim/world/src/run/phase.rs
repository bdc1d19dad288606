//! The phases of a run, in the live world and in the virtual one.

use serde::{Serialize, Serializer};

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{}", self.name())]
pub enum Phase {
    /// KGCs make their keys together.
    KeyGeneration,
    /// Drones enrol with the KGCs.
    Enrol,
    /// Drones connect to the leader.
    Connect,
    /// The first drones join.
    Form,
    /// The leader is told to re-key.
    Rekey,
    /// The group key expires, and the leader re-keys by itself.
    Expiry,
    /// Some drones leave.
    Leave,
    /// More drones join.
    Join,
    /// Members and leader send messages.
    Messages,
    /// Vehicles and a ground station exchange MAVLink in the group's datagrams.
    Mavlink,
    /// The leader evicts a drone.
    Evict,
    /// The leader seals envelopes to drones with certain attributes.
    Envelope,
    /// The leader hands on an order that is sealed to a condition.
    Order,
    /// Drones ask for the condition's key before enough operators have approved.
    EarlyRequest,
    /// Enough operators approve, and drones open the order.
    Release,
    /// All anonymous members leave.
    LeaveAll,
    /// All drones join again, under other pseudonyms.
    ComeAgain,
    /// Credentials of the next period replace those that end.
    NextPeriod,
    /// The leader is killed and rebuilt from its records.
    RestartLeader,
    /// The leader is lost for good, and a deputy takes over.
    LoseLeader,
}

impl Phase {
    /// Name of the phase in tables, CSV and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KeyGeneration => "key generation",
            Self::Enrol => "enrol",
            Self::Connect => "connect",
            Self::Form => "form group",
            Self::Rekey => "re-key",
            Self::Expiry => "re-key on expiry",
            Self::Leave => "leave",
            Self::Join => "join",
            Self::Messages => "messages",
            Self::Mavlink => "MAVLink",
            Self::Evict => "evict",
            Self::Envelope => "envelope",
            Self::Order => "order sealed to phase 2",
            Self::EarlyRequest => "phase 2 requested early",
            Self::Release => "phase 2 released",
            Self::LeaveAll => "all leave",
            Self::ComeAgain => "come again",
            Self::NextPeriod => "next period",
            Self::RestartLeader => "restart leader",
            Self::LoseLeader => "leader lost",
        }
    }
}

impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
