//! A deterministic virtual world for the Quiver roles.
//!
//! An event queue drives the same machines as the services do ([`Kgc`](quiver_role::Kgc), [`Leader`](quiver_role::Leader)
//! and [`Edge`](quiver_role::Edge)): time is virtual, every node draws from a generator of its own, and one seed gives one
//! trace, on any number of threads. The world keeps the machines' contract to the letter (durable before transmitted) and
//! breaks everything else on request: links, disks, clocks, and the nodes themselves between any two outputs.
//!
//! | part | what it is |
//! |---|---|
//! | [`World`] | the nodes, the queue, the clock; built from a [`Setup`] |
//! | [`Action`] | what an operator, an application or bad luck does, at a time |
//! | [`Network`] | loss, bursts, delay, duplication, reordering, corruption, partitions |
//! | [`Witness`] | who looks at every step, such as the invariants |

mod action;
mod air;
mod centre;
mod disk;
mod drive;
mod drone;
mod fleet;
mod invariants;
mod liar;
mod network;
mod node;
mod queue;
mod seeds;
mod shared;
mod station;
mod toy;
mod witness;
mod world;

pub mod admission;
pub mod check;
pub mod conditional;
pub mod orders;
pub mod radio;
pub mod run;
pub mod scenario;
pub mod treasury;

pub use self::action::{Action, Forgery};
pub use self::air::{Air, AirSetup, labour, rekey_number};
pub use self::disk::DiskState;
#[doc(hidden)]
pub use self::drive::Sabotage;
pub use self::drive::{Cause, Effect, NodeEvent, Turn};
pub use self::fleet::{EPOCH_START, Fleet, GROUP, edge_name};
pub use self::invariants::{Invariant, Invariants, Violation, bound};
pub use self::network::{Burst, LinkFaults, Network, Partition, Traffic};
pub use self::node::{Node, NodeSet};
pub use self::shared::SharedRistretto255;
pub use self::toy::InsecureToy;
pub use self::treasury::{Generated, generate};
pub use self::witness::{Nobody, Witness};
pub use self::world::{Disks, Setup, World, WorldError, spoken};
