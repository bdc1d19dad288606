//! MAVLink between local programs and a group's datagrams, without I/O.
#![cfg_attr(not(feature = "std"), no_std)]
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
mod message_ids;
mod reader;
mod router;
mod signing;
mod system_ids;

pub use batch::Batch;
pub use config::{Config, EndpointConfig, MAX_CONFIG_LEN, MAX_ENDPOINTS, QuiverConfig};
pub use endpoint::{DEFAULT_BAUD, Endpoint, GCS_UDP_PORT, HostPort, Resource, TCP_PORT};
pub use error::MavlinkError;
pub use filter::{Filter, Filters, List};
pub use frame::{Frame, MAX_FRAME_LEN, Origin, SIGNATURE_LEN, STX_V1, STX_V2, Target, Version};
pub use message_ids::{Priority, SIGNED_BY_DEFAULT, SignedMessages, priority};
pub use reader::{FrameReader, ReaderCounters};
pub use router::{Dropped, EndpointId, Router};
pub use signing::{Signing, SigningKey};
pub use system_ids::{Grant, MAX_SYSTEM_IDS, MAX_TABLE_LEN, Misuse, SystemIds};
