//! A deterministic virtual world for the Quiver roles.
//!
//! An event queue drives the same machines as the services do ([`Kgc`](quiver_enrolment::Kgc),
//! [`Leader`](quiver_group::Leader) and [`Edge`](quiver_group::Edge)): time is virtual, every node draws from
//! a generator of its own, and one seed gives one trace, on any number of threads. The world keeps the
//! machines' contract to the letter (durable before transmitted) and breaks everything else on request:
//! links, disks, clocks, and the nodes themselves between any two outputs.
//!
//! | part | what it is |
//! |---|---|
//! | [`World`] | the nodes, the queue, the clock; built from a [`Setup`] |
//! | [`Action`] | what an operator, an application or bad luck does, at a time |
//! | [`SimNetwork`] | loss, bursts, delay, duplication, reordering, corruption, partitions |
//! | [`StepObserver`] | called after every step; the invariants are one |
//! | [`trace`] | what a run was, to be played again |

mod action;
mod air;
mod drone_node;
mod drone_role;
mod event_queue;
mod feature_event;
mod feature_part;
mod features;
mod fleet;
mod invariants;
mod kgc_node;
mod network;
mod node_id;
mod observer;
mod quorum;
mod record;
mod rng_stream;
mod step;
mod suite;
mod toy;
mod two_hops;
mod world;

pub mod admission;
pub mod boards;
pub mod check;
pub mod conditions;
pub mod envelopes;
pub mod formats;
pub mod master_key;
pub mod mavlink;
pub mod radio;
pub mod ranks;
pub mod relays;
pub mod run;
pub mod scenario;
pub mod trace;

pub use self::action::{Action, Forgery};
pub use self::air::{Air, AirSetup, compute_cost, rekey_number};
pub use self::drone_node::DroneNodeCommand;
pub use self::drone_role::{DroneRole, EdgeStandIn};
pub use self::feature_event::{AnyFeatureEvent, FeatureEvent};
pub use self::feature_part::{AnyFeatureCommand, RoleCommand};
pub use self::features::LeaderNodeCommand;
pub use self::fleet::{Fleet, GROUP, edge_name};
pub use self::invariants::{Invariant, Invariants, Violation, bound};
pub use self::master_key::MasterKeySuite;
pub use self::mavlink::{DatagramClass, DatagramEvent, DatagramEventKind, MavlinkReport, MavlinkSetup};
pub use self::network::{NodeSet, Partition, SimNetwork};
pub use self::node_id::NodeId;
pub use self::observer::{Hop, NoObserver, StepObserver};
pub use self::quorum::master_key::{Generated, SharedSecret, Threshold, generate};
pub use self::step::{Cause, Effect, MachineEnd, NodeEvent, StandInProgress, Step};
#[doc(hidden)]
pub use self::step::{Sabotage, StepAccount};
pub use self::suite::WorldSuite;
pub use self::toy::InsecureToy;
pub use self::two_hops::{TwoHops, TwoHopsReport};
pub use quiver_testbed::{Burst, DiskState, EPOCH_START, LinkFaults, Traffic};

pub use self::world::{Disks, Setup, World, WorldError, WorldKernel, message_number};
