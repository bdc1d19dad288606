//! The driver over real transports, with toy machines.

mod duplicate_identity;
mod group;
mod hostile;
mod lifecycle;
mod members;
mod messages;
mod relay;
mod succession;
mod toy;
