//! The seam between the world and what features add to it.

use quiver_ainq::{KgcId, Suite};
use quiver_group::leader::RestoreError;

use super::WorldKernel;
use crate::drone_node::DroneNode;
use crate::feature_part::AnyFeatureCommand;
use crate::kgc_node::KgcNode;
use crate::{Action, NodeId, Step};

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

/// Machine that is started for an edge that is switched on.
pub(crate) enum StandInStart<S: Suite> {
    /// The feature has none for this edge, which starts under its name unless another feature has one.
    Named,
    /// The edge stays off.
    Off,
    /// The feature's machine, or the reason why the edge's state does not restore it.
    Machine(Result<Box<DroneNode<S>>, RestoreError>),
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

    /// Carries out what a feature has planned, if it was this one.
    fn run_planned(
        &mut self,
        kernel: &mut WorldKernel<S>,
        planned: &AnyFeatureCommand,
        steps: &mut Vec<Step>,
    ) -> Acted {
        let _ = (kernel, planned, steps);
        Acted::Pass
    }

    /// Adds parts to the machine of a KGC that is switched on, or has it misbehave.
    fn extend_kgc(&self, kernel: &WorldKernel<S>, id: KgcId, machine: &mut KgcNode<S>) {
        let _ = (kernel, id, machine);
    }

    /// Gives the machine that takes the place of an edge that is switched on.
    fn stand_in(&mut self, kernel: &mut WorldKernel<S>, edge: u32) -> StandInStart<S> {
        let _ = (kernel, edge);
        StandInStart::Named
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
