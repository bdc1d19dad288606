//! Drives Quiver's state machines deterministically: in virtual time, over links with faults, from disks that
//! survive crashes.
//!
//! Tests drive any number of machines of any kinds with a [`Net`]; the simulator's virtual world, which holds
//! a million of them, is built from the same parts. One seed gives one course of events.
//!
//! | part | what it does |
//! |---|---|
//! | [`Net`] | connects machines, delivers messages in order of time, fires deadlines, injects, tampers, records |
//! | [`SimNode`] | one machine with its disk, clocks, random numbers and injected faults |
//! | [`drain`] | carries out what a machine wants, record before message, until it rests, stalls or crashes |
//! | [`Outputs`] | takes all that a machine wants at once, for tests that drive one by hand |
//! | [`Puppet`] | sends what a test tells it, reports what happens to it |
//! | [`Disk`] | keeps records; can be full or fail |
//! | [`EventQueue`] | orders events by time |
//! | [`Network`] | loses, delays, duplicates, reorders, corrupts and partitions messages |
//! | [`CompactRng`] | a generator of random numbers that takes 40 bytes at rest |

mod credentials;
mod disk;
mod driver;
mod event_queue;
mod net;
mod network;
mod node;
mod outputs;
mod puppet;
mod rng;

pub use self::credentials::{issue_keypair, name};
pub use self::disk::{Disk, DiskState, Keep};
pub use self::driver::{DrainEnd, OutputSink, drain};
pub use self::event_queue::{EventQueue, QueuedEvent};
pub use self::net::{Id, Net, PATIENCE, Packet, Tamper, TestNode, run_until};
pub use self::network::{Arrival, Burst, LinkFaults, Network, NodeSet, Partition, Traffic, nanos};
pub use self::node::{FaultInjection, NEVER, SimNode, Stimulus};
pub use self::outputs::{Effects, Outputs};
pub use self::puppet::{Puppet, PuppetEvent};
pub use self::rng::{ActiveRng, CompactRng, below, unit};

/// 2027-01-01 in seconds since 1970: when virtual time is zero.
pub const EPOCH_START: u64 = 1_798_761_600;
