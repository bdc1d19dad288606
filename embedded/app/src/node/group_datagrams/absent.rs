//! An image without the group's datagrams sends none and takes none.

use alloc::vec::Vec;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use rand_core::CryptoRngCore;

use super::BoardEdgeNode;

pub(super) struct GroupDatagrams;

impl GroupDatagrams {
    pub(super) const fn none() -> Self {
        Self
    }

    pub(super) const fn machine_changed(&self) {}

    pub(super) const fn list_changed(&self) {}

    pub(super) const fn take_question(&self) -> bool {
        false
    }

    pub(super) const fn due(&self) -> Option<Duration> {
        None
    }
}

impl<F: MultiwriteNorFlash, R: CryptoRngCore> BoardEdgeNode<F, R> {
    pub(super) const fn take_group_datagram(&self, _: Duration, _: &[u8]) -> bool {
        false
    }

    pub(crate) const fn poll_group_datagram(&self, _: Duration) -> Option<Vec<u8>> {
        None
    }

    pub(super) const fn step_group_datagrams(&self, _: Duration) {}

    pub(super) const fn print_datagrams(&self) {}
}
