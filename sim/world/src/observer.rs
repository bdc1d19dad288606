//! Observes the world while it runs: called after every step and every action.

use std::time::Duration;

use quiver_ainq::Suite;

use crate::{Action, Step, World};

/// Called after every step, before anything else happens.
pub trait StepObserver<S: Suite> {
    /// A node took an input.
    fn on_step(&mut self, world: &World<S>, step: &Step);

    /// An action took place.
    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        let _ = (world, at, action);
    }

    /// Whether the world should stop at once, for instance because an invariant broke.
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
