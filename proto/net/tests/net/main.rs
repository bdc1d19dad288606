//! The driver over real transports, with toy machines.

mod group;
mod hostile;
mod lifecycle;
mod messages;
mod toy;
