//! The machine of an anonymous drone, in the place of an edge under its name.

use quiver_admission::{AnonymousConfig, AnonymousEdge, AnonymousEvent};
use quiver_ainq::{Name, Suite};
use quiver_crypto::Secret;
use quiver_group::EdgeCommand;
use quiver_group::edge::EdgeStatus;
use quiver_group::leader::RestoreError;
use quiver_machine::{Input, Machine, Now, Output, Snapshot, forward_primary};
use rand_core::CryptoRngCore;

use super::AdmissionNodeEvent;
use crate::drone_node::DroneNode;
use crate::drone_role::HeaderFinder;
use crate::{DroneRole, EdgeStandIn, NodeEvent};

/// An anonymous edge.
#[derive(derive_more::Deref)]
pub(crate) struct AnonymousMachine<S: Suite>(AnonymousEdge<S>);

impl<S: Suite> AnonymousMachine<S> {
    /// The node of an anonymous drone, restored from its state.
    pub(crate) fn node(
        config: AnonymousConfig<S>,
        state: Option<&Snapshot>,
    ) -> Result<Box<DroneNode<S>>, RestoreError> {
        let machine = Self(AnonymousEdge::new(config, state)?);
        Ok(Box::new(DroneNode::new(DroneRole::StandIn(Box::new(machine)), None)))
    }
}

impl<S: Suite> EdgeStandIn<S> for AnonymousMachine<S> {
    fn status(&self) -> EdgeStatus {
        self.0.status()
    }

    fn export(&self, name: &Name) -> Option<Secret<32>> {
        self.0.export(name)
    }

    fn share_header(&mut self, shared: &mut HeaderFinder<'_>) {
        self.0.share_header(shared);
    }
}

impl<S: Suite> Machine for AnonymousMachine<S> {
    type Command = EdgeCommand;
    type Event = NodeEvent;
    type Record = Snapshot;

    fn handle_input(&mut self, now: Now, input: Input<'_, EdgeCommand>, rng: &mut dyn CryptoRngCore) {
        self.0.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<NodeEvent, Snapshot> {
        let event = |event| match event {
            AnonymousEvent::Edge(event) => NodeEvent::Edge(event),
            event => AdmissionNodeEvent::Anonymous(event).into(),
        };
        self.0.poll_output().map(event, |record| record)
    }
}

forward_primary! {
    impl[S: Suite] Primary<Suite = S> for AnonymousMachine<S> {
        Self(edge) => edge,
    }
}
