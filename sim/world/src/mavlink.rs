//! MAVLink telemetry in the group's datagrams (§20), over the world's radio.
//!
//! Every member of the group has a station beside its machine: [`Datagrams`](quiver_datagram::Datagrams) as
//! the services have it, and a stream of MAVLink frames. Each datagram that it seals is one broadcast on the
//! channel that carries the protocol's own messages, too; all stations in range receive it. Vehicles are the
//! edges, ground stations the leaders. A captured vehicle's station is the adversary's: it keeps its key when
//! it is evicted, goes on sending under it, and sends again, as it was and altered, what it received from
//! others.
//!
//! | part | what it is |
//! |---|---|
//! | [`MavlinkSetup`] | frames, and the share of the radio that a station may use |
//! | `station` | one member's datagrams and its stream |
//! | `tally` | what became of the frames: [`MavlinkReport`] |
//! | `stations` | all stations, and which system id each may use |
//! | `logs` | what ground stations would log of vehicles |
//! | `carriage` | from a station to the radio, over the channel, to the others |
//! | `invariant` | what must hold of datagrams that stations open |

mod carriage;
mod invariant;
mod logs;
pub(crate) mod station;
pub(crate) mod stations;
mod stream;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use quiver_datagram::Config;

pub(crate) use self::carriage::Telemetry;
pub(crate) use self::invariant::SealedPayloads;
pub(crate) use self::logs::TelemetryLogs;
pub use self::tally::MavlinkReport;
use crate::NodeId;
use crate::radio::{Cast, Profile};

/// Time from one heartbeat of a ground station to its next.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(1);
/// Bytes of a MAVLink 2 frame with a heartbeat.
const HEARTBEAT: usize = 21;
/// Bytes of a datagram where the carrier would take more: fits every IP network's packets.
const MTU: usize = 1_200;

/// Telemetry of vehicles.
#[derive(Clone, Debug, PartialEq)]
pub struct MavlinkSetup {
    /// Time from one of a vehicle's frames to its next.
    pub frame_every: Duration,
    /// Bytes of its MAVLink 2 frames, in turn: [`MIN_FRAME`](Self::MIN_FRAME) to
    /// [`MAX_FRAME`](Self::MAX_FRAME), and at least one.
    pub frame_bytes: Vec<usize>,
    /// Bits per second, with the radio's headers, that a station may send; `None` for an equal part of what the
    /// radio carries in full frames.
    pub bit_rate: Option<u32>,
}

impl MavlinkSetup {
    /// The shortest frame: with a heartbeat.
    pub const MIN_FRAME: usize = HEARTBEAT;
    /// The longest frame of these streams.
    pub const MAX_FRAME: usize = 63;

    /// Settings of the datagrams of one of this number of stations.
    pub(crate) fn config(&self, profile: Option<&Profile>, stations: u32) -> Config {
        let Some(profile) = profile else { return Config { mtu: MTU, ..Config::default() } };
        let mtu = profile.capacity(Cast::Broadcast).0.min(MTU);
        let framing = profile.framing(Cast::Broadcast);
        let share = profile.bit_rate(Cast::Broadcast).map(|rate| rate / stations.max(1));
        let burst = 2 * (mtu + framing);
        Config { mtu, framing, burst, bit_rate: self.bit_rate.or(share), ..Config::default() }
    }
}

impl Default for MavlinkSetup {
    /// 18 frames and 744 bytes per second, as an autopilot sends by default over a telemetry radio.
    fn default() -> Self {
        Self {
            frame_every: Duration::from_nanos(1_000_000_000 / 18),
            frame_bytes: vec![HEARTBEAT, 40, 40, 43, 42, 62],
            bit_rate: None,
        }
    }
}

/// Event at a station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatagramEvent {
    /// Time since the world began.
    pub at: Duration,
    /// The station's node.
    pub node: NodeId,
    /// Kind of the event.
    pub kind: DatagramEventKind,
}

/// Kind of an event at a station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramEventKind {
    /// Sealed payloads in one datagram.
    Sealed {
        /// The epoch under whose key.
        epoch: quiver_ainq::Epoch,
        /// The slot that they are sent from.
        slot: quiver_ainq::Slot,
        /// The payloads, no two of which are alike in a run.
        payloads: Vec<Vec<u8>>,
    },
    /// Sent a datagram to all others.
    Transmitted {
        /// The bytes.
        bytes: Arc<[u8]>,
        /// The content.
        class: DatagramClass,
        /// Stations that it does not reach, or reaches altered.
        lost: Vec<NodeId>,
    },
    /// Opened a payload.
    Opened {
        /// The slot that it came from.
        slot: quiver_ainq::Slot,
        /// The payload.
        payload: Vec<u8>,
    },
}

/// Content of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramClass {
    /// Sealed payloads.
    Payloads,
    /// The announcement of a signing key.
    Announcement,
    /// A datagram of the adversary's.
    Hostile,
}
