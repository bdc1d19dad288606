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
//! | [`HeaderReader`] | completes short headers, for those who observe all that is sent |
//! | [`CompactRng`] | a generator of random numbers that takes 40 bytes at rest |

mod credentials;
mod disk;
mod driver;
mod event_queue;
mod header_reader;
mod net;
mod network;
mod node;
mod outputs;
mod puppet;
mod rng;

pub use self::credentials::{copy_token, issue_keypair, name, token_grant};
pub use self::disk::{Disk, DiskState, Keep};
pub use self::driver::{DrainEnd, OutputSink, drain};
pub use self::event_queue::{EventQueue, QueuedEvent};
pub use self::header_reader::HeaderReader;
pub use self::net::{Id, Net, PATIENCE, Packet, Tamper, TestNode, run_until};
pub use self::network::{Arrival, Burst, LinkFaults, Network, NodeSet, Partition, Traffic, nanos};
pub use self::node::{FaultInjection, NEVER, SimNode, Stimulus};
pub use self::outputs::{Effects, Outputs};
pub use self::puppet::{Puppet, PuppetEvent};
pub use self::rng::{ActiveRng, CompactRng, below, unit};

/// 2027-01-01 in seconds since 1970: when virtual time is zero.
pub const EPOCH_START: u64 = 1_798_761_600;

/// Makes the closure for `filter_map` that keeps what matches a pattern: `matching!(Left(drone) => drone)`.
#[macro_export]
macro_rules! matching {
    ($pattern:pat $(if $condition:expr)? => $value:expr) => {
        |item| match item {
            $pattern $(if $condition)? => Some($value),
            _ => None,
        }
    };
}

/// Lets a test's world be used as the [`Net`] in its field `net`.
#[macro_export]
macro_rules! deref_to_net {
    ($world:ident $(<$suite:ident: $bound:path>)?, $node:ty) => {
        impl $(<$suite: $bound>)? ::core::ops::Deref for $world $(<$suite>)? {
            type Target = $crate::Net<$node>;

            fn deref(&self) -> &Self::Target {
                &self.net
            }
        }

        impl $(<$suite: $bound>)? ::core::ops::DerefMut for $world $(<$suite>)? {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.net
            }
        }
    };
}
