//! The crate from outside: what pymavlink writes, what programs send over lines and sockets, what people
//! write into files.

mod batches;
mod configs;
mod endpoints;
mod frames;
mod message_classes;
mod messages;
mod reader;
mod routing;
mod signing;
mod system_ids;
mod table_updates;
mod tunnels;
mod vectors;
mod wide;
