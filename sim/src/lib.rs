//! The simulator: real cryptography, real protocol machines, real libp2p nodes, thousands of drones in one
//! process.
//!
//! `sim run` plays the live world: every drone is a full libp2p node, driven by exactly the loop the services
//! use (`quiver-net`). It enrols all of them with a KGC, forms a group under a leader, re-keys it through
//! expiry, leave, join and a restart of the leader, exchanges group messages, and checks the
//! [invariants](live::checker) at every drone after every step.
//!
//! One seed gives the same keys and the same choices; the order of events is the network's, so timings
//! differ.

mod allocator;
pub mod cli;
mod error;
mod interrupt;
pub mod live;
mod logging;
pub mod measure;
pub mod plan;
mod ranks;
mod replay;
pub mod report;
mod rng_stream;
pub mod scale;
pub mod scenario;
pub mod virtual_world;

pub use cli::main;
pub use error::{Result, SimError};
