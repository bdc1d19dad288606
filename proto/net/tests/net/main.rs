//! The driver over real transports, with toy machines.

mod duplicate_identity;
mod group;
mod hostile;
mod lifecycle;
mod members;
mod messages;
#[cfg_attr(not(feature = "quic"), path = "quic/absent.rs")]
mod quic;
mod relay;
mod succession;
mod toy;
