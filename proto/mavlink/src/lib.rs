//! MAVLink between local programs and a group's datagrams, without I/O.
//!
//! Autopilots and ground stations speak plain MAVLink to a Quiver service beside them, over a serial line or
//! on the loopback interface; between the services frames travel in the group's datagrams. This crate is what
//! both ends need to know of MAVLink. Sockets, devices and keys are with who drives it.
//!
//! | what | does | types |
//! |---|---|---|
//! | frame | one frame of MAVLink 1 or 2, any dialect | [`Frame`] |
//! | reader | frames in a stream of bytes, again behind damage | [`FrameReader`] |
//! | batch | frames in a datagram, without what its receiver knows | [`FrameBatch`], [`decode`](batch::decode) |
//! | endpoint | where a program is connected, as pymavlink and MAVSDK spell it | [`Endpoint`] |
//! | configuration | a file in mavlink-router's format | [`Config`] |
//! | routing | which endpoints a frame goes to | [`Router`], [`Filters`] |
//! | message class | whether a message makes its receiver act, and why it is held to | [`MessageClass`] |
//! | message ids | what is signed by its sender, what is dropped last | [`SignedMessages`], [`priority`] |
//! | system ids | which member speaks as which system | [`SystemIds`] |
//! | spreading | the table of system ids from leader to members | [`TableIssuer`], [`TableReceiver`] |
//! | signing | MAVLink 2 signatures between an endpoint and its program | [`Signing`] |
//! | messages | `STATUSTEXT`, `RADIO_STATUS` | [`message`] |
//! | tunnel | datagrams in `TUNNEL` messages | [`TunnelWriter`], [`TunnelReader`] |
//!
//! # The way of a frame
//! At the sender: [`FrameReader::push`], [`Signing::verify`] if the endpoint has a key, [`Router::route`],
//! and for the group's endpoint [`SystemIds::check`], [`priority`], [`SignedMessages::contains`],
//! [`FrameBatch::push`]. At the receiver: [`SystemIds::of_slot`] of the datagram's proven sender,
//! [`batch::decode`] with that system id, [`Router::route`], [`Signing::sign`].
//!
//! ```
//! use quiver_mavlink::{FrameBatch, FrameReader, SystemIds, batch};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A heartbeat of system 42, as pymavlink packs it; `edge-1` in slot 5 may speak as 42.
//! let heartbeat = b"\xfd\x09\0\0\0\x2a\xbf\0\0\0\x07\0\0\0\x02\x03\x51\x04\x03\x7f\x0a";
//! let mut table = SystemIds::new();
//! table.grant("edge-1", 42)?;
//! table.set_slot("edge-1", Some(5));
//!
//! // Sender: what the datagram carries is 6 bytes shorter.
//! let mut batch = FrameBatch::new();
//! FrameReader::new().push(heartbeat, |frame| {
//!     if table.check(5, frame).is_ok() {
//!         batch.push(frame, 200);
//!     }
//! });
//! let payload = batch.take();
//! assert_eq!(payload.len(), 15);
//!
//! // Receiver: the system id comes from the sender's slot, so that nobody speaks as another.
//! let system_id = table.of_slot(5).ok_or("no system id is granted")?;
//! assert_eq!(batch::decode(&payload, system_id)?, [heartbeat]);
//! # Ok(())
//! # }
//! ```
//!
//! # Dialects
//! No message is unpacked, and no dialect need be known: the frame's length and message id say enough. A
//! table of what pymavlink's dialect `all` knows (353 messages, 8 bytes each) has the seeds of check sums and
//! where `target_system` stands. It is used where a check sum proves that it fits ([`Frame::is_proven`]): to
//! find the start of a frame behind damage, to send a command only to where its target is, and to drop what
//! was damaged: a frame of a known message whose check sum is wrong ([`Frame::is_damaged`]). A dialect that
//! gives a known message's number to another is taken for damage, too. Every message that the table does not
//! know passes as it came, to everybody.
//!
//! The check sum travels. It is the sender's own, so what was damaged on the way to the sender's end is found
//! at either end, or by the receiver's program if the message is unknown; and it covers the system id, so a
//! frame that was given another does not check.
//!
//! # Bounds
//! A reader holds less than a frame (287 bytes). A router remembers 4,096 sources an endpoint and 16,384 frames, and
//! four sources more for each system granted behind an endpoint. A table has 20,000 grants of at most 73 bytes each; a
//! member holds one, and the parts of one other. A file has 64 endpoints and 256 KiB, signing 1,024 streams. A reader
//! of tunnels holds 16 datagrams that are not whole, 384 bytes each.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod batch;
mod checksum;
mod config;
mod endpoint;
mod error;
mod filter;
mod frame;
mod layout;
pub mod message;
mod message_class;
mod message_ids;
mod reader;
mod router;
mod signing;
mod system_ids;
mod tunnel;

pub use batch::FrameBatch;
pub use config::{Config, EndpointConfig, MAX_CONFIG_LEN, MAX_ENDPOINTS, QuiverConfig};
pub use endpoint::{DEFAULT_BAUD, Endpoint, GCS_UDP_PORT, HostPort, Resource, TCP_PORT};
pub use error::MavlinkError;
pub use filter::{Filter, Filters, List};
pub use frame::{
    Frame, MAX_FRAME_LEN, MAX_NARROW_SYSTEM, Origin, SIGNATURE_LEN, STX_V1, STX_V2, Target, Version,
};
pub use message_class::MessageClass;
pub use message_ids::{Priority, SignedMessages, priority};
pub use reader::{FrameReader, ReaderCounters};
pub use router::{Dropped, EndpointId, Router};
pub use signing::{Signing, SigningKey};
pub use system_ids::{
    Grant, IssuedSystemIds, MAX_NARROW_SYSTEM_IDS, MAX_SYSTEM_IDS, MAX_TABLE_LEN, Misuse, SystemIds,
    TableCounters, TableDigest, TableIssuer, TableMessage, TableOutcome, TableReceiver,
};
pub use tunnel::{
    MAX_TUNNELLED, TUNNEL_OVERHEAD, TUNNEL_PAYLOAD, TUNNEL_WIDE_OVERHEAD, TunnelReader, TunnelWriter,
};
