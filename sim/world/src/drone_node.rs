//! A drone's composite machine: its role, the parts that features put beside it, and a companion if a feature adds one.

use std::convert::Infallible;

use quiver_ainq::Suite;
use quiver_group::{EdgeCommand, EdgeEvent};
use quiver_machine::{Either, Input, Machine, Node, Now, Output, Snapshot, earlier};
use rand_core::CryptoRngCore;

use crate::NodeEvent;
use crate::drone_role::DroneRole;
use crate::feature_part::AnyFeatureCommand;
use crate::features::DroneParts;

/// Commands of an edge with the features' parts.
pub type DroneNodeCommand = Either<EdgeCommand, AnyFeatureCommand>;

/// A machine of a feature that uses a drone's connections and key, and hears what the drone is sent.
pub(crate) trait DroneCompanion<S: Suite>: Send + Sync {
    /// Handles inputs that concern the companion. Returns whether the drone need not see them.
    fn take(&mut self, now: Now, input: &Input<'_, DroneNodeCommand>, rng: &mut dyn CryptoRngCore) -> bool;

    /// Does what can be done since the drone has handled its input.
    fn follow(&mut self, now: Now, drone: &DroneRole<S>, rng: &mut dyn CryptoRngCore);

    /// Handles an event of the edge.
    fn heard(&mut self, event: &EdgeEvent);

    /// The next thing to do, once the drone has no more.
    fn poll(&mut self, drone: &DroneRole<S>) -> Output<NodeEvent, Infallible>;
}

/// A drone.
pub(crate) struct DroneNode<S: Suite> {
    pub(crate) edge: Node<DroneRole<S>, DroneParts>,
    companion: Option<Box<dyn DroneCompanion<S>>>,
}

impl<S: Suite> DroneNode<S> {
    /// A drone in this role.
    pub(crate) fn new(role: impl Into<DroneRole<S>>, companion: Option<Box<dyn DroneCompanion<S>>>) -> Self {
        Self { edge: Node::new(role.into(), DroneParts::default()), companion }
    }
}

impl<S: Suite> Machine for DroneNode<S> {
    type Command = DroneNodeCommand;
    type Event = NodeEvent;
    type Record = Snapshot;

    fn handle_input(&mut self, now: Now, input: Input<'_, DroneNodeCommand>, rng: &mut dyn CryptoRngCore) {
        let Some(companion) = &mut self.companion else { return self.edge.handle_input(now, input, rng) };
        let taken = companion.take(now, &input, rng);
        if !taken {
            self.edge.handle_input(now, input, rng);
        }
        companion.follow(now, &self.edge, rng);
    }

    fn poll_output(&mut self) -> Output<NodeEvent, Snapshot> {
        let output = self.edge.poll_output();
        let Some(companion) = &mut self.companion else {
            return output.map(NodeEvent::from, Either::into_left);
        };
        match output {
            Output::Timeout(deadline) => match companion.poll(&self.edge) {
                Output::Timeout(other) => Output::Timeout(earlier(deadline, other)),
                output => output.map(|event| event, |never| match never {}),
            },
            Output::Event(Either::Left(NodeEvent::Edge(event))) => {
                companion.heard(&event);
                Output::Event(NodeEvent::Edge(event))
            }
            output => output.map(NodeEvent::from, Either::into_left),
        }
    }
}
