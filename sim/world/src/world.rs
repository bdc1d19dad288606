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

use quiver_ainq::Suite;

pub use self::actions::message_number;
pub(crate) use self::feature::{Acted, StandInStart, WorldFeature};
pub use self::kernel::WorldKernel;
pub use self::setup::{Disks, Setup, WorldError};
pub(crate) use self::wire::{Wire, WireContext};
use crate::feature_part::AnyFeatureCommand;
use crate::features::Features;
use crate::{Action, NodeId};

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
    /// A feature does what it has planned.
    Feature(AnyFeatureCommand),
}
