//! No request for the revocation list, in a build for drones alone: their groups bring it.

use quiver_ainq::Suite;
use quiver_machine::{Handled, Peer};
use quiver_message::Message;

use super::FetchContext;

/// No request.
#[derive(Debug)]
pub(super) struct ListRequest;

impl ListRequest {
    /// No request.
    pub(super) const fn none() -> Self {
        Self
    }

    /// Sends nothing.
    pub(super) const fn send<S: Suite>(&self, _: &mut FetchContext<'_, S>, _: Peer) {}

    /// Takes nothing.
    pub(super) const fn handle<S: Suite>(
        &mut self,
        _: &mut FetchContext<'_, S>,
        _: Peer,
        _: &Message<S>,
    ) -> Handled {
        Handled::No
    }
}
