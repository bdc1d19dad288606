//! Joins MAVLink programs on this machine to a group's datagrams, and carries those over UDP and radios.
//!
//! An autopilot or a ground station is connected to an *endpoint* and sees plain MAVLink. Its frames leave
//! this machine only as datagrams of the group (docs/protocol.md, section 20), over one or several
//! *carriers*. Without a valid key of the group nothing passes, in either direction.
//!
//! | module | what it has |
//! |---|---|
//! | `settings` | which endpoints and carriers: from flags, or from a file in mavlink-router's format |
//! | `endpoint` | UDP, TCP and serial lines with MAVLink programs behind them |
//! | `carrier` | UDP (unicast, multicast, broadcast), serial radios, the star through the leader, memory |
//! | `bridge` | the task between them |
//! | `group_inputs` | channels by which the task learns of the group: keys of the epoch, why there is none, system ids |
//! | `flight_log` | what passed and what was dropped, in files |
//! | `report` | what became of frames and datagrams: status and metrics |

mod bridge;
mod carrier;
mod endpoint;
mod error;
mod flight_log;
mod frame_drop;
mod group_inputs;
mod pause;
mod report;
mod settings;
#[cfg(test)]
mod uart;

pub use bridge::Bridge;
pub use carrier::{Carrier, MemoryCarrier, memory};
pub use error::BridgeError;
pub use flight_log::{FlightLogSettings, FlightLogStatus};
pub use group_inputs::{
    BridgeInputs, EpochKeySender, FORGERIES_CHANNEL, GroupServices, GroupStateSender, MissingKeyReason,
    SYSTEM_IDS_CHANNEL, SYSTEM_IDS_REQUEST_CHANNEL, bridge_channels,
};
pub use report::{BridgeReport, BridgeStatus, CarrierStatus, EndpointStatus, SenderReport};
pub use settings::{BridgeSettings, Given};
