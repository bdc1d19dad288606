//! Limits and timing of an endpoint.

use core::time::Duration;

use crate::{MAX_DATAGRAM, MAX_RADIO_DATAGRAM};

/// Fragments that a message may have.
pub const MAX_FRAGMENTS: usize = 255;

/// Limits and timing of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointLimits {
    /// The longest datagram in bytes; at least 96, so that a hello fits.
    pub mtu: usize,
    /// The longest encoded message to take in bytes. So much memory is used while one comes in.
    pub max_message: usize,
    /// Number of fragments that may be under way to this side at once: what it can buffer while it computes.
    pub window: u8,
    /// Messages waiting to be sent; beyond, the oldest is dropped.
    pub queued: usize,
    /// Bytes of messages waiting to be sent; beyond, the oldest is dropped.
    pub queued_bytes: usize,
    /// Least time to wait for an answer before repeating: longer if answers take longer. Doubles with each
    /// repeat, up to 8 seconds.
    pub repeat_after: Duration,
    /// Time to repeat without any answer before a message is given up.
    pub give_up_after: Duration,
    /// Interval of a board's pings.
    pub ping_every: Duration,
    /// Time of silence after which the other side is lost.
    pub lost_after: Duration,
    /// Time after which a board ends a session in which it is not served. Doubles with each session ended for
    /// that, up to eight times.
    pub patience: Duration,
}

impl EndpointLimits {
    /// Limits of a board or gateway on a line.
    pub const fn line(max_message: usize) -> Self {
        Self {
            mtu: MAX_DATAGRAM,
            max_message,
            window: 2,
            queued: 16,
            queued_bytes: 2 * max_message,
            repeat_after: Duration::from_secs(1),
            // A board may compute for half a minute, and answers nothing meanwhile.
            give_up_after: Duration::from_secs(40),
            ping_every: Duration::from_secs(10),
            // An endpoint that is silent for longer is gone.
            lost_after: Duration::from_secs(65),
            // Enrolling and joining take less, even over a slow radio and with pairings on a small processor.
            patience: Duration::from_secs(180),
        }
    }

    /// Limits of a board or gateway on IEEE 802.15.4, which sends 125 bytes in 4 ms.
    pub const fn radio(max_message: usize) -> Self {
        Self {
            mtu: MAX_RADIO_DATAGRAM,
            window: 8,
            repeat_after: Duration::from_millis(250),
            ..Self::line(max_message)
        }
    }
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipeCounters {
    /// Messages that the other side has taken.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Fragments sent again.
    pub repeated: u64,
    /// Messages given up after all repeats.
    pub given_up: u64,
    /// Messages dropped because too many were waiting, or because the session ended.
    pub dropped: u64,
    /// Messages that were longer than the other side takes.
    pub too_long: u64,
    /// Datagrams or messages that are none of this version.
    pub malformed: u64,
    /// Datagrams of another session.
    pub stale: u64,
    /// Messages whose checksum was wrong once all fragments were there.
    pub bad_checksum: u64,
    /// Fragments refused: events were not taken, or memory ran out.
    pub refused: u64,
    /// Sessions that ended.
    pub sessions_lost: u64,
}
