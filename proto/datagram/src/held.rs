//! Holds datagrams that cannot be opened yet, bounded in number, bytes and time. §20.8.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::Config;

/// A datagram that waits for its epoch, its sender's announcement, or its signer.
#[derive(Clone, Debug)]
pub(crate) struct HeldDatagram {
    pub(crate) until: Duration,
    pub(crate) bytes: Vec<u8>,
}

/// Datagrams that cannot be opened yet, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct HeldDatagrams {
    datagrams: VecDeque<HeldDatagram>,
    bytes: usize,
}

impl HeldDatagrams {
    /// Holds a datagram. Gives the number of others that it displaced, or itself if it is too long.
    pub(crate) fn push(&mut self, config: &Config, datagram: HeldDatagram) -> u64 {
        let mut dropped = 0;
        if datagram.bytes.len() > config.hold_bytes || config.hold_datagrams == 0 {
            return 1;
        }
        // §20.8: bounded, because a stranger can send datagrams of unknown epochs; the newest are the
        // likeliest to open soon.
        while self.datagrams.len() >= config.hold_datagrams
            || self.bytes + datagram.bytes.len() > config.hold_bytes
        {
            let Some(oldest) = self.datagrams.pop_front() else { break };
            self.bytes -= oldest.bytes.len();
            dropped += 1;
        }
        self.bytes += datagram.bytes.len();
        self.datagrams.push_back(datagram);
        dropped
    }

    /// Drops what was held for long enough, and gives the number.
    pub(crate) fn expire(&mut self, now: Duration) -> u64 {
        let before = self.datagrams.len();
        self.datagrams.retain(|held| held.until > now);
        self.bytes = self.datagrams.iter().map(|held| held.bytes.len()).sum();
        (before - self.datagrams.len()) as u64
    }

    /// Takes all, in the order in which they came: something is known that was not. Datagrams that still
    /// cannot be opened come back.
    pub(crate) fn take(&mut self) -> VecDeque<HeldDatagram> {
        self.bytes = 0;
        core::mem::take(&mut self.datagrams)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.datagrams.iter().map(|held| held.until).min()
    }
}
