//! A tier of relays between a leader and its drones (docs/protocol.md, 21): a relay holds the connections of many
//! drones and one to the leader, and no keys.
//!
//! | part | runs at | what it does |
//! |---|---|---|
//! | [`Relay`] | the relay | passes on what drones and leader say to each other, and cuts each drone's part of a broadcast |
//! | [`WithRelays`] | the leader | makes every drone behind a relay a peer of its own to the machine that it contains |
//!
//! Messages to the group do not go through it either: a relay is a hub of the group's topic, as a leader is,
//! and passes on what the leader publishes, once for all its drones.
//!
//! A relay is trusted with nothing. Drone and leader authenticate each other's messages, so that it can drop,
//! delay and replay them, which a network can, too. The leader accepts only relays whose transport identity
//! its operator has pinned ([`Route::Relay`](quiver_machine::Route::Relay)), since one can have many peers
//! and memory in use.
//!
//! Both ends deliver in order and without loss for as long as a session lasts (a window of batches, acknowledged). A
//! session that stalls, or a connection that is lost, ends the connections of its drones, as if they had been
//! connected to the leader themselves: they connect again, here or to another relay, and prove who they are.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod leader;
mod queue;
mod relay;
mod session;
mod wire;

pub use leader::{RelayLimits, WithRelays};
pub use relay::{Relay, RelayEvent, RelayTiming};
pub use wire::carried;
