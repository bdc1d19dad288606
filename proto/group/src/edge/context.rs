//! Context shared by the parts of an edge while they handle one input.

use quiver_ainq::Suite;
use quiver_machine::{Context, Offence, Peer};

use super::failover::Leaders;
use super::{EdgeEvent, EdgeTiming};

/// Marks a change of what must survive a crash. The driver stores the state as it is when it polls, which is
/// after the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChanged;

/// The context of every part of a machine, and what the parts of an edge share beside it.
#[derive(derive_more::Deref, derive_more::DerefMut)]
pub struct EdgeContext<'a, S: Suite> {
    /// Clocks, randomness, the way out, the drone's key, revocations and group.
    #[deref]
    #[deref_mut]
    pub base: Context<'a, S, EdgeEvent, StateChanged>,
    /// The leaders that are connected, and those that are refused.
    pub leaders: &'a mut Leaders,
    /// Times of the edge.
    pub timing: &'a EdgeTiming,
    /// Number of starts of the edge.
    pub boot_no: u32,
}

impl<S: Suite> EdgeContext<'_, S> {
    /// Stores the state before anything that follows is sent.
    pub fn persist(&mut self) {
        self.base.out.persist(StateChanged);
    }

    /// Reports an event.
    pub fn event(&mut self, event: EdgeEvent) {
        self.base.out.event(event);
    }

    /// Reports what a peer did wrong.
    pub fn blame(&mut self, peer: Peer, offence: impl Into<Offence>) {
        self.event(EdgeEvent::Blamed { peer, offence: offence.into() });
    }
}
