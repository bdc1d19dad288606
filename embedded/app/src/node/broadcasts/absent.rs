//! An image without coded broadcasts takes none; its gateway sends it everything in its session.

use alloc::vec::Vec;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use rand_core::CryptoRngCore;

use super::BoardEdgeNode;

pub(super) struct Broadcasts;

impl Broadcasts {
    pub(super) const fn none() -> Self {
        Self
    }

    pub(super) const fn due(&self) -> Option<Duration> {
        None
    }
}

impl<F: MultiwriteNorFlash, R: CryptoRngCore> BoardEdgeNode<F, R> {
    pub(super) const fn announce_broadcasts(&self) {}

    pub(super) const fn take_coded_frame(&self, _: Duration, _: &[u8]) -> bool {
        false
    }

    pub(super) async fn step_broadcasts(&mut self, _: Duration) {}

    /// The clock is not read for nothing.
    pub(crate) fn poll_confirmation(&self, _: impl FnOnce() -> Duration) -> Option<Vec<u8>> {
        None
    }

    pub(super) const fn print_broadcasts(&self) {}
}
