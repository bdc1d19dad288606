//! Built without quorums: the coordinator of a signature that there never is.

use core::convert::Infallible;
use core::marker::PhantomData;
use core::time::Duration;

use quiver_ainq::{Deployment, Suite};
use quiver_machine::{Now, Peer};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use super::{SharedRequest, Steps};

/// A type without values.
#[derive(Debug)]
pub(super) struct Coordinator<S: Suite> {
    never: Infallible,
    suite: PhantomData<S>,
}

impl<S: Suite> Coordinator<S> {
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self.never {}
    }

    pub(super) fn connected(&mut self, _: Now, _: Peer, _: &mut dyn CryptoRngCore) -> Steps<S> {
        match self.never {}
    }

    pub(super) fn disconnected(
        &mut self,
        _: &SharedRequest<S>,
        _: Now,
        _: Peer,
        _: &mut dyn CryptoRngCore,
    ) -> Steps<S> {
        match self.never {}
    }

    pub(super) fn retry(&mut self, _: &SharedRequest<S>, _: Now, _: &mut dyn CryptoRngCore) -> Steps<S> {
        match self.never {}
    }

    pub(super) fn hear(
        &mut self,
        _: &SharedRequest<S>,
        _: &Deployment<S>,
        _: (Now, Peer),
        _: &Message<S>,
        _: &mut dyn CryptoRngCore,
    ) -> Steps<S> {
        match self.never {}
    }
}
