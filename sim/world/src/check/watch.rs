//! Shows random lives, and the forming of the group before them, to an observer beside the invariants.

use std::time::Duration;

use quiver_ainq::Suite;
use quiver_kem::KemSetting;

use super::{ActionPlan, Base, CheckSetup, ConvergenceChecker, run_to_convergence};
use crate::{Action, Hop, Invariants, MasterKeySuite, Step, StepObserver, Violation, World, WorldError};

impl<S: MasterKeySuite> Base<S> {
    /// Makes the base as [`new`](Self::new) does, and shows an observer every step and every [`Hop`] of it. The
    /// lives that begin there tell their observers of hops, too.
    ///
    /// # Errors
    /// Errors of [`World::new`].
    pub fn watched(
        setup: CheckSetup,
        kem: KemSetting,
        observer: &mut dyn StepObserver<S>,
    ) -> Result<Self, WorldError> {
        Self::formed(setup, kem, None, Some(observer))
    }

    /// The plan of a seed.
    pub fn plan(&self, seed: u64) -> ActionPlan {
        ActionPlan::new(&self.setup, seed)
    }

    /// Runs a plan as [`run`](Self::run) does, and shows it to an observer. Returns the first violation of an
    /// invariant, if there is one.
    ///
    /// # Errors
    /// Errors of [`World::new`].
    pub fn watch(
        &self,
        plan: &ActionPlan,
        observer: &mut dyn StepObserver<S>,
    ) -> Result<Option<Violation>, WorldError> {
        let mut world = self.world(plan)?;
        let mut invariants = self.invariants(&world, plan);
        let mut both = Both(&mut invariants, observer);
        run_to_convergence(&mut world, plan, &mut both);
        Ok(invariants.violations().first().cloned())
    }
}

/// Two observers, of which the first decides when the world stops.
pub(super) struct Both<'a, S: Suite, O>(pub(super) &'a mut O, pub(super) &'a mut dyn StepObserver<S>);

impl<S: Suite, O: StepObserver<S>> StepObserver<S> for Both<'_, S, O> {
    fn on_step(&mut self, world: &World<S>, step: &Step) {
        self.0.on_step(world, step);
        self.1.on_step(world, step);
    }

    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        self.0.on_action(world, at, action);
        self.1.on_action(world, at, action);
    }

    fn on_hop(&mut self, hop: &Hop) {
        self.0.on_hop(hop);
        self.1.on_hop(hop);
    }

    fn stops(&self) -> bool {
        self.0.stops()
    }
}

impl<S: Suite> ConvergenceChecker<S> for Both<'_, S, Invariants<S>> {
    fn has_converged(&self, world: &World<S>) -> bool {
        self.0.has_converged(world)
    }

    fn check_convergence(&mut self, world: &World<S>) {
        self.0.check_convergence(world);
    }
}
