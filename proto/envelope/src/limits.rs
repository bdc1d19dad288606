//! Limits of memory and time that envelopes take.

use core::time::Duration;

use quiver_abe::envelope::{MAX_CIPHERTEXT_LEN, SessionLimits};

/// Limits of memory and time that envelopes take: every drone that can gossip can send them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeLimits {
    /// Bytes of the longest encapsulated key that is opened: the time that opening takes grows with its
    /// policy.
    pub ciphertext: usize,
    /// Openings at once, and the time after which there is one more. One whose encapsulated key has more than
    /// 4,096 bytes counts for more.
    pub openings: (u32, Duration),
    /// Messages far ahead in their session, in units of 512 steps of its chain: so many at once, and the time
    /// after which there is one more.
    pub jumps: (u32, Duration),
    /// Sessions of others that are followed.
    pub sessions: SessionLimits,
    /// Number and total bytes of messages kept until their session's opening comes.
    pub early: (usize, usize),
    /// Sessions remembered as being for others.
    pub unfit: usize,
    /// Sessions of its own that a drone has open: 8 at most.
    pub open: usize,
}

impl Default for EnvelopeLimits {
    /// Limits of services.
    fn default() -> Self {
        Self {
            ciphertext: MAX_CIPHERTEXT_LEN,
            openings: (64, Duration::from_millis(125)),
            jumps: (64, Duration::from_millis(125)),
            sessions: SessionLimits::default(),
            early: (16, 262_144),
            unfit: 256,
            open: 8,
        }
    }
}
