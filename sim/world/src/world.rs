//! The simulated world: a kernel of nodes, links, event queue and clock, and the features that act on it.

mod actions;
pub(crate) mod adversary;
mod feature;
mod headers;
mod kernel;
mod links;
mod nodes;
mod query;
mod repeats;
mod scheduler;
mod setup;
mod timeline;
mod wire;

use std::ops::Deref;

use quiver_admission::{AdmittingLeader, AdmittingLeaderCommand};
use quiver_ainq::{Epoch, Suite};
use quiver_envelope::{EnvelopeCommand, Envelopes};
use quiver_group::EdgeCommand;
use quiver_machine::{Either, Node as RoleNode};
use quiver_relay::WithRelays;

pub use self::actions::message_number;
use self::feature::Features;
pub(crate) use self::feature::{Acted, WorldFeature};
pub use self::kernel::WorldKernel;
pub use self::setup::{Disks, Setup, WorldError};
pub(crate) use self::wire::{Wire, WireContext};
use crate::admission::AdmissionEvent;
use crate::{Action, NodeId};

/// A leader with its envelopes, whose drones may be behind relays.
type LeaderNode<S> = WithRelays<RoleNode<AdmittingLeader<S>, Envelopes>>;
/// Commands of a leader's node.
pub type LeaderNodeCommand = Either<AdmittingLeaderCommand, EnvelopeCommand>;
/// Commands of an edge with its envelopes.
pub type DroneNodeCommand = Either<EdgeCommand, EnvelopeCommand>;

/// All nodes, the network between them, and the clock. See the [crate](crate) for its guarantees.
pub struct World<S: Suite> {
    kernel: WorldKernel<S>,
    features: Features<S>,
}

impl<S: Suite> Deref for World<S> {
    type Target = WorldKernel<S>;

    fn deref(&self) -> &WorldKernel<S> {
        &self.kernel
    }
}

/// An action that the world has scheduled itself.
#[derive(Clone, Debug)]
pub(crate) enum ScheduledAction {
    Act(Box<Action>),
    /// A node tries to reach one that it dials.
    Connect(NodeId, NodeId),
    /// Two nodes notice that the connection between them is lost.
    Sever(NodeId, NodeId),
    /// A crashed node is started again.
    Return(NodeId),
    /// An event of anonymous admission.
    Admission(AdmissionEvent),
    /// All nodes receive both headers that the leader with two keys signed for this epoch.
    Cross(Epoch),
}
