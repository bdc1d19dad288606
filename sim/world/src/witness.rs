//! Who looks at the world while it runs.

use std::time::Duration;

use quiver_ainq::Suite;

use crate::{Action, Turn, World};

/// Sees every step, after it was taken and before anything else happens.
pub trait Witness<S: Suite> {
    /// A node took an input.
    fn saw(&mut self, world: &World<S>, turn: &Turn);

    /// An action took place.
    fn acted(&mut self, world: &World<S>, at: Duration, action: &Action) {
        let _ = (world, at, action);
    }

    /// Whether the world should stop at once, for instance because an invariant broke.
    fn stops(&self) -> bool {
        false
    }
}

/// A witness that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl<S: Suite> Witness<S> for Nobody {
    fn saw(&mut self, _: &World<S>, _: &Turn) {}
}
