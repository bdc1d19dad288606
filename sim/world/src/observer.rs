//! Observes the world while it runs: called after every step and every action.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::Suite;

use crate::{Action, DatagramEvent, NodeId, Step, World};

/// A message over one link: one of the two of a relayed message, one of the many of a broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The node that transmits it; of a relayed message, the relay.
    pub from: NodeId,
    /// The node it is for.
    pub to: NodeId,
    /// Time since the world began.
    pub sent: Duration,
    /// The same for its arrival; `None` if it is lost. A connection that ends before then loses it, too.
    pub arrives: Option<Duration>,
    /// The message.
    pub payload: Arc<[u8]>,
}

/// Called after every step, before anything else happens.
pub trait StepObserver<S: Suite> {
    /// A node took an input.
    fn on_step(&mut self, world: &World<S>, step: &Step);

    /// An action took place.
    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        let _ = (world, at, action);
    }

    /// A message is under way, or lost. Only in worlds whose [`Setup`](crate::Setup) has `hops`.
    fn on_hop(&mut self, hop: &Hop) {
        let _ = hop;
    }

    /// A station sealed or opened datagrams of the group. Only in worlds whose [`Setup`](crate::Setup) has
    /// `mavlink`.
    fn on_datagram(&mut self, world: &World<S>, event: &DatagramEvent) {
        let _ = (world, event);
    }

    /// Returns true if the world should stop at once, for instance because an invariant broke.
    fn stops(&self) -> bool {
        false
    }
}

/// Ignores every step.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl<S: Suite> StepObserver<S> for NoObserver {
    fn on_step(&mut self, _: &World<S>, _: &Step) {}
}
