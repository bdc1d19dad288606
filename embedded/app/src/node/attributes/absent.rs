//! An image without envelopes fetches no attribute keys, and holds none.

use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_crypto::Zeroizing;
use quiver_machine::{Peer, Route, Snapshot};
use rand_core::CryptoRngCore;

use super::BoardEdgeNode;

pub(super) struct Attributes;

impl Attributes {
    pub(super) const fn none() -> Self {
        Self
    }

    pub(super) const fn is_fetching(&self) -> bool {
        false
    }

    pub(super) const fn due(&self) -> Option<Duration> {
        None
    }

    pub(super) fn encoded(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(Vec::new())
    }

    pub(super) fn stored(&self, _: Snapshot) {}
}

/// No parts beside the edge.
pub(super) type Parts = ();

pub(super) const fn parts() -> Parts {}

impl<F: MultiwriteNorFlash, R: CryptoRngCore> BoardEdgeNode<F, R> {
    pub(super) fn take_attributes(&self, _: &[u8], _: Option<&Snapshot>) {}

    pub(super) const fn can_fetch(&self) -> bool {
        false
    }

    pub(super) const fn forget_attributes(&self) -> bool {
        false
    }

    pub(super) async fn step_attributes(&self, _: Duration) {}

    pub(super) async fn fetch_from(&self, _: Duration, _: Peer, _: Route) {}

    pub(super) async fn fetch_without(&self, _: Duration, _: Peer) {}

    pub(super) async fn fetched(&self, _: Duration, _: Peer, _: &[u8]) -> bool {
        false
    }

    pub(super) const fn print_part_event(&self, never: Infallible) {
        match never {}
    }
}
