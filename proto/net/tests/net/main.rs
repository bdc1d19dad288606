//! The driver over real transports, with toy machines.

mod group;
mod hostile;
mod lifecycle;
mod members;
mod messages;
mod toy;
mod twins;
