//! The role of a drone: an edge under its name, or a machine of a feature in its place.

use std::any::Any;
use std::sync::Arc;

use quiver_ainq::{DroneKeypair, Name, Suite};
use quiver_crypto::Secret;
use quiver_group::edge::EdgeStatus;
use quiver_group::edge::compromise::CompromisedState;
use quiver_group::{Edge, EdgeCommand};
use quiver_machine::{Input, Machine, Now, Output, Primary, Snapshot, forward_primary};
use rand_core::CryptoRngCore;

use crate::NodeEvent;

/// Finds the copy of a header that is to be kept.
pub(crate) type HeaderFinder<'a> = dyn FnMut(&Arc<[u8]>) -> Arc<[u8]> + 'a;

/// A machine that a feature puts in the place of an edge: it is commanded as an edge is, and stores as much.
pub trait EdgeStandIn<S: Suite>:
    Primary<Suite = S, Command = EdgeCommand, Event = NodeEvent, Record = Snapshot> + Any + Send + Sync
{
    /// State of the drone, as [`Edge::status`].
    fn status(&self) -> EdgeStatus;

    /// A secret that all synced members of the epoch can derive, as [`Edge::export`].
    fn export(&self, name: &Name) -> Option<Secret<32>>;

    /// Shares the header, as [`Edge::share_header`].
    fn share_header(&mut self, shared: &mut HeaderFinder<'_>);
}

/// An edge under its name, or the machine of a feature in its place.
#[derive(derive_more::From)]
#[expect(clippy::large_enum_variant, reason = "one per machine, and most often the large one")]
pub enum DroneRole<S: Suite> {
    /// An edge under its name.
    #[from]
    Named(Edge<S>),
    /// A machine of a feature.
    StandIn(Box<dyn EdgeStandIn<S>>),
}

impl<S: Suite> DroneRole<S> {
    /// The edge under its name, if it is one.
    pub const fn named(&self) -> Option<&Edge<S>> {
        match self {
            Self::Named(edge) => Some(edge),
            Self::StandIn(_) => None,
        }
    }

    /// The machine in the place of the edge, if it is of this type.
    pub(crate) fn stand_in<M: EdgeStandIn<S>>(&self) -> Option<&M> {
        match self {
            Self::Named(_) => None,
            Self::StandIn(machine) => {
                let machine: &dyn Any = &**machine;
                machine.downcast_ref()
            }
        }
    }

    /// State of the drone.
    pub fn status(&self) -> EdgeStatus {
        match self {
            Self::Named(edge) => edge.status(),
            Self::StandIn(machine) => machine.status(),
        }
    }

    /// Returns the drone's own key, once enrolled; a stand-in has none.
    pub fn keypair(&self) -> Option<&DroneKeypair<S>> {
        self.named()?.keypair()
    }

    /// A secret that all synced members of the epoch can derive under this name; `None` unless synced.
    pub fn export(&self, name: &Name) -> Option<Secret<32>> {
        match self {
            Self::Named(edge) => edge.export(name),
            Self::StandIn(machine) => machine.export(name),
        }
    }

    /// Lets the drone keep its header in the memory of an equal one.
    pub(crate) fn share_header(&mut self, mut shared: impl FnMut(&Arc<[u8]>) -> Arc<[u8]>) {
        match self {
            Self::Named(edge) => edge.share_header(shared),
            Self::StandIn(machine) => machine.share_header(&mut shared),
        }
    }

    /// Returns the compromised state of an edge under its name.
    pub(crate) fn compromised_state(&self) -> Option<CompromisedState<S>> {
        self.named()?.compromised_state()
    }
}

impl<S: Suite> Machine for DroneRole<S> {
    type Command = EdgeCommand;
    type Event = NodeEvent;
    type Record = Snapshot;

    fn handle_input(&mut self, now: Now, input: Input<'_, EdgeCommand>, rng: &mut dyn CryptoRngCore) {
        match self {
            Self::Named(edge) => edge.handle_input(now, input, rng),
            Self::StandIn(machine) => machine.handle_input(now, input, rng),
        }
    }

    fn poll_output(&mut self) -> Output<NodeEvent, Snapshot> {
        match self {
            Self::Named(edge) => edge.poll_output().map(NodeEvent::Edge, |record| record),
            Self::StandIn(machine) => machine.poll_output(),
        }
    }
}

forward_primary! {
    impl[S: Suite] Primary<Suite = S> for DroneRole<S> {
        Self::Named(edge) => edge,
        Self::StandIn(machine) => machine,
    }
}
