//! The seam between the world and what features add to it.

use quiver_ainq::Suite;

use super::WorldKernel;
use super::adversary::Adversary;
use crate::admission::AnonymousDrones;
use crate::conditions::ReleaseApprovals;
use crate::mavlink::Telemetry;
use crate::quorum::LyingKgcs;
use crate::relays::HostileRelays;
use crate::{Action, Fleet, NodeId, Setup, Step};

/// Outcome of an action for a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acted {
    /// The action is left to others, too.
    Pass,
    /// The feature has carried it out.
    Done,
    /// The feature has carried it out, and this node must be started next.
    Start(NodeId),
}

/// Part of a world that belongs to one feature, with a state of its own.
///
/// A feature reaches nodes, links, clock and queue through the [kernel](WorldKernel), and never another feature.
pub(crate) trait WorldFeature<S: Suite> {
    /// Plans what must happen in a new world.
    fn begin(&mut self, kernel: &mut WorldKernel<S>) {
        let _ = kernel;
    }

    /// Carries out an action, if it is of this feature. Adds the steps that are taken at once.
    fn act(&mut self, kernel: &mut WorldKernel<S>, action: &Action, steps: &mut Vec<Step>) -> Acted {
        let _ = (kernel, action, steps);
        Acted::Pass
    }

    /// A node was switched on; it has not taken its first step.
    fn on_start(&mut self, kernel: &mut WorldKernel<S>, node: NodeId) {
        let _ = (kernel, node);
    }

    /// A node was switched off.
    fn on_stop(&mut self, node: NodeId) {
        let _ = node;
    }

    /// A node took a step, whose effects were applied.
    fn on_step(&mut self, kernel: &mut WorldKernel<S>, step: &Step) {
        let _ = (kernel, step);
    }

    /// Ends the faults of this feature. Gives the nodes that must be started for that.
    fn calm(&mut self, kernel: &mut WorldKernel<S>) -> Vec<NodeId> {
        let _ = kernel;
        Vec::new()
    }
}

/// All features of a world. One that is added has a field here, and a place in the list.
pub(crate) struct Features<S: Suite> {
    pub(crate) adversary: Adversary,
    pub(crate) admission: AnonymousDrones,
    pub(crate) quorum: LyingKgcs,
    pub(crate) conditions: ReleaseApprovals,
    pub(crate) relays: HostileRelays,
    pub(crate) datagrams: Telemetry<S>,
}

impl<S: Suite> Features<S> {
    pub(super) fn new(setup: &Setup, fleet: &Fleet<S>) -> Self {
        Self {
            adversary: Adversary::default(),
            admission: AnonymousDrones::default(),
            quorum: LyingKgcs::default(),
            conditions: ReleaseApprovals::default(),
            relays: HostileRelays::default(),
            datagrams: Telemetry::new(setup, fleet),
        }
    }

    /// All of them, in the order in which they are asked.
    pub(super) fn all(&mut self) -> [&mut dyn WorldFeature<S>; 6] {
        [
            &mut self.adversary,
            &mut self.admission,
            &mut self.quorum,
            &mut self.conditions,
            &mut self.relays,
            &mut self.datagrams,
        ]
    }
}
